"""How inputs are read, checked once: what every reader goes by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from simindex.errors import InvalidOption
from simindex.inputs.formats import AUTO, names
from simindex.inputs.markup import EXTRACTORS
from simindex.inputs.streams import STDIN
from simindex.values import dataclass

MAX_RECORD_BYTES = 64 << 20
"""Longest line, row or text file, in bytes after decompression."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read.

    Parameters
    ----------
    format : "auto" or a name of `formats.FORMATS`
        ``auto`` goes by the first bytes and by the suffix, before that of a compression. It takes
        standard input for JSONL and other files for text, and refuses formats that it knows and
        cannot read.
    text_field : str
        Field of a JSON record, or column of a table.
    id_field : str, optional
        The same for the id; by default the first of `document.ID_FIELDS` that a file has.
    include, exclude : sequence of str
        Patterns for files in folders. One without `/` is matched with the name of a file or folder,
        one with `/` with its whole relative path, and `*` also matches `/`; an excluded folder is
        not entered. No pattern in `include` takes every file.
    max_record_bytes : int
        Longest line, row or text file.
    without : Path, optional
        A folder to leave out: the index itself.
    written : collection of (device, inode)
        Files to leave out of folders: the output, which would be read while it is written.
    stdin_name : str
        What records of standard input that have no id are named after.
    stdin_copy : Path, optional
        A file with what standard input held, which is read in its place, as often as needed.
    origin : str, optional
        The folder that names of files start from, absolute and without links: each file has one
        name then. By default it is named by its path as reached from the input.
    html : a name of `markup.EXTRACTORS`
        How texts are taken from HTML files and pages of archives; "raw" keeps the markup.
    all_fields : bool
        Whether documents of JSON lines keep these, and those of Parquet and Arrow files their other
        columns.
    """

    format: str = AUTO
    text_field: str = "text"
    id_field: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_record_bytes: int = MAX_RECORD_BYTES
    without: Path | None = None
    written: Collection[tuple[int, int]] = ()
    stdin_name: str = STDIN
    stdin_copy: Path | None = None
    origin: str | None = None
    html: str = next(iter(EXTRACTORS))
    all_fields: bool = False

    def __post_init__(self) -> None:
        if self.format not in names():
            raise InvalidOption(
                f"format {self.format!r} is unknown",
                remedy=f"give one of {', '.join(names())}", option="format", found=self.format,
                expected=names(),
            )
        if self.html not in EXTRACTORS:
            raise InvalidOption(
                f"html {self.html!r} is unknown", remedy=f"give one of {', '.join(EXTRACTORS)}",
                option="html", found=self.html, expected=tuple(EXTRACTORS),
            )
