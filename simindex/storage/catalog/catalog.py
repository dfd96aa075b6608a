"""What is part of the index: the head, and the records it names; `records` draws them.

Invariants
1. Every value is sealed, and large ones are stored in parts; see values.py.
2. The head names each child with its checksum, so a missing, stale or swapped record is an error.
   Reads are point gets.
3. A commit is one LMDB transaction, made only while the head is still the one the edit began from:
   what the head does not name is not part of the index. Of such there are only pages of `headers`,
   stored ahead of the commit that names their segment.
4. A commit loses no row; see edit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import lmdb

from simindex.errors import (
    CommitFailed,
    CorruptFile,
    SimindexError,
    StorageFailed,
    StorageFull,
    raised_by_a_handler,
)
from simindex.storage.catalog.edit import Edit, page_bytes
from simindex.storage.catalog.environment import Environment, InTransaction, Transaction
from simindex.storage.catalog.lmdb_files import system_error
from simindex.storage.catalog.records import (
    LAST_GENERATION,
    MAX_COUNT,
    Head,
    Pages,
    Reading,
    page_key,
)
from simindex.storage.catalog.values import PARTED, part_key, seal
from simindex.storage.files.refusals import NO_SPACE, no_space
from simindex.storage.tables import permuted


class Catalog:
    """Reads and commits on the shared environment of one index."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.path = environment.directory

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
            return page_bytes([value for _, value in pages], len(pages))

        self._transact(expected, work)

    def staged(self, segment: str) -> bool:
        """Whether any directory of a segment is stored."""
        return self.environment.get("headers", page_key(segment, 0, 0)) is not None

    def unstage(self, expected: bytes, segments: Iterable[str]) -> None:
        """Removes what was staged for some segments, none of them live.

        Tables are numbered without a gap in a segment that was merged, and so are pages.
        """
        def work(txn: Transaction) -> int:
            count = 0
            for segment in segments:
                for table in range(permuted.MAX_TABLE + 1):
                    page = 0
                    while txn.delete("headers", page_key(segment, table, page)):
                        page += 1
                    if page == 0:
                        break
                    count += page
            return page_bytes([], count)

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


def _delete(txn: Transaction, database: str, key: bytes) -> None:
    """Removes a record and its further parts, which are numbered without a gap."""
    txn.delete(database, key)
    part = 1
    while database in PARTED and txn.delete(database, part_key(key, part)):
        part += 1
