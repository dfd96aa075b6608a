"""`simindex delete`: rows that go by their ids or keys."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from simindex.cli.app import nothing_to_do, program, uninterrupted
from simindex.cli.console import count, emit, say
from simindex.cli.final_merge import merge_behind_a_bar
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.numbers import Id
from simindex.cli.progress import Progress
from simindex.cli.shared_options import NamedPath, index_argument, output_options
from simindex.errors import InvalidInput
from simindex.inputs.document import ID_FIELDS
from simindex.inputs.streams import Unreadable, lines, unmarked
from simindex.options import MAX_KEY_BYTES

DELETED_AT_ONCE, DELETED_LENGTH = 1 << 16, 1 << 23
"""Keys of a list that are held together, and their characters."""

LINE_END_BYTES = 5
"""A byte order mark before a key, CR and LF behind it."""


@program.command()
@index_argument
@click.option(
    "--id", "ids", multiple=True, type=Id(),
    help="Delete the document with this id. May be repeated.",
)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY",
    help="Delete the document with this key. May be repeated.",
)
@click.option(
    "--keys-from", type=NamedPath(), metavar="FILE",
    help="Delete the documents whose keys are in FILE, one on each line; in an index without keys, "
    "their ids. - is standard input.",
)
@wait_option
@output_options
def delete(
    index_path: str, ids: tuple[int, ...], keys: tuple[str, ...], keys_from: str | None,
    wait: LockWait, as_json: bool, quiet: bool,
) -> None:
    """Delete documents of INDEX by key or id.

    Deletes all documents with the given keys or ids, in one commit. Exits with 1 if INDEX has none
    of them.
    """
    import numpy as np

    if not (ids or keys or keys_from):
        raise click.UsageError("nothing to delete: give --id, --key or --keys-from")
    with wait.open(index_path) as index:
        _require_named(index_path, index.options.keyed, bool(ids), bool(keys))
        before = len(index)
        as_stored = _as_stored(index.options.keys)
        deleted = named = 0
        if ids:
            named += len(set(ids))
            deleted += index.delete(ids=np.array(ids, dtype=np.uint64))
        if keys:
            named += len(set(keys))
            deleted += index.delete(keys=[as_stored(key) for key in keys])
        if keys_from:
            for group in _groups(_listed_keys(keys_from)):
                named += len(set(group))
                if index.options.keys:
                    deleted += index.delete(keys=[as_stored(key) for key in group])
                else:
                    deleted += index.delete(ids=np.array([*map(_as_id, group)], np.uint64))
        if not deleted:
            index.discard()
        with uninterrupted():
            index.commit()
        rows = len(index)
        if deleted:
            with Progress("merging files", "row", quiet=quiet or as_json) as progress:
                merge_behind_a_bar(index, index_path, progress, quiet=quiet or as_json)
    if as_json:
        emit({"deleted": deleted, "deleted_rows": before - rows, "rows": rows})
    elif deleted and not quiet:
        several = f" ({count(before - rows, 'row')})" if before - rows != deleted else ""
        say(
            f"deleted {count(deleted, 'document')}{several}; {index_path} holds "
            f"{count(rows, 'row')}"
        )
        if named > deleted:  # less where one is named twice, far apart or in two ways
            one = named - deleted == 1
            say(
                f"{named - deleted:,} of {named:,} names {'is' if one else 'are'} not in "
                f"{index_path}"
            )
    if not deleted:
        why = "no document has such an id or key" if named else "no id or key was given"
        nothing_to_do(
            f"{why}: nothing was deleted; {index_path} holds {count(rows, 'row')}",
            quiet=quiet,
        )


def _require_named(path: str, keyed: bool, by_ids: bool, by_keys: bool) -> None:
    """Refuses ids of documents that have keys, and keys of rows that have ids alone."""
    if keyed and by_ids:
        raise click.UsageError(f"documents of {path} have keys: give --key or --keys-from")
    if not keyed and by_keys:
        raise click.UsageError(f"rows of {path} have ids and no keys: give --id or --keys-from")


def _as_stored(kind: object) -> Callable[[str], Any]:
    # What is not UTF-8 on the command line comes as lone surrogates, and is bytes again here.
    return (lambda key: key.encode("utf-8", "surrogateescape")) if kind == "bytes" else str


def _as_id(line: str) -> int:
    if not (line.isascii() and line.isdigit() and int(line) < 1 << 64):
        raise InvalidInput(
            f"{line!r:.80} is not an id, and the index has no keys; nothing was deleted",
            remedy="list whole numbers from 0 to 2**64 - 1",
        )
    return int(line)


def _groups(keys: Iterator[str]) -> Iterator[list[str]]:
    group: list[str] = []
    length = 0
    for key in keys:
        group.append(key)
        length += len(key)
        if len(group) == DELETED_AT_ONCE or length >= DELETED_LENGTH:
            yield group
            group, length = [], 0
    if group:
        yield group


def _listed_keys(path: str) -> Iterator[str]:
    if path == "-":
        if sys.stdin.isatty():
            say("reading keys from the terminal, one a line; Ctrl-D ends them")
        yield from _decoded(path, sys.stdin.buffer)
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be opened: {error.strerror}; nothing was deleted", path=path
        ) from error
    with file:
        yield from _decoded(path, file)


def _lines(path: str, file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    try:
        yield from lines(file, MAX_KEY_BYTES + LINE_END_BYTES)
    except Unreadable as error:
        raise InvalidInput(
            f"{path}:{error.line}: {error}; nothing was deleted", path=path, line=error.line
        ) from error


def _decoded(path: str, file: BinaryIO) -> Iterator[str]:
    for number, line in _lines(path, file):
        if line is not None:
            line = (unmarked(line) if number == 1 else line).rstrip(b"\r\n")
        if line is None or len(line) > MAX_KEY_BYTES:
            raise InvalidInput(
                f"{path}:{number}: longer than the {MAX_KEY_BYTES:,} bytes of a key; nothing was "
                "deleted", path=path, line=number,
            )
        try:
            key = line.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{path}:{number}: not UTF-8; nothing was deleted", path=path, line=number
            ) from error
        if key.startswith("{"):
            _refuse_object(key, path, number)
        if key:
            yield key


_TAKEN = {
    "dropped": "jq -r 'select(.dropped != .lost_to).dropped'",
    **{name: f"jq -r .{name}" for name in ("key", *ID_FIELDS)},
}
"""What takes keys out of JSON lines, by the field that has them, such as those of an audit."""


def _refuse_object(line: str, path: str, number: int) -> None:
    """Refuses a JSON object, which is the key of nothing; braces alone may be of a key."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return
    if fields:
        taking = next((_TAKEN[name] for name in _TAKEN if name in fields), "jq -r .FIELD")
        file = "" if path == "-" else f" {shlex.quote(path)}"
        raise InvalidInput(
            f"{path}:{number}: is a JSON object, not a key; nothing was deleted",
            remedy="list keys, one a line, as  " + taking + file + "  does", path=path, line=number,
        )
