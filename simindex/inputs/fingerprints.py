"""Fingerprints that were made elsewhere: what readers of them give, and what they check.

    digits     16 hexadecimal digits for each 64 bits, the first bit first
    width      that of the first fingerprint of all inputs, unless the caller names it
    sketch     digits in a field of their own, of one width, too; all rows have one, or none
    size       about how many distinct features the text has, with a sketch; 0 or left out if that
               is not known
    names      keys, ids or none, the same for all rows of a source
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from simindex.errors import InvalidInput
from simindex.inputs.document import ID_FIELDS, Intake, Source, Unusable, key_of
from simindex.inputs.streams import Unreadable, lines, unmarked
from simindex.options import MAX_BITS
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import U64
    from simindex.records.batch import Batch

CHUNK_ROWS = 1 << 16
"""Rows that a reader gives at once."""

FIELD = "fingerprint"
"""The field or column of digits."""

SKETCH = "sketch"
"""The field or column of the digits of sketches."""

SIZE = "size"
"""The field or column of the numbers of features."""

MOST_FEATURES = 1 << 62

KEY_HEX = "key_hex"
"""A key of bytes, as hexadecimal digits."""

NAME_FIELDS = ("key", KEY_HEX, *(name for name in ID_FIELDS if name != "key"))
"""Where the name of a row is looked for, the first that the first row has."""

_DIGITS = re.compile("[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Some rows of one source, in its order."""

    batch: Batch
    """Fingerprints, with ids or keys if the source names its rows."""
    path: str
    """The file as the caller named it, or `-`."""
    lines: Sequence[int]
    """Line of each row, from 1; of an array its number, from 0."""
    pattern: str = "{}:{}"
    """How a row's place is written, of the file and its line."""

    def part(self, start: int, stop: int) -> Fingerprints:
        """Rows start to stop."""
        import numpy as np

        if start == 0 and stop >= len(self.batch):
            return self
        rows = np.arange(start, min(stop, len(self.batch)))
        return replace(self, batch=self.batch.take(rows), lines=self.lines[start:stop])

    def place(self, row: int) -> str:
        """Where a row was read."""
        return self.pattern.format(self.path, self.lines[row])

    def name(self, row: int) -> str | bytes:
        """What a row is called: by its key, its id, or its place."""
        batch = self.batch
        if batch.keys is not None:
            return batch.keys[row]
        return self.place(row) if batch.ids is None else str(batch.ids[row])


def words(digits: Sequence[str]) -> U64:
    """uint64 (n, W): fingerprints of n times the same number of digits."""
    import numpy as np

    joined = bytes.fromhex("".join(digits))
    return np.frombuffer(joined, ">u8").reshape(len(digits), -1).astype(np.uint64)


def checked_digits(value: object, intake: Intake) -> str:
    """The digits of one fingerprint, of the width of the others; Unusable says what is wrong."""
    digits = _digits(value, FIELD)
    require_width(4 * len(digits), intake)
    return digits


def checked_sketch(value: object, intake: Intake) -> str | None:
    """The same for a sketch; None if the rows have none."""
    digits = None if value is None or value == "" else _digits(value, SKETCH)
    bits = 0 if digits is None else 4 * len(digits)
    if intake.sketch_bits is None:
        intake.sketch_bits = bits
    if bits != intake.sketch_bits:
        raise Unusable(
            f"{_sketch_of(bits)}, and {_sketch_of(intake.sketch_bits)} is needed",
            "build another index of such rows",
        )
    return digits


def checked_size(value: object) -> int:
    """A number of features; 0 if it is not known."""
    if value is None or value == "":
        return 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_FEATURES:
        raise Unusable(f"field {SIZE!r} is {value!r:.40}, which is not a number of features")
    return value


def _sketch_of(bits: int) -> str:
    return f"a sketch of {bits} bits" if bits else "no sketch"


def _digits(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise Unusable(f"field {field!r} is {_kind(value)}, not hexadecimal digits")
    if not _DIGITS.fullmatch(value) or len(value) % 16 or len(value) > MAX_BITS // 4:
        raise Unusable(
            f"{value[:80]!r} is not a {field}: 16 hexadecimal digits for each 64 bits, "
            f"{MAX_BITS} bits at most"
        )
    return value


def require_width(bits: int, intake: Intake) -> None:
    """Notes the width of the first fingerprint; Unusable if another one has another width."""
    if intake.bits is None:
        intake.bits = bits
    if bits != intake.bits:
        raise Unusable(
            f"a fingerprint of {bits} bits, and {intake.bits} are needed",
            f"build another index of those of {bits} bits",
        )


Name = str | bytes | int | None
"""A key, an id, or nothing."""

Row = tuple[object, Name, object, object]
"""Digits of a fingerprint, its name, digits of a sketch, and its number of features; None or empty
without one."""

T = TypeVar("T")


def gathered(
    source: Source, records: Iterable[tuple[int, T]], parse: Callable[[T], Row]
) -> Iterator[Fingerprints]:
    """The rows of some records with their lines, a chunk at a time.

    `parse` gives digits and name of a record. What it raises as Unusable or Unreadable
    makes a bad record, and so does a row that does not fit those before. What `records` raises is
    raised once all rows before it are given.
    """
    gathering = _Gathering(source)
    try:
        for line, record in records:
            try:
                full = gathering.add(*parse(record), line)
            except (Unusable, Unreadable) as reason:
                source.intake.bad(source.path, line, str(reason), reason.remedy)
                continue
            if full:
                yield from gathering.chunk()
    except (Unreadable, InvalidInput):
        yield from gathering.chunk()
        raise
    yield from gathering.chunk()


def record_lines(stream: BinaryIO, source: Source) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, without empty ones; one over the limit is a bad record."""
    for number, line in lines(stream, source.limit):
        if line is None:
            source.intake.bad(source.path, number, f"line longer than {source.limit} bytes")
            continue
        if number == 1:
            line = unmarked(line)
        if line and not line.isspace():
            yield number, line


class _Gathering:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._kind: type | None = None
        self._first = True
        self._clear()

    def _clear(self) -> None:
        self._digits: list[str] = []
        self._sketches: list[str] = []
        self._sizes: list[int] = []
        self._names: list[Any] = []
        self._lines: list[int] = []

    def add(
        self, digits: object, name: Name, sketch: object, size: object, line: int
    ) -> bool:
        """Takes a row; whether a chunk is full. Unusable if it does not fit those before."""
        checked = checked_digits(digits, self._source.intake)
        further = checked_sketch(sketch, self._source.intake)
        features = 0 if further is None else checked_size(size)
        kind = None if name is None else type(name)
        if self._first:
            self._first, self._kind = False, kind
        if kind is not self._kind:
            raise Unusable(f"has {_NAMED[kind]}, and rows before it {_NAMED[self._kind]}")
        self._digits.append(checked)
        if further is not None:
            self._sketches.append(further)
            self._sizes.append(features)
        self._names.append(name)
        self._lines.append(line)
        return len(self._digits) >= CHUNK_ROWS

    def chunk(self) -> Iterator[Fingerprints]:
        """What was taken since the last chunk, if anything."""
        import numpy as np

        from simindex.records.batch import Batch

        if self._digits:
            named: dict[str, Any] = {}
            if self._kind is int:
                named = {"ids": np.array(self._names, np.uint64)}
            elif self._kind is not None:
                named = {"keys": self._names}
            if self._sketches:
                named |= {
                    "sketch": words(self._sketches), "features": np.array(self._sizes, np.int64)
                }
            batch = Batch(words(self._digits), **named)
            part = Fingerprints(batch, self._source.path, self._lines)
            self._clear()
            yield part


_NAMED: dict[type | None, str] = {
    int: "an id", str: "a key", bytes: "a key of bytes", None: "no name",
}


class RowNames:
    """Names rows of one source by the field that the caller named, or the first there is."""

    def __init__(self, source: Source) -> None:
        self._asked = source.id_field
        self._field = source.id_field
        self._as_number: bool | None = None

    def of(self, record: Mapping[str, Any]) -> Name:
        """The key or id of a row; None if the rows have no names. Raises Unusable."""
        field = self._field
        if field is None:
            field = self._field = next((name for name in NAME_FIELDS if name in record), "")
        if not field:
            return None
        if field not in record:
            raise Unusable(f"has no field {field!r}, which names the other rows")
        value = record[field]
        if field == KEY_HEX and self._asked is None:
            try:
                return bytes.fromhex(value)
            except (TypeError, ValueError):
                raise Unusable(f"field {field!r} is not hexadecimal digits") from None
        if field == "id" and self._asked is None:
            if self._as_number is None:
                self._as_number = _as_id(value) is not None
            if self._as_number:
                return _required_id(value)
        return key_of(value, field, "field", may_be_empty=field == "key")


def _as_id(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 1 << 64 else None


def _required_id(value: object) -> int:
    number = _as_id(value)
    if number is None:
        raise Unusable(
            f"field 'id' is {value!r:.40}, which is not a whole number from 0 to 2**64 - 1"
        )
    return number


def _kind(value: object) -> str:
    return "null" if value is None else f"a value of type {type(value).__name__}"


Recognise = Callable[[bytes, str], bool]
"""Whether the first bytes of a file are those of fingerprints and not of texts, whose field has
the given name."""
