"""What is part of the index: the head and the records it names; and what one commit changes.

`records` draws the records.

Invariants
1. Every value is sealed, and large ones are stored in parts; see `sealed_values`.
2. The head names each child with its checksum, so a missing, stale or swapped record is an error.
   Reads are point gets.
3. A commit is one LMDB transaction, made only while the head is still the one the edit began from:
   what the head does not name is not part of the index. Of such there are only pages of `headers`,
   stored ahead of the commit that names their segment.
4. A commit loses no row. Every row of a table that it drops, and every row that it appends, is in a
   table that it adds, or was deleted. The transaction counts this, and refuses a commit in which a
   row is missing. Deleted rows are those of each table that tombstones were found to cover, or that
   have expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import lmdb

from simindex.errors import (
    CommitFailed,
    CorruptFile,
    SimindexError,
    raised_by_a_handler,
)
from simindex.storage.catalog.environment import Environment, InTransaction, Transaction
from simindex.storage.catalog.lmdb_files import writing_error
from simindex.storage.catalog.records import (
    LAST_GENERATION,
    MAX_COUNT,
    Head,
    Pages,
    Reading,
    Run,
    SealedHead,
    encode_segment,
    page_count,
    page_key,
    sealed_pages,
)
from simindex.storage.catalog.sealed_values import PARTED, part_key, parts, seal
from simindex.storage.files.refusals import no_space_told
from simindex.storage.tables import permuted
from simindex.storage.tables.deletion_file import DeletionFile
from simindex.storage.tables.permuted import Directories
from simindex.storage.tables.record import SegmentRecord


class Edit:
    """What one commit changes, built up before the transaction begins."""

    def __init__(self, expected: bytes, head: Head, *, generation: int | None = None) -> None:
        self.expected: bytes = expected
        self.before: Head = head
        self.begun: bool = False
        """Whether its commit has begun, which may succeed whatever is raised from then on."""
        later = head.generation + 1 if generation is None else generation
        self.head: Head = replace(head, generation=later)
        self.dead: dict[str | int, int] = {}
        """Deleted rows of each table that is dropped: a segment, by its name, or a pending run, by
        its number."""
        self.deletions: int = 0
        """Ids or keys that it deletes."""
        self.withdrawn: int = 0
        """Rows that were deleted again before the commit which appends them."""
        self.adopted: int = 0
        """Rows that a repair has found in files and brings in."""
        self.unnamed: list[Run] = []
        """Runs whose files the head names no more: these are unlinked after the commit."""
        self._records: dict[str, SegmentRecord] = {}
        self._deletion_files: dict[str, int] = {}
        self.puts: list[tuple[str, bytes, bytes]] = []
        self.deletes: list[tuple[str, bytes]] = []

    def _put(self, database: str, key: bytes, payload: bytes) -> int:
        value = seal(database, key, payload)
        self.puts.append((database, key, value))
        return int.from_bytes(value[-4:], "little")

    def _put_parts(self, database: str, key: bytes, payload: bytes) -> int:
        crcs = [self._put(database, *part) for part in parts(key, payload)]
        return crcs[-1]

    def set_value(self, name: str, payload: bytes) -> None:
        """Puts a whole value into `meta`, replacing an older one."""
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
        deleted = self.deletions > 0 or after.expired > before.expired
        expected += _left(after.appended - before.appended, self.withdrawn, deleted)
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
                f"a commit would have kept {found} of {expected} rows: it was refused, and "
                "nothing has changed",
                remedy="open the index again, and report this as a bug of simindex", found=found,
                expected=expected,
            )

    @property
    def files(self) -> dict[str, int]:
        """Bytes of each file, by name, that it makes live, or whose segment it changes."""
        found = dict(self._deletion_files)
        for record in self._records.values():
            found[record.name] = record.file_bytes
            found.update((s.name, s.file_bytes) for s in record.structures)
        return found

    def _living(self, table: str | int, rows: int, horizon: int) -> int:
        """Rows of a dropped table that must be in a new one.

        Nobody has deleted rows that no tombstone of a later commit concerns, where none expire.
        """
        later = any(run.horizon > horizon for run in self.before.tombstones)
        later |= self.deletions > 0 or self.head.expired > 0
        return _left(rows, self.dead.get(table, 0), later)

    def add_rows(self, count: int) -> None:
        """Counts appended rows."""
        self.head = replace(self.head, appended=self.head.appended + count)

    def set_times(self, latest: int, expired: int) -> None:
        """Sets the last time of a row, and the time before which rows have expired."""
        self.head = replace(self.head, latest=latest, expired=expired)

    def add_run(self, database: str, payload: bytes, rows: int) -> Run:
        """Adds a pending or tombstone run, as of this commit."""
        number = self.head.next_run
        crc = self._put_parts(database, number.to_bytes(8, "big"), payload)
        run = Run(number, rows, self.head.generation, crc)
        self._set_runs(database, (*getattr(self.head, database), run))
        self.head = replace(self.head, next_run=number + 1)
        return run

    def add_tombstones(self, stored: bytes | DeletionFile, rows: int) -> list[str]:
        """Adds a run of them, as a payload or a durable file; returns the names of files."""
        if isinstance(stored, bytes):
            self.add_run("tombstones", stored, rows)
            return []
        self.add_deletion_file(stored)
        return [stored.name]

    def add_deletion_file(self, file: DeletionFile) -> None:
        """Makes a written run of tombstones live."""
        number = self.head.next_run
        run = Run(number, file.rows, file.newest, file.footer_checksum, file.name)
        self._deletion_files[file.name] = file.file_bytes
        self._set_runs("tombstones", (*self.head.tombstones, run))
        self.head = replace(self.head, next_run=number + 1)

    def drop_pending(self, run: Run, dead: int) -> None:
        """Removes a pending run of which `dead` rows are deleted; the others are in a new table."""
        self.dead[run.number] = dead
        self.drop_run("pending", run)

    def drop_run(self, database: str, run: Run) -> None:
        """Removes a pending or tombstone run."""
        if run.file:
            self.unnamed.append(run)
        else:
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
        self._put_pages(sealed_pages(record.name, directories))
        self._put_record(record)

    def change_structures(
        self, before: SegmentRecord, after: SegmentRecord, added: Directories
    ) -> None:
        """Gives a live segment other structures: directories no longer named go, `added` come."""
        kept = {structure.name for structure in after.structures}
        for structure in before.structures:
            if structure.name not in kept:
                self._delete_directories(before.name, structure.directories)
        self._put_pages(sealed_pages(after.name, added))
        self._put_record(after)

    def _put_pages(self, pages: Pages) -> None:
        self.puts += [("headers", key, value) for key, value in pages]

    def _put_record(self, record: SegmentRecord) -> None:
        crc = self._put("segments", record.name.encode(), encode_segment(record))
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

        It takes the place of the first of them, so segments stay in order of age. `dead` says
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
            for page in range(page_count(header_bits)):
                self.deletes.append(("headers", page_key(segment, table, page)))


class Catalog:
    """Reads and commits on the shared environment of one index."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.path: Path = environment.directory

    def reading(self) -> InTransaction[Reading]:
        """One consistent view, for a `with` block; leave it soon."""
        return InTransaction(self.environment, Reading)

    def head_value(self) -> bytes:
        """The sealed head: equal bytes mean that nothing was committed in between."""
        return self.environment.get("head", b"head") or b""

    def commit(self, edit: Edit) -> SealedHead:
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
            raise CorruptFile("the catalog's head has no numbers left for another commit")
        sealed = SealedHead(seal("head", b"head", head.encode()), head)

        with self._changing(edit.expected) as txn:
            edit.require_all_rows(Reading(txn))
            for database, key in edit.deletes:
                _delete(txn, database, key)
            for database, key, value in edit.puts:
                txn.put(database, key, value)
            txn.put("head", b"head", sealed.value)
            records = len(edit.puts) + len(edit.deletes)
            self._begin(
                txn, page_bytes([value for _, _, value in edit.puts], records, len(sealed.value))
            )
            edit.begun = True
            txn.commit()
        return sealed

    def stage(self, expected: bytes, pages: Pages) -> None:
        """Stores some of a merged segment's directories ahead of the commit that makes it live.

        A segment's pages are staged in order, and those that are there already change nothing. No
        reader sees them. What is given up goes by `unstage`, before the segment's file does: the
        file's name is all that names them. Raises as `commit`; the head stays either way.
        """
        with self._changing(expected) as txn:
            for key, value in pages:
                txn.put("headers", key, value)
            self._begin(txn, page_bytes([value for _, value in pages], len(pages)))
            txn.commit()

    def staged(self, segment: str) -> bool:
        """Whether any directory of a segment is stored."""
        return self.environment.get("headers", page_key(segment, 0, 0)) is not None

    def unstage(self, expected: bytes, segments: Iterable[str]) -> None:
        """Removes what was staged for some segments, none of them live.

        Tables are numbered without a gap in a segment that was merged, and so are pages.
        """
        with self._changing(expected) as txn:
            count = 0
            for segment in segments:
                for table in range(permuted.MAX_TABLE + 1):
                    page = 0
                    while txn.delete("headers", page_key(segment, table, page)):
                        page += 1
                    if page == 0:
                        break
                    count += page
            self._begin(txn, page_bytes([], count))
            txn.commit()

    @contextmanager
    def _changing(self, expected: bytes) -> Iterator[Transaction]:
        """One transaction on the head that is expected; the `with` block begins its commit, and
        commits.

        An OSError comes from the file system, as of `reserve`. It is StorageFull where there is no
        space; others pass, and the handle translates them, see `refusals`. An `lmdb.Error` comes
        from the engine, and is not an OSError, also where the system refused the engine something:
        `writing_error` translates it. Once the commit has begun, either is CommitFailed. A full
        map is StorageFull even then, because nothing has changed.
        """
        txn: Transaction | None = None
        try:
            with self.environment.transaction(write=True) as txn:
                if (txn.get("head", b"head") or b"") != expected:
                    raise CommitFailed(
                        "another writer has changed the catalog", remedy="open the index again"
                    )
                yield txn
        except SimindexError:
            raise
        except OSError as error:
            if raised_by_a_handler(error):
                raise
            if txn is not None and txn.begun:
                raise self._unknown(error) from error
            with no_space_told(self.path):
                raise
        except lmdb.Error as error:
            begun = txn is not None and txn.begun
            if begun and not isinstance(error, lmdb.MapFullError):
                raise self._unknown(error) from error
            raise writing_error(error, self.path) from error

    def _begin(self, txn: Transaction, new_bytes: int) -> None:
        """Takes the space of a commit, which begins with that."""
        self.environment.reserve(new_bytes)
        txn.begun = True

    def _unknown(self, error: Exception) -> CommitFailed:
        return CommitFailed(
            f"the catalog's commit failed ({error}), and its outcome is unknown",
            remedy="close the index, check the disk, and open the index again", path=str(self.path),
        )


def _delete(txn: Transaction, database: str, key: bytes) -> None:
    """Removes a record and its further parts, which are numbered without a gap."""
    txn.delete(database, key)
    part = 1
    while database in PARTED and txn.delete(database, part_key(key, part)):
        part += 1


def _left(rows: int, dead: int, deletable: bool) -> int:
    """Rows without those that are said to be dead, where that can be; else all of them."""
    return rows - dead if deletable and 0 <= dead <= rows else rows


def page_bytes(values: Iterable[bytes], records: int, head_bytes: int = 0) -> int:
    """Bytes of pages that puts and deletes may add to the catalog's file, with a wide margin."""
    large = sum(-(-(len(value) + 64) // 4096) for value in values)
    return 4096 * (large + 4 * records + head_bytes // 4096 + 256)
