"""How the inputs of a command are read: options, and what they become.

Apart from the other options that commands share, because to import the readers takes 13 ms, which
commands without inputs do not need.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.console import say
from simindex.cli.numbers import Count
from simindex.cli.progress import Extent
from simindex.cli.shared_options import Option, collected, is_open_as, regular_file
from simindex.errors import InvalidInput
from simindex.inputs import formats
from simindex.inputs.document import ID_FIELDS, Intake
from simindex.inputs.files import name_from, printable
from simindex.inputs.markup import EXTRACTORS
from simindex.inputs.paths import expanded
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import holds_fingerprints, read, read_fingerprints, read_in_columns
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.inputs.document import Document
    from simindex.inputs.document_columns import Documents
    from simindex.inputs.fingerprints import Fingerprints

inputs_argument: Option = click.argument(
    "inputs", metavar="[INPUT]...", nargs=-1, type=click.Path(),
    callback=lambda _ctx, _parameter, names: expanded(names),
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
        written = frozenset(filter(None, map(regular_file, (sys.stdout, sys.stderr))))
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
        "--format", type=click.Choice(formats.names()), default=formats.AUTO, show_default=True,
        help="Format of all inputs. auto recognises it by the first bytes and the "
        f"suffix ({' '.join(formats.suffixes())}, also before .gz, .zst, .xz or .bz2); any other "
        "file is one text. npy and hex contain fingerprints, and so do jsonl and csv with a field "
        "fingerprint and no text.",
    ),
    click.option(
        "--text-field", default="text", show_default=True, metavar="NAME",
        help="Field that has the text. A dot leads into an object: doc.text.",
    ),
    click.option(
        "--id-field", metavar="NAME",
        help=f"Field that has the id. Default: the first of {', '.join(ID_FIELDS)} that the file "
        "has. A record without an id is named FILE:LINE.",
    ),
    click.option(
        "--html", type=click.Choice(list(EXTRACTORS)), default=next(iter(EXTRACTORS)),
        show_default=True,
        help="What finds the main text of HTML pages, also in web archives. raw keeps the markup.",
    ),
    click.option(
        "--include", multiple=True, metavar="GLOB",
        help="In folders, read only files whose name or path matches, such as '*.txt'. May be "
        "repeated.",
    ),
    click.option(
        "--exclude", multiple=True, metavar="GLOB",
        help="In folders, skip files and folders whose name or path matches. May be repeated.",
    ),
    click.option(
        "--max-errors", type=Count(), default=0, show_default=True,
        help="Skip up to this many bad records. One more ends the run with exit code 4.",
    ),
)
"""How inputs are read; the command gets a `Reading` as `reading`."""


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
