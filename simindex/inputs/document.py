"""What a reader takes and gives: a source in; documents, and an account of what was none, out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from sys import getsizeof
from typing import Any, NamedTuple

from simindex.checks import is_int
from simindex.errors import InvalidInput
from simindex.inputs.fields import MISSING, field_of
from simindex.inputs.made_names import MadeNames
from simindex.options import MAX_KEY_BYTES
from simindex.values import dataclass

FINGERPRINTS = "fingerprints"
"""Why files of folders are passed over where texts are read."""


class Document(NamedTuple):
    """One text with its name and where it was read."""

    key: str
    text: str
    path: str
    """The file as the caller named it, or `-`."""
    line: int | None = None
    """Line its record starts on, from 1; None where the text is a whole file."""
    numbered: bool = False
    """Whether its record has no id, so that the key is made of a name and the line."""
    row: Mapping[str, Any] | None = None
    """The cells of its row by column, or the headers of its record in an archive."""
    raw: bytes | None = None
    """The line as read, with its line end if it had one, without a byte order mark; JSONL only, and
    not where its record has an id and nobody asked for all fields."""

    @property
    def place(self) -> str:
        """Where it was read: the file, with the line of its record."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """All fields of its record; None for a text file, and where they were not asked for.

        Those of a line are read from it at each call: a record of many small values takes thirty
        times the memory of its line.
        """
        if self.raw is None:
            return self.row
        fields: dict[str, Any] = json.loads(self.raw)
        return fields

    @property
    def held_bytes(self) -> int:
        """What it takes in memory."""
        key, text, _, _, _, row, raw = self
        held = getsizeof(text) + getsizeof(key)
        if row is None and raw is None:
            return held
        if raw is not None:
            held += len(raw)
        if row is not None:
            held += sum(getsizeof(cell) for cell in row.values() if cell is not text)
        return held


Taken = Callable[[], str]
"""Waits for the text of a page; Unusable says why there is none."""


SKIP_RECORDS = "--max-errors N skips up to N bad records"

SKIP_FILES = "leave this file out, or skip up to N such files with --max-errors N"


MOST_KINDS = 1 << 10
"""So many kinds of other records are counted apart: archives name them as they like."""

KIND_CHARACTERS = 80
"""So much of the name of such a kind is kept."""

OTHER_KINDS = "of other kinds"


NAMED_FILES = 3
"""Of files that are not read, so many are named for each reason."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record, or a whole file, that gave no document."""

    path: str
    line: int | None
    """None when the file as a whole is the problem."""
    reason: str
    remedy: str | None = None
    """What makes a document of it, where that is known."""

    @property
    def what(self) -> str:
        """Where it is, and why it is bad."""
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.reason}"

    def __str__(self) -> str:
        return self.what if self.remedy is None else f"{self.what}: {self.remedy}"


@dataclass(slots=True)
class Intake:
    """Counts what reading meets and decides when bad records are too many.

    Parameters
    ----------
    max_errors : int or None
        Bad records to skip; one more raises InvalidInput. None skips any number.
    report : callable
        Gets every bad record that is skipped, as it is met.
    """

    max_errors: int | None = 0
    report: Callable[[BadRecord], None] | None = None
    bad_records: int = 0
    files: int = 0
    documents: int = 0
    read_bytes: int = 0
    """Of files, as they are on the disk: of compressed ones their compressed bytes."""
    numbered: int = 0
    """Records without an id, which are named by their line."""
    looked_for: set[str] = field(default_factory=set)
    """The fields in which these have none: that of the file, or all of `ID_FIELDS`."""
    id_fields: Counter[str] = field(default_factory=Counter)
    """Fields that ids were taken from, and of how many records."""
    markup: int = 0
    """HTML files that were read as texts, markup included."""
    like_lines: int = 0
    """Files that were read as one text each, and look like JSON lines."""
    other_records: Counter[str] = field(default_factory=Counter)
    """Records of archives that are no pages or texts, by what they are; not errors."""
    cut_pages: Counter[str] = field(default_factory=Counter)
    """Documents of archives that are only the start of a page, by how that is known."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Files in folders that were not read, by the reason; not errors."""
    first_passed_over: dict[str, list[str]] = field(default_factory=dict)
    """The first few of them, by the reason."""
    bits: int | None = None
    sketch_bits: int | None = None
    """Width of the fingerprints; None until the first one, or the caller, decides."""
    put_off: Callable[[Callable[[], None]], bool] | None = None
    """Keeps the note of a bad record until the documents before it are there; False if they are."""

    def pass_by(self, kind: str) -> None:
        """Count a record of an archive that is no page or text, by what it is."""
        kind = kind[:KIND_CHARACTERS]
        if kind not in self.other_records and len(self.other_records) >= MOST_KINDS:
            kind = OTHER_KINDS
        self.other_records[kind] += 1

    def count_bytes(self, size: int) -> None:
        """Note that so much more was read of the files."""
        self.read_bytes += size

    def pass_over(self, path: str, reason: str) -> None:
        """Note a file, or an index, of a folder that is not read."""
        self.passed_over[reason] += 1
        if self.passed_over[reason] <= NAMED_FILES:
            self.first_passed_over.setdefault(reason, []).append(path)

    def bad(
        self, path: str, line: int | None, reason: str, remedy: str | None = None, *,
        hint: str | None = None,
    ) -> None:
        """Note a bad record; InvalidInput when it is one more than may be skipped.

        The error names the remedy, else the hint, else how bad records are skipped.
        """
        record = BadRecord(path, line, reason, remedy)
        if self.put_off is None or not self.put_off(partial(self._note, record, hint)):
            self._note(record, hint)

    def _note(self, record: BadRecord, hint: str | None) -> None:
        self.bad_records += 1
        if self.max_errors is not None and self.bad_records > self.max_errors:
            more = f" (bad record {self.bad_records})" if self.max_errors else ""
            raise InvalidInput(
                f"{record.what}{more}",
                remedy=record.remedy or hint
                or (SKIP_FILES if record.line is None else SKIP_RECORDS),
                path=record.path, line=record.line, reason=record.reason,
                bad_records=self.bad_records,
            )
        if self.report is not None:
            self.report(record)


@dataclass(frozen=True, slots=True)
class Source:
    """Where bytes come from, and what to make of them."""

    path: str
    """The file as the caller named it, or `-`; for messages."""
    name: str
    """What documents without an id are named after: the path as reached from the input, with `/`.
    """
    intake: Intake
    limit: int
    """Longest line, row or text file, in bytes."""
    named: bool = True
    """Whether the caller named the file; else it was found in a folder."""
    text_field: str = "text"
    id_field: str | None = None
    """None: one of `ID_FIELDS`, the first that a record has."""
    extract: Callable[[bytes, str | None], Taken] | None = None
    """Begins to take the text of an HTML page, of its bytes and the character set that was declared
    with it, if any. None keeps the markup."""
    all_fields: bool = False
    """Whether documents keep the other fields of their lines, and the other columns."""
    made: MadeNames = field(default_factory=MadeNames)
    """The names that the reading has made so far."""
    in_columns: bool = False
    """Whether documents may come as `documents.Documents`, some at once."""
    is_file: bool = False
    """Whether the bytes are all there, so that nobody waits where more are read at once."""


    @property
    def keeps_rows(self) -> bool:
        """Whether documents have the cells of their rows, and the headers of their records.

        Who takes columns asks for other fields only with `all_fields`, or by `id_field`.
        """
        return not self.in_columns or self.all_fields or self.id_field is not None


ID_FIELDS = ("id", "key", "_id", "uuid", "guid", "doc_id", "url", "uri")
"""Where an id is looked for unless the caller names the field."""


class Ids:
    """Names the records of one source: by the id field, else by the line.

    Unless the caller named the field, the first record that has one of `ID_FIELDS` decides which
    it is, for the whole source. Records of archives have other `fields` that name them.
    """

    def __init__(
        self, source: Source, kind: str = "field", fields: tuple[str, ...] = ID_FIELDS
    ) -> None:
        self._source, self._kind, self._fields = source, kind, fields
        self.field: str | None = source.id_field
        self.numbered: bool = False
        """Whether the record named last has no id."""

    def key_of(self, record: Mapping[str, Any], line: int) -> str:
        """The key of a record that starts on a line. Raises Unusable for what cannot be an id."""
        field = self.field
        if field is None:
            text_field = self._source.text_field
            found = (
                name for name in self._fields if name != text_field and _is_id(record, name)
            )
            field = self.field = next(found, None)
        value = MISSING if field is None else field_of(record, field)
        value = None if value is MISSING else value
        self.numbered = value is None
        if field is None or value is None:
            return self._source.made.make(self._source.name, line)
        key = key_of(value, field, self._kind)
        if not self._source.made.give(key):
            raise Unusable(
                f"{self._kind} {field!r} is {key!r}, which names a record before it that has no id",
                "give that record an id, or this one another",
            )
        return key

    def count(self) -> None:
        """Notes in the account that the record named last has become a document."""
        intake = self._source.intake
        if self.numbered:
            intake.numbered += 1
            intake.looked_for.update(self._fields if self.field is None else (self.field,))
        elif self.field is not None:
            intake.id_fields[self.field] += 1


def _is_id(record: Mapping[str, Any], field: str) -> bool:
    value = record.get(field)
    return isinstance(value, str) or is_int(value) or (field == ID_FIELDS[0] and value is not None)


class Unusable(Exception):
    """A field's value cannot serve as text or key; the message says why."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy
        """What to do about it, unless that is to skip the record."""


def text_of(value: object, field: str) -> str:
    """The value of the text field, which must be a string of Unicode characters."""
    if not isinstance(value, str):
        raise Unusable(f"field {field!r} is {_kind(value)}, not a string")
    if not value.isascii():
        _require_unicode(value, field)
    return value


def key_of(value: object, field: str, kind: str, *, may_be_empty: bool = False) -> str:
    """The key that a field holds; Unusable says why it is none."""
    if isinstance(value, str) and value.isascii() and 0 < len(value) <= MAX_KEY_BYTES:
        return value
    if value == "" and not may_be_empty:
        whole = "whole " if kind == "column" else ""
        raise Unusable(
            f"{kind} {field!r} is empty", f"give an id, or leave the {whole}{kind} out"
        )
    if is_int(value):
        value = str(value)
    if not isinstance(value, str):
        raise Unusable(f"field {field!r} is {_kind(value)}, not a string or a whole number")
    _require_unicode(value, field)
    if len(value.encode()) > MAX_KEY_BYTES:
        raise Unusable(f"field {field!r} is longer than {MAX_KEY_BYTES} bytes")
    return value


def _require_unicode(value: str, field: str) -> None:
    # Half of a surrogate pair can be written in JSON and in no UTF-8 file or index.
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unusable(
            f"field {field!r} holds an unpaired surrogate at character {error.start}"
        ) from None


def _kind(value: object) -> str:
    names = {
        dict: "an object", list: "a list", bool: "a boolean", type(None): "null", bytes: "bytes",
    }
    return names.get(type(value), "a number")
