"""Options that several commands share, and what they become."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

import click

from simindex.cli.app import AS_JSON
from simindex.cli.numbers import Count, Size
from simindex.options import SECRET_BYTES, split_structures

Command = TypeVar("Command", bound=Callable[..., Any])


class Option(Protocol):
    """Gives a command an option, or several."""

    def __call__(self, command: Command, /) -> Command:
        """The command with it."""


_SECRET = re.compile(rb"\s*([0-9a-fA-F]{%d})\s*" % (2 * SECRET_BYTES))
_SECRET_FILE_BYTES = 1 << 10


def together(*options: Option) -> Option:
    """One decorator for several options, listed by --help in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def collected(name: str, made: Callable[..., Any], *options: Option) -> Option:
    """One decorator for several options, which the command gets as one value, `made` of them."""

    def decorate(command: Command) -> Command:
        def calling(*args: Any, **given: Any) -> Any:
            own = {option.name: given.pop(option.name) for option in listed}
            return command(*args, **{name: made(**own)}, **given)

        wrapper: Any = calling
        wrapper = together(*options)(wrapper)
        listed = wrapper.__click_params__
        wrapper.__click_params__ = getattr(command, "__click_params__", []) + listed
        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        return cast(Command, wrapper)

    return decorate


class NamedPath(click.Path):
    """A path that does not look like an option, as `-q` does in `--index -q`."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The path; a wrong call where the name of an option stands in its place."""
        if isinstance(value, str) and len(value) > 1 and value.startswith("-"):
            self.fail(
                f"{value!r} looks like an option, and a path belongs here: give one, or ./{value} "
                "if that is its name", param, ctx,
            )
        return super().convert(value, param, ctx)


def _as_json(ctx: click.Context, parameter: click.Parameter, asked: bool) -> bool:
    ctx.meta[AS_JSON] = asked
    return asked


json_option: Option = click.option(
    "--json", "as_json", is_flag=True, is_eager=True, callback=_as_json,
    help="Print one JSON object a line, also for an error.",
)

verbose_option: Option = click.option(
    "-v", "--verbose", is_flag=True,
    help="Show the engine's own figures, too; the glossary explains their names.",
)

output_options: Option = together(
    json_option,
    click.option("-q", "--quiet", is_flag=True, help="Print no progress and no summary."),
)


def _named_index(ctx: click.Context, parameter: click.Parameter, path: str) -> str:
    if not path:
        raise click.BadParameter("the name of the index is empty: give a path such as pages.sim")
    return path


index_argument: Option = click.argument(
    "index_path", metavar="INDEX", type=NamedPath(), callback=_named_index
)

def distance(recipe: str, meaning: str = "The radius") -> Option:
    """The option of the radius; without it that of a recipe counts."""
    return click.option(
        "-d", "--distance", "h", type=Count(example="3"), metavar="BITS",
        help=f"{meaning}: in how many bits near-duplicates may differ. Default: the radius that "
        f"{recipe} recommends.",
    )


distance_option: Option = distance("the index's recipe")

threads_option: Option = click.option(
    "--threads", type=Count(1, example="2"),
    help="Number of threads. Default: SIMINDEX_THREADS, or one a processor.",
)

times_option: Option = click.option(
    "--times", is_flag=True,
    help="Store when each document came, in 4 bytes, so that `simindex expire` can delete old "
    "ones.",
)

structures_option: Option = click.option(
    "--structures", metavar="NAMES",
    callback=lambda _ctx, _parameter, text: None if text is None else split_structures(text),
    help="How each file of the index can be searched, such as psm,bphs:G=5,g=2: bphs adds permuted "
    "tables for fast exact queries, issl adds slice lists for --top with wide fingerprints. "
    "`simindex plan` compares them. Default for 64 bits: psm and four permuted tables.",
)


def _secret(ctx: click.Context, parameter: click.Parameter, file: str | None) -> bytes | None:
    if file is None:
        return None
    make = (
        'make one with  python -c "import secrets; '
        f'print(secrets.token_hex({SECRET_BYTES}))" > FILE'
    )
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_SECRET_FILE_BYTES)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise click.BadParameter(f"{file!r} cannot be read ({what}): {make}") from error
    found = _SECRET.fullmatch(text)
    if found is None or len(text) == _SECRET_FILE_BYTES:
        # Without what it holds, which may be a secret with a slip.
        raise click.BadParameter(
            f"{file!r} does not hold {2 * SECRET_BYTES} hexadecimal digits alone: {make}"
        )
    return bytes.fromhex(found[1].decode("ascii"))


key_secret_option: Option = click.option(
    "--key-secret", metavar="FILE", type=NamedPath(), callback=_secret,
    help="A file with 32 hexadecimal digits: the secret that ids of keys are computed with. "
    "Indexes with the same secret give equal keys equal ids. Default: a random secret.",
)


memory_option: Option = click.option(
    "--memory", type=Size(),
    help="Memory that the searched tables may take. Tables that do not fit are left out, so the "
    "search is slower. 64G is 64 x 1024^3 bytes, 64GB is 64 x 1000^3.",
)

memory_limit_option: Option = click.option(
    "--memory-limit", type=Size(),
    help="Memory that the command may take, without mapped files. 512M is 512 x 1024^2 bytes. "
    "Default: 1G.",
)

process_limit_option: Option = click.option(
    "--memory-limit", type=Size(),
    help="Memory that the process may take, such as 2G. For an index that is larger than memory: "
    "queries are collected into batches, and each batch scans the index once.",
)


def regular_file(stream: IO[str]) -> tuple[int, int] | None:
    """Device and inode of the file that a stream is open on, if it is a regular one."""
    try:
        opened = os.fstat(stream.fileno())
    except (OSError, ValueError):  # a stream without a descriptor
        return None
    return (opened.st_dev, opened.st_ino) if stat.S_ISREG(opened.st_mode) else None


def is_open_as(path: Path | int, stream: IO[str]) -> bool:
    """Whether a file, by name or descriptor, is the regular one that a stream is open on."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):  # not there
        return False
    return (found.st_dev, found.st_ino) == regular_file(stream)
