"""How each record of the catalog is stored, beneath its seal; see `sealed_values` for that.

    head        key "head". Head, msgpack: version, numbers, and (name, checksum) of every child
    meta        key: "options", "recipe", ... A whole value
    segments    key: segment name. SegmentRecord, msgpack: rows, horizon, bytes of the file,
                checksum of its footer, width of the header directory; then, if it has structures,
                of each: structure, name, bytes of the file, checksum of its footer, first table,
                widths of the header directories
    headers     key: segment name | table number, u2 big-endian | page number, u4 big-endian. A page
                of a header directory: little-endian uint32 first rows of PAGE_HEADERS headers; the
                last page ends with the number of rows
    pending     key: run number, u8 big-endian. PENDING header | fingerprints | ids | key offsets |
                key bytes | times | sketches | reservoir
    tombstones  key: run number, u8 big-endian. Ids deleted; see `tombstones`. A long run is a file,
                which the head names, and has no record here; see `deletion_file`

Header directories are copied out once, when a segment is first probed, and checked on the way:
first 0, monotone, last = rows. So no kernel follows a damaged offset, and no pointer into LMDB
outlives a transaction. They can be recomputed from the rows at any time.

The rows of a pending run wait until there are enough for a segment. They are sorted, so that the
run is a table like any other. Its reservoir part holds those of them that may join the index's
sample of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import accumulate, chain, starmap
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import U32
from simindex.errors import CorruptFile, InvalidOption, raised_by_a_handler
from simindex.options import IndexOptions, is_slicing
from simindex.records.sketches import record_bytes
from simindex.storage.catalog.environment import Transaction
from simindex.storage.catalog.sealed_values import joined, pack, seal, unpack, unseal
from simindex.storage.tables import deletion_file, permuted, slice_lists
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.permuted import Directories
from simindex.storage.tables.record import NAME, SegmentRecord, StructureRecord
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.sorted_rows import header_bits
from simindex.storage.tables.structure import owner_of
from simindex.storage.tables.table import Table
from simindex.storage.tables.times import LAST_TIME
from simindex.values import dataclass

MAX_COUNT = 1 << 63
"""More than there are commits, rows or bytes; what is added to it still fits 64 bits."""

LAST_GENERATION = 1 << 48
"""No index gets as far; what says it has is damaged, or made to leave no numbers for more."""

ANY_HEADERS = 1 << 20
"""Up to this many entries, a directory may belong to any number of rows: 4 MiB."""

PAGE_HEADERS = 1 << 15

PENDING = Struct("<QIIQQ")
"""Rows, words, which columns there are (`_columns`), bytes of keys, bytes of the reservoir."""

KEYED, TIMED, SKETCH_WORD = 1, 2, 4

Pages = list[tuple[bytes, bytes]]
"""Keys and sealed values of the pages of some directories."""


class Run(NamedTuple):
    """A pending run or a set of tombstones, as the head names it."""

    number: int
    rows: int
    horizon: int
    """Nothing in it is of a later commit."""
    checksum: int
    """Of its record, or of the footer of its file."""
    file: str = ""
    """Name of the file of tombstones that are not in the catalog."""

    @property
    def key(self) -> bytes:
        """Its key in the database."""
        return self.number.to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class Head:
    """All that is live, as of one commit."""

    generation: int
    appended: int
    """Rows ever appended: the next automatic id."""
    next_run: int
    """Number the next pending or tombstone run gets."""
    segments: dict[str, int] = field(default_factory=dict)
    pending: tuple[Run, ...] = ()
    tombstones: tuple[Run, ...] = ()
    values: dict[str, int] = field(default_factory=dict)
    latest: int = 0
    """The last time that a row was given; 0 in an index without times, as `expired`."""
    expired: int = 0
    """Rows of earlier times have expired."""

    def encode(self) -> bytes:
        """The head's payload."""
        times = [self.latest, self.expired]
        return pack(
            [
                1,
                [self.generation, self.appended, self.next_run, *(times if any(times) else ())],
                list(self.segments.items()),
                [[r.number, r.rows, r.horizon, r.checksum] for r in self.pending],
                [list(r if r.file else r[:4]) for r in self.tombstones],
                list(self.values.items()),
            ]
        )

    @classmethod
    def decode(cls, payload: bytes, before: Head | None = None) -> Head:
        """The head of a payload whose checksum held; `before`, of an earlier commit, saves time."""
        value = unpack("head", payload)
        try:
            version, numbers, segments, pending, tombstones, values = value
            generation, appended, next_run, latest, expired = (
                numbers if len(numbers) == 5 else (*numbers, 0, 0)
            )
            named, told = dict(segments), dict(values)
            if before is not None and named == before.segments:
                named = before.segments
            elif not all(map(NAME.fullmatch, named)):
                raise ValueError("no name of a segment")
            if before is not None and told == before.values:
                told = before.values
            elif not {str}.issuperset(map(type, told)):
                raise ValueError("no name of a value")
            if version != 1 or not {4}.issuperset(map(len, pending)):
                raise ValueError("not a head of version 1")
            files = [run[4] for run in tombstones if len(run) > 4]
            if not all(map(deletion_file.NAME.fullmatch, files)):
                raise ValueError("no name of a file of tombstones")
            waiting, deleted = tuple(starmap(Run, pending)), tuple(starmap(Run, tombstones))
            runs = waiting + deleted
            if (
                len(segments) > len(named) or len(values) > len(told)
                or len(runs) > len({run.number for run in runs}) or len(files) > len(set(files))
            ):
                raise ValueError("a name twice")
            of_runs = chain.from_iterable(run[:4] for run in runs)
            counts(*numbers, *named.values(), *told.values(), *of_runs)
            if max(latest, expired) > LAST_TIME:
                raise ValueError("no time")
            if generation >= LAST_GENERATION:
                raise ValueError("a commit that is never reached")
            return cls(
                generation, appended, next_run, named, waiting, deleted, told, latest, expired
            )
        except (TypeError, ValueError) as error:
            if raised_by_a_handler(error):
                raise
            raise CorruptFile("the catalog's head cannot be decoded") from error

    @property
    def pending_rows(self) -> int:
        """Rows in pending runs."""
        return sum(run.rows for run in self.pending)


class SealedHead(NamedTuple):
    """The head of one commit: equal values are the same commit."""

    value: bytes
    """As the catalog stores it."""
    head: Head


def counts(*values: Any) -> None:
    """Raises ValueError unless all are numbers of commits, rows or bytes; at once, because a
    reader spends this time after each commit."""
    if not {int}.issuperset(map(type, values)) or (
        values and (min(values) < 0 or max(values) > MAX_COUNT)
    ):
        raise ValueError("no count")


def count(value: Any) -> int:
    """A number of commits, rows or bytes; ValueError if the value is none."""
    if not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise ValueError("no count")
    return value


def stored_options(payload: bytes | None) -> IndexOptions:
    """The options in the catalog's record of them; the usual ones where it has none.

    Raises CorruptFile if the record describes no options.
    """
    values = unpack("options", payload if payload is not None else b"\x80")
    try:
        if not isinstance(values, dict):
            raise InvalidOption("they are not a map", found=type(values).__name__)
        return IndexOptions.from_dict(values)
    except InvalidOption as error:
        raise CorruptFile(
            "the catalog's record meta/options does not describe the options of an index: "
            f"{error.what}",
            path="meta/options",
        ) from error


def encode_segment(record: SegmentRecord) -> bytes:
    """The payload of a segment's record."""
    packed: list[Any] = [
        record.rows, record.horizon, record.file_bytes, record.footer_checksum,
        record.header_bits,
    ]
    if record.structures:
        packed.append([
            [s.structure, s.name, s.file_bytes, s.footer_checksum, s.first_table,
             list(s.header_bits)]
            for s in record.structures
        ])
    return pack(packed)


def decode_segment(name: str, payload: bytes) -> SegmentRecord:
    """The record in a payload whose checksum held."""
    try:
        fields = unpack(name, payload)
        if not isinstance(fields, list):
            raise TypeError("not a list")
        rows, horizon, file_bytes, footer, header_bits = (int(v) for v in fields[:5])
        more = fields[5:]
        structures = tuple(_decode_structure(name, value) for value in (more[0] if more else ()))
        for _, width in ((0, header_bits), *(d for s in structures for d in s.directories)):
            # Nobody writes a directory of many more headers than rows, which takes memory.
            if not 0 <= width <= 32 or 1 << width > max(ANY_HEADERS, rows):
                raise ValueError("out of range")
        if len(more) > 1 or len({found.structure for found in structures}) < len(structures):
            raise ValueError("not a record of this version")
    except (TypeError, ValueError) as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(f"the catalog's record of {name} is not complete", path=name) from error
    return SegmentRecord(name, rows, horizon, file_bytes, footer, header_bits, structures)


def _decode_structure(segment: str, value: Any) -> StructureRecord:
    structure, name, file_bytes, footer, first_table, header_bits = value
    record = StructureRecord(
        str(structure), str(name), count(file_bytes), count(footer), count(first_table),
        tuple(count(width) for width in header_bits),
    )
    kind = slice_lists if is_slicing(record.structure) else permuted
    if (
        not kind.NAME.fullmatch(record.name)
        or owner_of(record.name) != segment
        or max(record.header_bits, default=0) > 32
        or not 1 <= record.first_table <= permuted.MAX_TABLE + 1 - len(record.header_bits)
    ):
        raise ValueError("out of range")
    return record


def page_key(segment: str, table: int, page: int) -> bytes:
    """The LMDB key of one page."""
    return segment.encode() + table.to_bytes(2, "big") + page.to_bytes(4, "big")


def page_count(header_bits: int) -> int:
    """Pages of a directory of 2**header_bits + 1 entries."""
    return -(-(1 << header_bits) // PAGE_HEADERS)


def header_pages(segment: str, table: int, directory: U32) -> Iterator[tuple[bytes, bytes]]:
    """(key, payload) of each page of a directory (2**t + 1,)."""
    headers = len(directory) - 1
    last = -(-headers // PAGE_HEADERS) - 1
    for page in range(last + 1):
        start = page * PAGE_HEADERS
        stop = headers + 1 if page == last else start + PAGE_HEADERS
        yield page_key(segment, table, page), directory[start:stop].astype("<u4").tobytes()


def sealed_pages(segment: str, directories: Directories) -> Pages:
    """A segment's header directories as they are stored; 15 ms for 25 MB, so made ahead of it."""
    return [
        (key, seal("headers", key, payload))
        for table, directory in directories
        for key, payload in header_pages(segment, table, directory)
    ]


def assemble_directory(
    segment: str, table: int, header_bits: int, rows: int, get: Callable[[bytes], bytes]
) -> U32:
    """The directory (2**header_bits + 1,), copied out of its pages and checked.

    `get` returns the payload of a key, already unsealed. Raises CorruptFile when the pages do not
    make a directory over `rows` rows.
    """
    # An array of numpy's own, which asks for huge pages: every probe reads it at a random place.
    directory = np.empty((1 << header_bits) + 1, "<u4")
    filled = 0
    for page in range(page_count(header_bits)):
        part = np.frombuffer(get(page_key(segment, table, page)), np.uint8)
        if len(part) % 4 or filled + len(part) // 4 > len(directory):
            raise CorruptFile(f"the header directory of {segment} has a wrong size", path=segment)
        directory[filled : filled + len(part) // 4] = part.view("<u4")
        filled += len(part) // 4
    if filled != len(directory):
        raise CorruptFile(f"the header directory of {segment} has a wrong size", path=segment)
    if directory[0] != 0 or directory[-1] != rows or (directory[1:] < directory[:-1]).any():
        raise CorruptFile(f"the header directory of {segment} is not in order", path=segment)
    return directory


def encode_pending(table: Table, reservoir: Reservoir) -> bytes:
    """The payload of a pending run."""
    sample = reservoir.encode()
    keys, key_bytes = table.keys, 0
    parts = [table.fingerprints.astype("<u8").tobytes(), table.ids.astype("<u8").tobytes()]
    if keys is not None:
        key_bytes = len(keys.data)
        parts += [keys.offsets.astype("<i8").tobytes(), keys.data.tobytes()]
    if table.times is not None:
        parts.append(table.times.astype("<u4").tobytes())
    sketch_words = 0
    if table.sketches is not None:
        sketch_words = table.sketches.shape[1] // 8
        parts.append(table.sketches.tobytes())
    header = PENDING.pack(
        len(table), table.fingerprints.shape[1],
        _columns(keyed=keys is not None, timed=table.times is not None, sketch_words=sketch_words),
        key_bytes, len(sample),
    )
    return b"".join([header, *parts, sample])


def _columns(*, keyed: bool, timed: bool, sketch_words: int) -> int:
    return KEYED * keyed + TIMED * timed + SKETCH_WORD * sketch_words


def decode_pending(
    name: str, payload: bytes, *, rows: int, words: int, keyed: bool, horizon: int,
    timed: bool = False, sketch_words: int = 0,
) -> tuple[Table, Reservoir]:
    """The table and the reservoir part of a payload whose checksum held.

    Raises CorruptFile if it holds no such rows, as the head and the index's options describe.
    """
    if len(payload) < PENDING.size:
        raise CorruptFile(f"the {name} ends too early", path=name)
    *found, key_bytes, sample_bytes = PENDING.unpack_from(payload)
    columns = _columns(keyed=keyed, timed=timed, sketch_words=sketch_words)
    if found != [rows, words, columns]:
        raise CorruptFile(f"the {name} is not the one that the head names", path=name)
    sizes = [8 * rows * words, 8 * rows]
    if keyed:
        sizes += [8 * (rows + 1), key_bytes]
    if timed:
        sizes.append(4 * rows)
    if sketch_words:
        sizes.append(rows * record_bytes(sketch_words))
    # Python integers do not wrap, so a forged count cannot fold back into range.
    *starts, end = accumulate(sizes, initial=PENDING.size)
    if end + sample_bytes != len(payload):
        raise CorruptFile(f"the {name} has a wrong size", path=name)
    fingerprints = np.frombuffer(payload, "<u8", rows * words, starts[0]).reshape(rows, words)
    ids = np.frombuffer(payload, "<u8", rows, starts[1])
    keys = None
    if keyed:
        keys = KeyHeap(
            np.frombuffer(payload, "<i8", rows + 1, starts[2]),
            np.frombuffer(payload, np.uint8, key_bytes, starts[3]),
        )
    if keys is not None and not (
        keys.offsets[0] == 0 and keys.offsets[-1] == key_bytes and keys.within().all()
    ):
        raise CorruptFile(f"the {name} has keys that are out of bounds", path=name)
    sketches = None
    if sketch_words:
        item = record_bytes(sketch_words)
        sketches = np.frombuffer(payload, np.uint8, rows * item, starts.pop()).reshape(rows, item)
    times = np.frombuffer(payload, "<u4", rows, starts[-1]) if timed else None
    table = Table(
        name, fingerprints, ids, keys, horizon=horizon, header_bits=header_bits(rows), times=times,
        sketches=sketches,
    )
    return table, Reservoir.decode(name, payload[end:], words)


class Reading:
    """Unsealed records within one transaction."""

    def __init__(self, txn: Transaction) -> None:
        self._txn = txn

    def head(self, known: SealedHead | None = None) -> SealedHead:
        """The head, and the bytes that it is stored as; `known` if it is that, which saves time."""
        value = self._txn.get("head", b"head")
        if known is not None and value == known.value:
            return known
        before = None if known is None else known.head
        return SealedHead(value or b"", Head.decode(unseal("head", b"head", value), before))

    def value(self, head: Head, name: str) -> bytes | None:
        """A whole value of `meta`, or None if the head names none."""
        if name not in head.values:
            return None
        return joined("meta", name.encode(), head.values[name], self._txn.get)

    def run(self, database: str, run: Run) -> bytes:
        """A pending or tombstone run's payload."""
        return joined(database, run.key, run.checksum, self._txn.get)

    def segment(self, head: Head, name: str) -> SegmentRecord:
        """A live segment's record."""
        key = name.encode()
        payload = unseal("segments", key, self._txn.get("segments", key), head.segments[name])
        return decode_segment(name, payload)

    def directory(self, record: SegmentRecord, table: int = 0) -> U32:
        """A header directory uint32 (2**t + 1,) of a segment, copied out and checked."""

        def get(key: bytes) -> bytes:
            return unseal("headers", key, self._txn.get("headers", key))

        width = dict(record.directories)[table]
        return assemble_directory(record.name, table, width, record.rows, get)
