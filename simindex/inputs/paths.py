"""What inputs are named by: paths as they are, patterns, and lists of paths.

    -                standard input
    a path           itself, also where it holds * or begins with @, if it is there
    data/**/*.html   the files and folders that match, sorted; ** also matches folders below
    s3://a/*.gz      those of another system that match
    @list.txt        the paths in a file, one a line; @- those on standard input
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Sequence

from simindex.errors import InvalidInput
from simindex.inputs.files import printable
from simindex.inputs.remote_files import CHECK_ADDRESS, RemoteError, is_pattern, is_remote, matching
from simindex.inputs.streams import STDIN, Unreadable, lines, open_bytes, unmarked

MAX_PATH_BYTES = 1 << 14


def expanded(names: Sequence[str]) -> tuple[str, ...]:
    """The paths that names stand for, in their order.

    Raises InvalidInput for a pattern that nothing matches, and for a list that is empty or cannot
    be read.
    """
    return tuple(path for name in names for path in _paths(name))


def _paths(name: str) -> Iterator[str]:
    if name == STDIN or os.path.lexists(name):
        yield name
    elif is_remote(name):
        yield from _remote(name)
    elif name.startswith("@"):
        yield from _listed(name[1:])
    elif glob.has_magic(name):
        found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - keeps the path as typed
        if not found and " " in name:  # a text, perhaps, which no file is named like
            yield name
        elif not found:
            raise InvalidInput(
                f"{printable(name)}: no file or folder matches",
                remedy="check the pattern, and that the shell leaves it as it is in quotes",
                path=name,
            )
        yield from found
    else:
        yield name


def _remote(name: str) -> list[str]:
    if not is_pattern(name):
        return [name]
    try:
        found = matching(name)
    except RemoteError as error:
        raise InvalidInput(
            f"{printable(name)}: cannot be listed: {error}", remedy=CHECK_ADDRESS, path=name
        ) from error
    if not found:
        raise InvalidInput(
            f"{printable(name)}: no file or folder matches", remedy="check the pattern", path=name
        )
    return found


def _listed(path: str) -> Iterator[str]:
    if path == STDIN and sys.stdin.isatty():
        raise InvalidInput(
            "@- reads paths from standard input, and nothing is piped to it",
            remedy="pipe the list, as `find . -name '*.html' | simindex ... @-` does", path=path,
        )
    empty = True
    try:
        with open_bytes(path) as stream:
            for number, line in lines(stream, MAX_PATH_BYTES):
                if line is None or b"\0" in line:
                    raise Unreadable("a line that is not a path", number)
                raw = (unmarked(line) if number == 1 else line).rstrip(b"\r\n")
                if raw:
                    empty = False
                    yield os.fsdecode(raw)
    except Unreadable as error:
        where = f"@{printable(path)}" + (f":{error.line}" if error.line else "")
        raise InvalidInput(
            f"{where}: {error}", remedy="give a file with a path on each line", path=path,
            line=error.line,
        ) from error
    if empty:  # or a command would read standard input, as without an input
        raise InvalidInput(
            f"@{printable(path)}: lists no path", remedy="give a file with a path on each line",
            path=path,
        )
