"""The formats of inputs: a name, how a file is recognised, and the reader. A new one is one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from simindex.inputs.digits import is_digits, read_digits
from simindex.inputs.document import SKIP_FILES, Document, Source
from simindex.inputs.exported import (
    is_exported_lines,
    is_exported_table,
    read_exported_lines,
    read_exported_table,
)
from simindex.inputs.fingerprints import Fingerprints, Recognise
from simindex.inputs.foreign import HEAD_BYTES, bare_suffix, is_json_lines, is_markup
from simindex.inputs.jsonl import read_jsonl
from simindex.inputs.npy import MAGIC, read_npy
from simindex.inputs.streams import STDIN, Unreadable, decoded, unmarked, whole
from simindex.inputs.table import read_table

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Format:
    """How a file stores documents, or fingerprints, or either.

    Parameters
    ----------
    read : callable, or None for a format of fingerprints alone
        Documents of a decompressed stream, one record in memory at a time. What cannot be read goes
        to ``source.intake.bad``, or is raised as `streams.Unreadable`.
    suffixes : tuple of str
        In lower case; a file with one of them has this format, before that of a compression.
    magic : bytes
        First bytes by which a file without such a suffix is recognised, also within a folder and on
        standard input.
    read_fingerprints : callable, or None for a format of texts alone
        Fingerprints of a decompressed stream, some rows at a time; otherwise as `read`.
    tell_fingerprints : callable, optional
        Where a format holds either: whether the first bytes are those of fingerprints. Standard
        input that begins so has this format.
    """

    name: str
    read: Callable[[BinaryIO, Source], Iterator[Document]] | None = None
    suffixes: tuple[str, ...] = ()
    magic: bytes = b""
    read_fingerprints: Callable[[BinaryIO, Source], Iterator[Fingerprints]] | None = None
    tell_fingerprints: Recognise | None = None

    def holds_fingerprints(self, head: bytes, text_field: str) -> bool:
        """Whether a file of this format that begins so holds fingerprints."""
        if self.read is None or self.read_fingerprints is None:
            return self.read is None
        return self.tell_fingerprints is not None and self.tell_fingerprints(head, text_field)


def read_text(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """The one document of a text file, under the source's name; none for a binary file.

    A binary file is a bad record when the caller named it, and passed over when it was found in a
    folder. Other bad records: a file over the limit, bytes that are not UTF-8.
    """
    path, limit, intake = source.path, source.limit, source.intake
    data = whole(stream, limit)
    if b"\0" in data[:HEAD_BYTES]:
        if source.named:
            intake.bad(path, None, "binary file: holds NUL bytes")
        else:
            intake.pass_over(path, "binary file")
        return
    if len(data) > limit:
        intake.bad(
            path, None, f"longer than {limit} bytes",
            "give --format if it has records, such as JSON lines; a text cannot be longer",
        )
        return
    try:
        text = decoded(unmarked(data))
    except Unreadable as reason:
        hint = f"convert it to UTF-8, {SKIP_FILES}"
        intake.bad(path, reason.line, str(reason), hint=hint)
        return
    intake.markup += is_markup(data)
    intake.like_lines += is_json_lines(data[:HEAD_BYTES], source.text_field)
    yield Document(key=source.name, text=text, path=path)


FORMATS = {
    row.name: row
    for row in (
        Format("text", read_text),
        Format(
            "jsonl", read_jsonl, suffixes=(".jsonl", ".ndjson"),
            read_fingerprints=read_exported_lines, tell_fingerprints=is_exported_lines,
        ),
        Format(
            "csv", read_table, suffixes=(".csv", ".tsv"),
            read_fingerprints=read_exported_table, tell_fingerprints=is_exported_table,
        ),
        Format("npy", suffixes=(".npy",), magic=MAGIC, read_fingerprints=read_npy),
        Format(
            "hex", suffixes=(".hex",), read_fingerprints=read_digits, tell_fingerprints=is_digits
        ),
    )
}
"""By name, in the order of the help."""


def names() -> tuple[str, ...]:
    """What a caller may give as the format."""
    return (AUTO, *FORMATS)


def suffixes() -> list[str]:
    """All suffixes of formats."""
    return [suffix for row in FORMATS.values() for suffix in row.suffixes]


def holds_records(path: str) -> bool:
    """Whether a file may have several documents, by its suffix."""
    suffix = bare_suffix(path)
    return suffix == ".json" or any(
        suffix in row.suffixes for row in FORMATS.values() if row.read is not None
    )


def recognised(path: str, head: bytes, text_field: str) -> Format:
    """The format of a file by its suffix or its first bytes; else JSONL of standard input, or text.

    For files that `foreign` lets pass, so that a ``.json`` file is one of JSON lines.
    """
    if path != STDIN:
        suffix = bare_suffix(path)
        for row in FORMATS.values():
            if suffix in row.suffixes:
                return row
        if suffix == ".json":  # of others, `foreign` has told that they cannot be read
            return FORMATS["jsonl"]
    for row in FORMATS.values():
        if row.magic and head.startswith(row.magic):
            return row
        tell = row.tell_fingerprints
        if path == STDIN and tell is not None and tell(head, text_field):
            return row
    return FORMATS["jsonl" if path == STDIN else "text"]
