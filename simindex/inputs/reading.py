"""From what the caller named to documents: finds files and picks a reader for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from simindex.errors import InvalidInput, InvalidOption
from simindex.inputs.document import Document, Intake
from simindex.inputs.folder import walk
from simindex.inputs.jsonl import read_jsonl
from simindex.inputs.streams import (
    STDIN,
    Unreadable,
    compression_of,
    open_bytes,
    require_zstandard,
)
from simindex.inputs.table import read_table
from simindex.inputs.textfile import printable, read_text

FORMATS = ("auto", "text", "jsonl", "csv")

MAX_RECORD_BYTES = 64 << 20
"""Longest line, row or text file, in bytes after decompression."""

_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read.

    Parameters
    ----------
    format : "auto", "text", "jsonl" or "csv"
        ``auto`` goes by a named file's suffix, before .gz or .zst; takes standard input for JSONL
        and every file in a folder for text.
    text_field, key_field : str
        Fields of a JSON record, or columns of a table.
    include, exclude : sequence of str
        Patterns for files in folders, see `folder.walk`.
    max_record_bytes : int
        Longest line, row or text file.
    without : Path, optional
        A folder to leave out: the index itself.
    """

    format: str = "auto"
    text_field: str = "text"
    key_field: str = "id"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_record_bytes: int = MAX_RECORD_BYTES
    without: Path | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InvalidOption(
                f"format {self.format!r} is unknown: give one of {', '.join(FORMATS)}",
                option="format", found=self.format, expected=FORMATS,
            )


def require_inputs(inputs: Sequence[str]) -> None:
    """Refuse what cannot be read at all, before anything is created.

    Raises InvalidInput for a path that does not exist or standard input named twice, MissingExtra
    for .zst without its library.
    """
    for path in inputs:
        if path != STDIN and not Path(path).exists():
            raise InvalidInput(f"{printable(path)}: no such file or folder", path=path)
        if path != STDIN and compression_of(path) == "zst":
            require_zstandard()
    if list(inputs).count(STDIN) > 1:
        raise InvalidInput("standard input (-) can be read only once", path=STDIN)


def rereadable(inputs: Sequence[str]) -> bool:
    """Whether a second reading finds the same: no standard input, no pipe."""
    return all(path != STDIN and (Path(path).is_file() or Path(path).is_dir()) for path in inputs)


def read(
    inputs: Sequence[str], options: ReadOptions | None = None, intake: Intake | None = None
) -> Iterator[Document]:
    """Documents of all inputs, in the order given and a fixed order within each.

    Parameters
    ----------
    inputs : sequence of str
        Files, folders, and `-` for standard input.
    intake : Intake, optional
        Counts bad records; by default the first one raises.

    Yields
    ------
    Document
        The key of a text file is its path relative to the folder it was found in, or as named; of
        a record its key field, or ``file:line``.

    Raises
    ------
    InvalidInput
        On one bad record more than `intake` allows. A file that is truncated or damaged counts as
        one, at the line it broke off: what was read before stands, and the next file follows.

    Notes
    -----
    Holds one record, at most ``max_record_bytes``, and the names of one folder.
    """
    options = options or ReadOptions()
    intake = intake or Intake()
    require_inputs(inputs)
    for path in inputs:
        if path == STDIN or not Path(path).is_dir():
            yield from _read_file(path, path, True, options, intake)
            continue
        names = walk(
            path, include=options.include, exclude=options.exclude, without=options.without,
            intake=intake,
        )
        for name in names:
            yield from _read_file(str(Path(path, name)), name, False, options, intake)


def _read_file(
    path: str, name: str, named: bool, options: ReadOptions, intake: Intake
) -> Iterator[Document]:
    intake.files += 1
    kind = options.format if options.format != "auto" else _format_of(path) if named else "text"
    shown = printable(path)
    name = printable(PurePath(name).as_posix())
    limit = options.max_record_bytes
    try:
        with open_bytes(path) as stream:
            if kind == "text":
                yield from read_text(
                    stream, path=shown, key=name, limit=limit, intake=intake, named=named
                )
            elif kind == "jsonl":
                yield from read_jsonl(
                    stream, path=shown, name=name, text_field=options.text_field,
                    key_field=options.key_field, limit=limit, intake=intake,
                )
            else:
                yield from read_table(
                    stream, path=shown, name=name, text_field=options.text_field,
                    key_field=options.key_field, limit=limit, intake=intake,
                    delimiter="\t" if ".tsv" in PurePath(path).suffixes else ",",
                )
    except Unreadable as reason:
        intake.bad(shown, reason.line, str(reason))


def _format_of(path: str) -> str:
    if path == STDIN:
        return "jsonl"
    bare = PurePath(path)
    if compression_of(path):
        bare = bare.with_suffix("")
    return _BY_SUFFIX.get(bare.suffix.lower(), "text")
