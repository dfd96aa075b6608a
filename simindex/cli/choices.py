"""Options that several commands share, and what they become."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import IO, Any, Protocol, TypeVar, cast

import click

import simindex
from simindex.cli.app import AS_JSON
from simindex.cli.console import say
from simindex.cli.numbers import Count, Size
from simindex.cli.progress import Extent
from simindex.errors import InvalidInput
from simindex.inputs import (
    ID_FIELDS,
    Document,
    Documents,
    Fingerprints,
    Intake,
    ReadOptions,
    formats,
    holds_fingerprints,
    read,
    read_fingerprints,
    read_in_columns,
)
from simindex.inputs.finding import name_from, printable
from simindex.inputs.markup import EXTRACTORS
from simindex.inputs.names import expanded
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

inputs_argument: Option = click.argument(
    "inputs", metavar="[INPUT]...", nargs=-1, type=click.Path(),
    callback=lambda _ctx, _parameter, names: expanded(names),
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


@dataclass(frozen=True, slots=True)
class Reading:
    """How inputs are read, and how many bad records are skipped."""

    options: ReadOptions
    max_errors: int

    def intake(self, *, silent: bool = False) -> Intake:
        """A new account of bad records that reports them on standard error."""
        return Intake(max_errors=self.max_errors, report=None if silent else say)

    def of_this_run(self) -> Reading:
        """The same, with names for records of standard input that no other run gives."""
        stdin_name = f"stdin-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.urandom(2).hex()}"
        return replace(self, options=replace(self.options, stdin_name=stdin_name))

    def lasting(self) -> Reading:
        """The same, with names that an index can store: those of files are their paths from the
        working directory without links."""
        own = self.of_this_run()
        return replace(own, options=replace(own.options, origin=_working_directory()))

    def of_copy(self, copy: Path) -> Reading:
        """The same, with a copy of standard input read in its place."""
        return replace(self, options=replace(self.options, stdin_copy=copy))

    def of_all_fields(self) -> Reading:
        """The same, of records with their other fields and columns, too."""
        return replace(self, options=replace(self.options, all_fields=True))

    def named_for(self, index: simindex.Index) -> Reading:
        """The same, with names of files that start from the folder that those of an index do."""
        from simindex.index.origin import origin_of

        origin = origin_of(index) or _working_directory()
        return replace(self, options=replace(self.options, origin=origin))

    def say_names(self, inputs: Sequence[str], path: str | Path) -> None:
        """Says how files are named in an index, where that is not as they were typed."""
        origin = self.options.origin
        named = [name for name in inputs if name != "-"]
        if origin is None or not named:
            return
        if origin != _working_directory():
            gone = "" if Path(origin).is_dir() else (
                "; that folder is gone, and files that were moved count as other documents: build "
                "the index again"
            )
            say(
                f"names of files start from {printable(origin)}, where {path} was made, and not "
                f"from this folder{gone}"
            )
            return
        for name in named:
            stored = name_from(os.path.realpath(name), origin)
            if stored != PurePath(name).as_posix():
                say(
                    f"{printable(name)} is named {printable(stored)} in {path}: names of files are "
                    "paths from this folder, without links"
                )

    def extent(
        self, inputs: Sequence[str], intake: Intake, without: Path | None = None
    ) -> Extent:
        """How much of the inputs was read, where `documents` is given the same."""
        return Extent(intake, inputs, self._reading_options(without))

    def documents(
        self, inputs: Sequence[str], intake: Intake, without: Path | None = None
    ) -> Iterator[Document]:
        """The documents of the inputs."""
        self._greet(inputs)
        return read(inputs, self._reading_options(without), intake)

    def in_columns(
        self, inputs: Sequence[str], intake: Intake, without: Path | None = None
    ) -> Iterator[Document | Documents]:
        """The same, some of a file at once where its format has columns."""
        self._greet(inputs)
        return read_in_columns(inputs, self._reading_options(without), intake)

    @staticmethod
    def _greet(inputs: Sequence[str]) -> None:
        _require_unread_output(inputs)
        if "-" in inputs and sys.stdin.isatty():
            say("reading JSON lines from the terminal, one document a line; Ctrl-D ends them")

    def holds_fingerprints(self, inputs: Sequence[str]) -> bool:
        """Whether the inputs hold fingerprints instead of texts; InvalidInput if they hold both."""
        return not ("-" in inputs and sys.stdin.isatty()) and holds_fingerprints(
            inputs, self.options
        )

    def fingerprints(
        self, inputs: Sequence[str], intake: Intake, without: Path | None = None
    ) -> Iterator[Fingerprints]:
        """The fingerprints of the inputs."""
        _require_unread_output(inputs)
        return read_fingerprints(inputs, self._reading_options(without), intake)

    def _reading_options(self, without: Path | None) -> ReadOptions:
        """The options for folders that have the index, or a file that output goes to, in them."""
        written = frozenset(filter(None, map(_regular_file, (sys.stdout, sys.stderr))))
        return replace(self.options, without=without, written=written)


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - without links
    except FileNotFoundError:  # it was removed
        return None


def _reading(max_errors: int, **options: Any) -> Reading:
    return Reading(ReadOptions(**options), max_errors)


input_options: Option = collected(
    "reading", _reading,
    click.option(
        "--format", type=click.Choice(formats.names()), default=formats.AUTO,
        help="Format of all inputs. auto takes it from the first bytes and the suffix "
        f"({' '.join(formats.suffixes())}, also before .gz, .zst, .xz or .bz2); other files are "
        "texts. npy and hex contain fingerprints, and so do jsonl and csv with a field fingerprint "
        "and no text.",
    ),
    click.option(
        "--text-field", default="text", show_default=True,
        help="Field that has the text. A dot leads into an object: doc.text.",
    ),
    click.option(
        "--id-field", metavar="NAME",
        help=f"Field that has the id. Default: the first of {', '.join(ID_FIELDS)} that exists. A "
        "record without an id is named FILE:LINE.",
    ),
    click.option(
        "--html", type=click.Choice(list(EXTRACTORS)), default=next(iter(EXTRACTORS)),
        show_default=True,
        help="What finds the main text of HTML pages, also in archives. raw keeps the markup.",
    ),
    click.option(
        "--include", multiple=True, metavar="GLOB",
        help="In folders, read only files that match.",
    ),
    click.option(
        "--exclude", multiple=True, metavar="GLOB",
        help="In folders, skip files and folders that match.",
    ),
    click.option(
        "--max-errors", type=Count(), default=0, show_default=True,
        help="Skip up to this many bad records. One more ends the run with exit code 4.",
    ),
)
"""How inputs are read; the command gets a `Reading` as `reading`."""


def _regular_file(stream: IO[str]) -> tuple[int, int] | None:
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
    return (found.st_dev, found.st_ino) == _regular_file(stream)


def piped_input(otherwise: str) -> tuple[str, ...]:
    """Standard input, where something is piped to it; else a wrong call, which says `otherwise`."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        mode = 0
    if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode):
        return ("-",)
    raise click.UsageError(f"{otherwise}, or pipe JSON lines into it")


def _require_unread_output(inputs: Sequence[str]) -> None:
    """Refuses to read what is written meanwhile: it would not end before the disk is full."""
    for name in inputs:
        there: Path | int = Path(name)
        if name == "-":
            try:
                there = sys.stdin.fileno()
            except (OSError, ValueError):
                continue
        for stream, told in ((sys.stdout, "output"), (sys.stderr, "error")):
            if is_open_as(there, stream):
                what = "standard input" if name == "-" else f"the input {name}"
                raise InvalidInput(
                    f"{what} is where standard {told} goes, too",
                    remedy="write to another file", path=name,
                )
