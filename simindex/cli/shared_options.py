"""Options that several commands share, and what they become."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

import click

from simindex.cli.app import AS_JSON, TYPED
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


def as_typed(*names: str) -> str:
    """The name of an option that was typed, of all that it has; the first one if none is found."""
    ctx = click.get_current_context(silent=True)
    typed = () if ctx is None else ctx.meta.get(TYPED, ())
    given = {argument.partition("=")[0] for argument in typed}
    return next((name for name in names if name in given), names[0])


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
    help="Print JSON, one object on each line. An error is an object on standard error.",
)

verbose_option: Option = click.option(
    "-v", "--verbose", is_flag=True,
    help="Also show the engine's own figures. The glossary of the documentation explains their "
    "names.",
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

def distance(default: str, meaning: str = "The radius") -> Option:
    """The option of the radius; `default` says which one counts without it."""
    return click.option(
        "-d", "--distance", "h", type=Count(example="3"), metavar="BITS",
        help=f"{meaning}: in how many bits two near-duplicates may differ. Default: {default}.",
    )


distance_option: Option = distance("the stored radius, which `simindex stats` shows")

threads_option: Option = click.option(
    "--threads", type=Count(1, example="2"),
    help="Number of threads. Default: that of the environment variable SIMINDEX_THREADS, or one "
    "for each processor.",
)

times_option: Option = click.option(
    "--times", is_flag=True,
    help="Store when each document came, in 4 bytes for each, so that `simindex expire` can delete "
    "old ones.",
)


def structured(default: str) -> Option:
    """The option of structures; `default` says which ones there are without it."""
    return click.option(
        "--structures", metavar="NAMES",
        callback=lambda _ctx, _parameter, text: None if text is None else split_structures(text),
        help="How the index can be searched, such as psm,bphs:G=5,g=2. psm is the sorted rows. "
        "bphs adds permuted tables, for fast exact queries. issl adds slice lists, for --top with "
        f"wide fingerprints. `simindex plan --verbose` compares them. Default: {default}.",
    )


structures_option: Option = structured("psm, and for 64 bits four permuted tables, too")


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
    help="A file with 32 hexadecimal digits: the secret with which the ids of keys are computed. "
    "Indexes with the same secret give equal keys equal ids. Default: a random secret.",
)


memory_option: Option = click.option(
    "--memory", type=Size(),
    help="Memory that the searched tables may take. Tables that do not fit are not used, so the "
    "search is slower. 64G is 64 x 1024^3 bytes, 64GB is 64 x 1000^3. Default: no limit.",
)

memory_limit_option: Option = click.option(
    "--memory-limit", type=Size(),
    help="Memory that the command may take. Mapped files do not count. With less memory the "
    "command reads the index more often. 512M is 512 x 1024^2 bytes. Default: 1G.",
)

process_limit_option: Option = click.option(
    "--memory-limit", type=Size(),
    help="Memory that the process may take, such as 2G: 2 x 1024^3 bytes. Give it for an index "
    "that is larger than memory: simindex then collects queries into batches, and each batch scans "
    "the index once. Default: what the system can give.",
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
