"""What is part of the index: the head, and the records it names.

    database     key                       payload
    head         "head"                    Head: generation, and (name, checksum) of every child
    meta         "options" "recipe" ...    whole values
    segments     segment name              SegmentRecord
    headers      see headers.py            pages of header directories
    pending      run number, u8 big-endian rows that are not yet in a segment
    tombstones   run number, u8 big-endian ids deleted

Invariants
1. Every value is sealed: payload, then the CRC-32C of database, key and payload. LMDB itself has no
   checksums.
2. The head names each child with its checksum, so a missing, stale or swapped record is an error.
   Reads are point gets.
3. A commit is one LMDB transaction, made only while the head is still the one the edit began from:
   what the head does not name is not part of the index. Of such there are only pages of `headers`,
   stored ahead of the commit that names their segment.
4. A payload of `meta`, `pending` and `tombstones` is stored in parts of at most 128 KiB, the size
   of a page of headers, so that LMDB, which needs one stretch of pages for each value, finds the
   space of old ones again.

       key              number of parts u4 | CRC-32C of the whole payload | first part
       key, part u4 BE  further parts
5. A commit loses no row. Every row of a table that it drops, and every row that it appends, is in a
   table that it adds, or was deleted. The transaction counts this, and refuses a commit in which a
   row is missing. Deleted rows are those of each table that tombstones were found to cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lmdb
import msgpack
import numpy as np

from simindex._kernels import _native
from simindex.errors import (
    CommitFailed,
    CorruptFile,
    SimindexError,
    StorageFailed,
    StorageFull,
    raised_by_a_handler,
)
from simindex.options import is_slicing
from simindex.storage.catalog import headers
from simindex.storage.catalog.environment import (
    Environment,
    InTransaction,
    Transaction,
    system_error,
)
from simindex.storage.files.refusals import NO_SPACE, no_space
from simindex.storage.tables import permuted, slicelist
from simindex.storage.tables.permuted import Directories
from simindex.storage.tables.record import NAME, SegmentRecord, StructureRecord
from simindex.storage.tables.structure import UNDECODABLE, owner_of

MAX_HEAD_ITEMS = 1 << 20
MAX_COUNT = 1 << 63
"""More than there are commits, rows or bytes; what is added to it still fits 64 bits."""

LAST_GENERATION = 1 << 48
"""No index gets as far; what says it has is damaged, or made to leave no numbers for more."""

ANY_HEADERS = 1 << 20
"""A directory of so many may be of any rows: 4 MiB."""

PART_BYTES = 1 << 17

Written = tuple[SegmentRecord, Directories]
"""A durable segment that is not live yet, with the header directories of all its tables."""

PARTED = ("meta", "pending", "tombstones")


def seal(database: str, key: bytes, payload: bytes) -> bytes:
    """The value that is stored: payload and checksum."""
    return payload + checksum(database, key, payload).to_bytes(4, "little")


def checksum(database: str, key: bytes, payload: bytes) -> int:
    """CRC-32C over database, key and payload, each ended."""
    prefix = np.frombuffer(database.encode() + b"\0" + key + b"\0", np.uint8)
    return _native.crc32c(np.frombuffer(payload, np.uint8), _native.crc32c(prefix))


def unseal(database: str, key: bytes, value: bytes | None, expected: int | None = None) -> bytes:
    """The payload, once its checksum holds and is the one its parent named."""
    name = f"{database}/{_printable(key)}"
    if value is None:
        raise CorruptFile(f"the catalog lacks its record {name}", path=name)
    payload, stored = value[:-4], int.from_bytes(value[-4:], "little")
    if len(value) < 4 or checksum(database, key, payload) != stored:
        raise CorruptFile(f"the catalog's record {name} is damaged", path=name)
    if expected is not None and stored != expected:
        raise CorruptFile(f"the catalog's record {name} is not the one its head names", path=name)
    return payload


Pages = list[tuple[bytes, bytes]]
"""Keys and sealed values of `headers`."""


def directory_pages(segment: str, directories: Directories) -> Pages:
    """A segment's header directories as they are stored; 15 ms for 25 MB, so made ahead of it."""
    return [
        (key, seal("headers", key, payload))
        for table, directory in directories
        for key, payload in headers.pages(segment, table, directory)
    ]


def _printable(key: bytes) -> str:
    return key.decode() if key.isascii() and key.decode().isprintable() else key.hex()


def pack(value: Any) -> bytes:
    """msgpack of plain values."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(name: str, payload: bytes) -> Any:
    """Plain values back, within bounds; CorruptFile if they are none."""

    left = MAX_HEAD_ITEMS

    def refuse(code: int, data: bytes) -> Any:
        raise ValueError(f"unexpected extension {code}")

    def counted(value: Any) -> Any:
        # A list or map of one byte takes 64 in memory.
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {MAX_HEAD_ITEMS} lists and maps")
        return value

    try:
        return msgpack.unpackb(
            payload,
            raw=False,
            strict_map_key=True,
            ext_hook=refuse,
            list_hook=counted,
            object_hook=counted,
            max_array_len=MAX_HEAD_ITEMS,
            max_map_len=1 << 16,
        )
    except UNDECODABLE as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(f"the catalog's record {name} cannot be decoded", path=name) from error


@dataclass(frozen=True, slots=True)
class Run:
    """A pending run or a set of tombstones, as the head names it."""

    number: int
    rows: int
    horizon: int
    checksum: int

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

    def encode(self) -> bytes:
        """The head's payload."""
        return pack(
            [
                1,
                [self.generation, self.appended, self.next_run],
                list(self.segments.items()),
                [[r.number, r.rows, r.horizon, r.checksum] for r in self.pending],
                [[r.number, r.rows, r.horizon, r.checksum] for r in self.tombstones],
                list(self.values.items()),
            ]
        )

    @classmethod
    def decode(cls, payload: bytes) -> Head:
        """The head of a payload whose checksum held."""
        value = unpack("head", payload)
        try:
            version, (generation, appended, next_run), segments, pending, tombstones, values = value
            if version != 1 or not all(NAME.fullmatch(name) for name, _ in segments):
                raise ValueError("not a head of version 1")
            runs = [number for number, *_ in (*pending, *tombstones)]
            names = [[name for name, _ in segments], [name for name, _ in values], runs]
            if any(len(set(of_a_kind)) < len(of_a_kind) for of_a_kind in names):
                raise ValueError("a name twice")
            if _count(generation) >= LAST_GENERATION:
                raise ValueError("a commit that is never reached")
            return cls(
                _count(generation), _count(appended), _count(next_run),
                {str(name): _count(crc) for name, crc in segments},
                tuple(Run(*map(_count, run)) for run in pending),
                tuple(Run(*map(_count, run)) for run in tombstones),
                {str(name): _count(crc) for name, crc in values},
            )
        except (TypeError, ValueError) as error:
            if raised_by_a_handler(error):
                raise
            raise CorruptFile("the catalog's head is not one this version wrote") from error

    @property
    def pending_rows(self) -> int:
        """Rows in pending runs."""
        return sum(run.rows for run in self.pending)


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise ValueError("no count")
    return value


def _require_width(header_bits: int, rows: int) -> None:
    """Refuses a directory of many more headers than rows: nobody writes one; it takes memory."""
    if not 0 <= header_bits <= 32 or 1 << header_bits > max(ANY_HEADERS, rows):
        raise ValueError("out of range")


def _structure(segment: str, value: Any) -> StructureRecord:
    structure, name, file_bytes, footer, first_table, header_bits = value
    record = StructureRecord(
        str(structure), str(name), _count(file_bytes), _count(footer), _count(first_table),
        tuple(_count(width) for width in header_bits),
    )
    kind = slicelist if is_slicing(record.structure) else permuted
    if (
        not kind.NAME.fullmatch(record.name)
        or owner_of(record.name) != segment
        or max(record.header_bits, default=0) > 32
        or not 1 <= record.first_table <= permuted.MAX_TABLE + 1 - len(record.header_bits)
    ):
        raise ValueError("out of range")
    return record


class Catalog:
    """Reads and commits on the shared environment of one index."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @property
    def path(self) -> Path:
        """The catalog's directory."""
        return self.environment.directory

    def reading(self) -> InTransaction[Reading]:
        """One consistent view, for a `with` block; leave it soon."""
        return InTransaction(self.environment, Reading)

    def head_value(self) -> bytes:
        """The sealed head: equal bytes mean that nothing was committed in between."""
        return self.environment.get("head", b"head") or b""

    def commit(self, edit: Edit) -> Head:
        """Makes an edit durable in one transaction, and returns the new head.

        Raises
        ------
        StorageFull
            When there was no space; nothing has changed.
        OSError, MemoryError
            When the system refused something before the commit; nothing has changed.
        CorruptFile
            When its numbers have been driven as far as no index gets; nothing has changed.
        CommitFailed
            When the commit itself failed, so that its outcome is unknown until the index is
            reopened.
        """
        head = edit.head
        if head.generation >= LAST_GENERATION or max(head.appended, head.next_run) > MAX_COUNT:
            raise CorruptFile("the catalog's head leaves no numbers for another commit")

        def work(txn: Transaction) -> int:
            edit.require_all_rows(Reading(txn))
            for database, key in edit.deletes:
                _delete(txn, database, key)
            for database, key, value in edit.puts:
                txn.put(database, key, value)
            value = seal("head", b"head", head.encode())
            txn.put("head", b"head", value)
            return edit.bound(len(value))

        self._transact(edit.expected, work, edit)
        return head

    def stage(self, expected: bytes, pages: Pages) -> None:
        """Stores some of a merged segment's directories ahead of the commit that makes it live.

        A segment's pages are staged in order, and those that are there already change nothing. No
        reader sees them. What is given up goes by `unstage`, before the segment's file does: the
        file's name is all that tells of them. Raises as `commit`; the head stays either way.
        """
        def work(txn: Transaction) -> int:
            for key, value in pages:
                txn.put("headers", key, value)
            return _bound([value for _, value in pages], len(pages))

        self._transact(expected, work)

    def staged(self, segment: str) -> bool:
        """Whether any directory of a segment is stored."""
        return self.environment.get("headers", headers.page_key(segment, 0, 0)) is not None

    def unstage(self, expected: bytes, segments: Iterable[str]) -> None:
        """Removes what was staged for some segments, none of them live.

        Tables are numbered without a gap in a segment that was merged, and so are pages.
        """
        def work(txn: Transaction) -> int:
            count = 0
            for segment in segments:
                for table in range(permuted.MAX_TABLE + 1):
                    page = 0
                    while txn.delete("headers", headers.page_key(segment, table, page)):
                        page += 1
                    if page == 0:
                        break
                    count += page
            return _bound([], count)

        self._transact(expected, work)

    def _transact(
        self, expected: bytes, work: Callable[[Transaction], int], edit: Edit | None = None
    ) -> None:
        """One transaction on the head that is expected; `work` returns a bound for `reserve`."""
        committing = False
        try:
            with self.environment.transaction(write=True) as txn:
                if (txn.get("head", b"head") or b"") != expected:
                    raise CommitFailed("another writer has changed the catalog: reopen the index")
                self.environment.reserve(work(txn))
                committing = True
                if edit is not None:
                    edit.begun = True
                txn.commit()
        except SimindexError:
            raise
        except (lmdb.Error, OSError) as error:
            if raised_by_a_handler(error):
                raise
            if isinstance(error, lmdb.MapFullError):
                raise StorageFull("the catalog's map is full", path=str(self.path)) from error
            if committing:
                raise CommitFailed(
                    f"the catalog's commit failed ({error}), and its outcome is unknown",
                    remedy="close the index, see to the disk, and open it again",
                    path=str(self.path),
                ) from error
            if isinstance(error, (lmdb.CorruptedError, lmdb.PageNotFoundError)):
                raise CorruptFile(
                    f"the catalog cannot be changed: {error}", path=str(self.path)
                ) from error
            refused = error if isinstance(error, OSError) else system_error(error, self.path)
            if isinstance(error, lmdb.DiskError) or getattr(refused, "errno", 0) in NO_SPACE:
                raise no_space(self.path) from error
            raise (refused or StorageFailed(
                f"the catalog {self.path} cannot be written ({error})",
                remedy="see to the disk and try again", path=str(self.path),
            )) from error


def _bound(values: Iterable[bytes], records: int, head_bytes: int = 0) -> int:
    """Bytes of pages that puts and deletes may add to the catalog's file, with a wide margin."""
    large = sum(-(-(len(value) + 64) // 4096) for value in values)
    return 4096 * (large + 4 * records + head_bytes // 4096 + 256)


def _delete(txn: Transaction, database: str, key: bytes) -> None:
    """Removes a record and its further parts, which are numbered without a gap."""
    txn.delete(database, key)
    part = 1
    while database in PARTED and txn.delete(database, key + part.to_bytes(4, "big")):
        part += 1


class Reading:
    """Unsealed records within one transaction."""

    def __init__(self, txn: Transaction) -> None:
        self._txn = txn

    def head(self) -> tuple[bytes, Head]:
        """The sealed value and the head in it."""
        value = self._txn.get("head", b"head")
        return value or b"", Head.decode(unseal("head", b"head", value))

    def value(self, head: Head, name: str) -> bytes | None:
        """A whole value of `meta`, or None if the head names none."""
        if name not in head.values:
            return None
        return self._joined("meta", name.encode(), head.values[name])

    def run(self, database: str, run: Run) -> bytes:
        """A pending or tombstone run's payload."""
        return self._joined(database, run.key, run.checksum)

    def _joined(self, database: str, key: bytes, expected: int) -> bytes:
        first = unseal(database, key, self._txn.get(database, key), expected)
        count = int.from_bytes(first[:4], "little")
        parts = [first[8:]]
        for part in range(1, count):
            part_key = key + part.to_bytes(4, "big")
            parts.append(unseal(database, part_key, self._txn.get(database, part_key)))
        payload = b"".join(parts)
        found = _native.crc32c(np.frombuffer(payload, np.uint8))
        if count < 1 or found != int.from_bytes(first[4:8], "little"):
            name = f"{database}/{_printable(key)}"
            raise CorruptFile(f"the catalog's record {name} is not whole", path=name)
        return payload

    def segment(self, head: Head, name: str) -> SegmentRecord:
        """A live segment's record."""
        key = name.encode()
        payload = unseal("segments", key, self._txn.get("segments", key), head.segments[name])
        try:
            fields = unpack(name, payload)
            rows, horizon, file_bytes, footer, header_bits = (int(v) for v in fields[:5])
            more = fields[5:]
            structures = tuple(_structure(name, value) for value in (more[0] if more else ()))
            for _, width in ((0, header_bits), *(d for s in structures for d in s.directories)):
                _require_width(width, rows)
            if len(more) > 1 or len({found.structure for found in structures}) < len(structures):
                raise ValueError("not a record of this version")
        except (TypeError, ValueError) as error:
            if raised_by_a_handler(error):
                raise
            raise CorruptFile(f"the catalog's record of {name} is not whole", path=name) from error
        return SegmentRecord(name, rows, horizon, file_bytes, footer, header_bits, structures)

    def directory(self, record: SegmentRecord, table: int = 0) -> Any:
        """A header directory uint32 (2**t + 1,) of a segment, copied out and checked."""

        def get(key: bytes) -> bytes:
            return unseal("headers", key, self._txn.get("headers", key))

        width = dict(record.directories)[table]
        return headers.assemble(record.name, table, width, record.rows, get)


def _left(rows: int, dead: int, deletable: bool) -> int:
    """Rows without those that are said to be dead, where that can be; else all of them."""
    return rows - dead if deletable and 0 <= dead <= rows else rows


class Edit:
    """What one commit changes, built up before the transaction begins."""

    def __init__(self, expected: bytes, head: Head, *, generation: int | None = None) -> None:
        self.expected, self.before = expected, head
        self.begun = False
        """Whether its commit has begun, which may succeed whatever is raised from then on."""
        later = head.generation + 1 if generation is None else generation
        self.head = replace(head, generation=later)
        self.dead: dict[str | int, int] = {}
        """Rows that tombstones cover of each table that is dropped: a segment, by its name, or a
        pending run, by its number."""
        self.deletions = 0
        """Ids or keys that it deletes."""
        self.withdrawn = 0
        """Rows that were deleted again before the commit which appends them."""
        self.adopted = 0
        """Rows that a repair has found in files and brings in."""
        self._records: dict[str, SegmentRecord] = {}
        self.puts: list[tuple[str, bytes, bytes]] = []
        self.deletes: list[tuple[str, bytes]] = []

    def bound(self, head_bytes: int) -> int:
        """Bytes of pages that the edit may add to the catalog's file."""
        records = len(self.puts) + len(self.deletes)
        return _bound([value for _, _, value in self.puts], records, head_bytes)

    def _put(self, database: str, key: bytes, payload: bytes) -> int:
        value = seal(database, key, payload)
        self.puts.append((database, key, value))
        return int.from_bytes(value[-4:], "little")

    def _put_parts(self, database: str, key: bytes, payload: bytes) -> int:
        count = max(1, -(-len(payload) // PART_BYTES))
        whole = _native.crc32c(np.frombuffer(payload, np.uint8))
        for part in range(1, count):
            start = part * PART_BYTES
            part_key = key + part.to_bytes(4, "big")
            self._put(database, part_key, payload[start : start + PART_BYTES])
        start_of = count.to_bytes(4, "little") + whole.to_bytes(4, "little")
        return self._put(database, key, start_of + payload[:PART_BYTES])

    def set_value(self, name: str, payload: bytes) -> None:
        """Puts a whole value into `meta`, in place of an older one."""
        self.deletes.append(("meta", name.encode()))
        crc = self._put_parts("meta", name.encode(), payload)
        self.head = replace(self.head, values={**self.head.values, name: crc})

    def require_all_rows(self, reading: Reading) -> None:
        """Refuses an edit after which a live row would be in no table; `reading` is as before it.

        Raises CommitFailed that says how many rows are missing. Costs a get for each segment that
        is dropped or changed.
        """
        before, after = self.before, self.head
        expected = self.adopted
        expected += _left(after.appended - before.appended, self.withdrawn, self.deletions > 0)
        for name in before.segments.keys() - after.segments.keys():
            record = reading.segment(before, name)
            expected += self._living(name, record.rows, record.horizon)
        for run in set(before.pending) - set(after.pending):
            expected += self._living(run.number, run.rows, run.horizon)
        found = sum(run.rows for run in set(after.pending) - set(before.pending))
        for name, crc in after.segments.items():
            if name not in before.segments:
                found += self._records[name].rows
            elif crc != before.segments[name]:  # it was given other structures
                kept, had = self._records[name].rows, reading.segment(before, name).rows
                if kept != had:
                    found, expected = kept, had
                    break
        if found != expected:
            raise CommitFailed(
                f"a commit would have kept {found} rows of {expected}: it was refused and nothing "
                "has changed. Open the index again, and report this as a fault of simindex",
                found=found, expected=expected,
            )

    @property
    def files(self) -> dict[str, int]:
        """Bytes of each file, by name, of the segments that it makes live or changes."""
        found = {}
        for record in self._records.values():
            found[record.name] = record.file_bytes
            found.update((s.name, s.file_bytes) for s in record.structures)
        return found

    def _living(self, table: str | int, rows: int, horizon: int) -> int:
        """Rows of a dropped table that must be in a new one.

        Nobody has deleted rows that no tombstone of a later commit concerns.
        """
        later = any(run.horizon > horizon for run in self.before.tombstones)
        return _left(rows, self.dead.get(table, 0), later or self.deletions > 0)

    def add_rows(self, count: int) -> None:
        """Counts appended rows."""
        self.head = replace(self.head, appended=self.head.appended + count)

    def add_run(self, database: str, payload: bytes, rows: int) -> Run:
        """Adds a pending or tombstone run, as of this commit."""
        number = self.head.next_run
        crc = self._put_parts(database, number.to_bytes(8, "big"), payload)
        run = Run(number, rows, self.head.generation, crc)
        self._set_runs(database, (*getattr(self.head, database), run))
        self.head = replace(self.head, next_run=number + 1)
        return run

    def drop_pending(self, run: Run, dead: int) -> None:
        """Removes a pending run of which `dead` rows are deleted; the others are in a new table."""
        self.dead[run.number] = dead
        self.drop_run("pending", run)

    def drop_run(self, database: str, run: Run) -> None:
        """Removes a pending or tombstone run."""
        self.deletes.append((database, run.key))
        kept = tuple(r for r in getattr(self.head, database) if r.number != run.number)
        self._set_runs(database, kept)

    def _set_runs(self, database: str, runs: tuple[Run, ...]) -> None:
        if database == "pending":
            self.head = replace(self.head, pending=runs)
        else:
            self.head = replace(self.head, tombstones=runs)

    def add_segment(self, record: SegmentRecord, directories: Directories) -> None:
        """Makes a written segment live, with the header directories of all its tables."""
        self._put_directories(record, directories)
        self._put_record(record)

    def change_structures(
        self, before: SegmentRecord, after: SegmentRecord, added: Directories
    ) -> None:
        """Gives a live segment other structures: directories no longer named go, `added` come."""
        kept = {structure.name for structure in after.structures}
        for structure in before.structures:
            if structure.name not in kept:
                self._delete_directories(before.name, structure.directories)
        self._put_directories(after, added)
        self._put_record(after)

    def _put_directories(self, record: SegmentRecord, directories: Directories) -> None:
        self._put_pages(directory_pages(record.name, directories))

    def _put_pages(self, pages: Pages) -> None:
        self.puts += [("headers", key, value) for key, value in pages]

    def _put_record(self, record: SegmentRecord) -> None:
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
        crc = self._put("segments", record.name.encode(), pack(packed))
        self._records[record.name] = record
        self.head = replace(self.head, segments={**self.head.segments, record.name: crc})

    def drop_segment(self, record: SegmentRecord) -> None:
        """Takes a segment out of the index; its files are unlinked after the commit.

        Unless `dead` or a new table accounts for all its rows, the commit is refused.
        """
        self._delete_directories(record.name, record.directories)
        self.deletes.append(("segments", record.name.encode()))
        kept = {n: crc for n, crc in self.head.segments.items() if n != record.name}
        self.head = replace(self.head, segments=kept)

    def merge_segments(
        self,
        inputs: Sequence[SegmentRecord],
        merged: SegmentRecord | None,
        pages: Pages,
        dead: Mapping[str, int],
    ) -> None:
        """Puts a segment in the place of others, or nothing where all their rows are deleted.

        It stands where the first of them stood, so that segments stay in order of age. `dead` says
        how many rows of each tombstones cover.
        """
        self.dead.update(dead)
        before = list(self.head.segments)
        gone = {record.name for record in inputs}
        for record in inputs:
            self.drop_segment(record)
        if merged is None:
            return
        self._put_pages(pages)
        self._put_record(merged)
        place = min(before.index(name) for name in gone)
        names = [*before[:place], merged.name, *(n for n in before[place:] if n not in gone)]
        crcs = self.head.segments
        self.head = replace(self.head, segments={name: crcs[name] for name in names})

    def _delete_directories(self, segment: str, widths: Iterable[tuple[int, int]]) -> None:
        for table, header_bits in widths:
            for page in range(headers.page_count(header_bits)):
                self.deletes.append(("headers", headers.page_key(segment, table, page)))
