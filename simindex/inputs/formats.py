"""The formats of inputs: a name, how a file is recognised, and the reader. A new one is one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from simindex.inputs.foreign_formats import HTML_SUFFIXES, bare_suffix, is_array, is_markup
from simindex.inputs.magics import (
    ARC_MAGIC,
    ARROW_MAGIC,
    NPY_MAGIC,
    PARQUET_MAGIC,
    STREAM_MAGIC,
    WARC_MAGIC,
)
from simindex.inputs.streams import STDIN
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.inputs.document import Document, Source
    from simindex.inputs.document_columns import Documents, Later
    from simindex.inputs.fingerprints import Fingerprints, Recognise

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Format:
    """How a file stores documents, or fingerprints, or either.

    Parameters
    ----------
    read : callable, or None for a format of fingerprints alone
        Documents of a decompressed stream, also such as wait for their texts, one record in memory
        at a time. What cannot be read goes to ``source.intake.bad``, or is raised as
        `streams.Unreadable`.
    suffixes : tuple of str
        In lower case; a file with one of them has this format, before that of a compression.
    magics : tuple of bytes
        First bytes by which a file is recognised, whatever its suffix, also within a folder and on
        standard input.
    tell : callable, optional
        Whether first bytes are of this format, where a file has no suffix of another.
    read_fingerprints : callable, or None for a format of texts alone
        Fingerprints of a decompressed stream, some rows at a time; otherwise as `read`.
    tell_fingerprints : callable, optional
        Where a format holds either: whether the first bytes are those of fingerprints. Standard
        input that begins so has this format.
    goes_on : bool
        Whether the reader goes on behind damage, also where that is in the first bytes.
    """

    name: str
    read: Callable[[BinaryIO, Source], Iterator[Document | Documents | Later]] | None = None
    suffixes: tuple[str, ...] = ()
    magics: tuple[bytes, ...] = ()
    tell: Callable[[bytes], bool] | None = None
    read_fingerprints: Callable[[BinaryIO, Source], Iterator[Fingerprints]] | None = None
    tell_fingerprints: Recognise | None = None
    goes_on: bool = False

    def holds_fingerprints(self, head: bytes, text_field: str) -> bool:
        """Whether a file of this format that begins so holds fingerprints."""
        if self.read is None or self.read_fingerprints is None:
            return self.read is None
        return self.tell_fingerprints is not None and self.tell_fingerprints(head, text_field)


_READERS = {
    "arrow_files": ("read_arrow",),
    "archives": ("read_arc", "read_warc"),
    "csv_table": ("read_table",),
    "digits": ("is_digits", "read_digits"),
    "exports": (
        "is_exported_lines", "is_exported_table", "read_exported_lines", "read_exported_table",
    ),
    "json_array": ("read_array",),
    "json_lines": ("read_jsonl",),
    "markup": ("read_html",),
    "npy": ("read_npy",),
    "parquet_files": ("read_parquet",),
    "plain_text": ("read_text",),
}
"""Module -> its functions, each of which is imported when a file first needs it."""

_HOME = {name: module for module, names in _READERS.items() for name in names}


def _late(name: str) -> Callable[..., Any]:
    def called(*given: Any) -> Any:
        return getattr(import_module(f"simindex.inputs.{_HOME[name]}"), name)(*given)

    return called


FORMATS = {
    row.name: row
    for row in (
        Format("text", _late("read_text")),
        Format(
            "jsonl", _late("read_jsonl"), suffixes=(".jsonl", ".ndjson"),
            read_fingerprints=_late("read_exported_lines"),
            tell_fingerprints=_late("is_exported_lines"),
        ),
        Format("json", _late("read_array"), tell=is_array),
        Format(
            "csv", _late("read_table"), suffixes=(".csv", ".tsv"),
            read_fingerprints=_late("read_exported_table"),
            tell_fingerprints=_late("is_exported_table"),
        ),
        Format("html", _late("read_html"), suffixes=HTML_SUFFIXES, tell=is_markup),
        Format(
            "warc", _late("read_warc"), suffixes=(".warc", ".wet", ".wat"), magics=(WARC_MAGIC,),
            goes_on=True,
        ),
        Format("arc", _late("read_arc"), suffixes=(".arc",), magics=(ARC_MAGIC,), goes_on=True),
        Format("parquet", _late("read_parquet"), suffixes=(".parquet",), magics=(PARQUET_MAGIC,)),
        Format(
            "arrow", _late("read_arrow"), suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
            magics=(ARROW_MAGIC, STREAM_MAGIC),
        ),
        Format("npy", suffixes=(".npy",), magics=(NPY_MAGIC,), read_fingerprints=_late("read_npy")),
        Format(
            "hex", suffixes=(".hex",), read_fingerprints=_late("read_digits"),
            tell_fingerprints=_late("is_digits"),
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
    """The format of a file by its first bytes or its suffix; else JSONL of standard input, or text.

    For files that `foreign_formats` lets pass, so that a ``.json`` file is an array or JSON lines.
    """
    for row in FORMATS.values():
        if row.magics and head.startswith(row.magics):
            return row
    if path != STDIN:
        suffix = bare_suffix(path)
        if suffix == ".json" or suffix in FORMATS["jsonl"].suffixes:
            return FORMATS["json" if is_array(head) else "jsonl"]
        for row in FORMATS.values():
            if suffix in row.suffixes:
                return row
    for row in FORMATS.values():
        if row.tell is not None and row.tell(head) and (path == STDIN or row.name != "json"):
            return row
        tell = row.tell_fingerprints
        if path == STDIN and tell is not None and tell(head, text_field):
            return row
    return FORMATS["jsonl" if path == STDIN else "text"]
