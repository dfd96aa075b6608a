"""The one writer of an index: what waits, commits, and the merges beside them.

    append   rows wait in memory; every batch_rows of them are written as a segment file that is
             not yet part of the index                                      (waiting.py)
    commit   one LMDB transaction makes all of it live, with the tombstones; fewer rows than a
             segment takes go to the catalog as a pending run, and pending runs are sealed into a
             segment once they are that many together                       (composition.py)
    discard  forgets what waits and unlinks the files
    merges   segments that became too many are merged by threads (merges.py); a commit starts them,
             and installs those that have ended in a transaction of its own (installer.py)

committer.py holds the lock, the snapshot and the commit rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time

from simindex.arrays import U64
from simindex.records.batch import Batch
from simindex.records.reports import Progress
from simindex.simhash.recipe import Recipe
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.segmentfiles import Written
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.segment import Segment
from simindex.storage.view import View
from simindex.writing.committer import Committer
from simindex.writing.composition import composed
from simindex.writing.installer import Installer
from simindex.writing.merges import Merge
from simindex.writing.structures import restructure


class Writer:
    """Holds the index's lock from creation to `close`."""

    def __init__(self, view: View) -> None:
        self.committer = Committer(view)
        self.installer = Installer(self.committer)
        self._commit_s = 0.0

    def close(self) -> None:
        """Ends merges and gives the lock back; what was not committed is discarded.

        May be called again, after an interrupt.
        """
        try:
            self.installer.close()
        finally:
            self.committer.close()

    def forget_lock(self) -> None:
        """In a forked child: closes the inherited descriptor; the lock stays the parent's."""
        lock: Descriptor | None = self.committer.lock
        if lock is not None:
            lock.close()

    def refuse(self, reason: str) -> None:
        """Changes nothing from now on, and unlinks nothing that a commit may have named."""
        self.committer.refuse(reason)

    def check_usable(self) -> None:
        """Raises ReadOnlyIndex once a commit has failed, or a change was cut off."""
        self.committer.check_usable()

    @property
    def snapshot(self) -> Snapshot:
        """The index as of the last commit."""
        return self.committer.snapshot

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return self.committer.waiting.anything

    @property
    def appended(self) -> int:
        """Rows ever appended, those that wait included."""
        return self.committer.waiting.appended

    @property
    def generation(self) -> int:
        """Of the last commit."""
        return self.committer.waiting.since.generation

    @property
    def recipe(self) -> Recipe | None:
        """Of the index, or of what waits."""
        return self.committer.waiting.recipe or self.committer.view.recipe

    # -- what waits --------------------------------------------------------------------------------

    def append(self, batch: Batch) -> U64:
        """Adds the rows of a checked batch, all or none; returns their ids, uint64 (n,)."""
        self.check_usable()
        return self.committer.waiting.append(batch, self.committer.files)

    def replace(self, batch: Batch) -> U64:
        """`delete` of the ids or keys of a checked batch, then `append` of it; all or none."""
        self.check_usable()
        return self.committer.waiting.replace(batch, self.committer.files)

    def delete(self, ids: U64 | None, keys: list[str] | list[bytes] | None) -> int:
        """Deletes all rows that came before; returns how many ids or keys were given."""
        self.check_usable()
        return self.committer.waiting.delete(ids, keys)

    def adopt(self, recipe: Recipe) -> None:
        """Gives a recipe to an index that has none, and no rows."""
        self.set_value("recipe", recipe.to_bytes())
        self.committer.waiting.recipe = recipe

    def set_value(self, name: str, payload: bytes) -> None:
        """Sets a whole value of the catalog."""
        self.check_usable()
        self.committer.waiting.values[name] = payload

    def discard(self) -> None:
        """Forgets everything since the last commit."""
        spilled = self.committer.waiting.spilled
        self.committer.forget()
        if self.committer.failed is None:
            self.committer.files.remove(record for record, _ in spilled)
            # last: it may be interrupted

    @property
    def uninstalled(self) -> set[str]:
        """Names of files of this writer that no commit names yet: of rows that were appended, and
        of merges that have ended."""
        spilled = {name for record, _ in self.committer.waiting.spilled for name in record.files}
        return spilled | self.installer.merges.files

    # -- commits -----------------------------------------------------------------------------------

    def commit(self, *, seal_pending: bool = False) -> bool:
        """Makes what waits durable and visible, all or nothing. Returns whether there was any.

        `seal_pending` writes pending rows as a segment, however few they are.
        """
        self.check_usable()
        committer = self.committer
        waiting = committer.waiting
        rows = waiting.buffer.rows + waiting.since.pending_rows
        if not waiting.anything and not (seal_pending and rows):
            committer.view.newest()  # which tells of an index that was replaced
            return False
        snapshot = committer.alone()
        began = thread_time()
        written: list[Written] = []
        try:
            edit = composed(
                snapshot, waiting, committer.files, committer.catalog, written,
                seal_pending=seal_pending,
            )
        except BaseException:
            committer.files.remove(record for record, _ in written)
            raise
        committer.finish(edit, [name for record, _ in written for name in record.files])
        self._commit_s = thread_time() - began
        return True

    def restructure(self, structures: Sequence[str]) -> bool:
        """Gives all segments these structures, in one commit; returns whether anything changed."""
        return restructure(self.committer, structures)

    # -- merges ------------------------------------------------------------------------------------

    def due(self, fanout: int) -> list[Segment]:
        """Segments that have become too many, oldest first, but those that are being merged."""
        return self.installer.due(fanout)

    def compact(self, inputs: Sequence[Segment], progress: Progress | None) -> None:
        """Replaces some segments by one, without their dead rows; drops settled tombstones."""
        self.installer.compact(inputs, progress)

    def start_merges(self) -> None:
        """Begins to merge segments that have become too many."""
        self.installer.start()

    def keep_pace(self) -> None:
        """Waits for merges that are late, in general a part of what the last commit took."""
        self.installer.keep_pace(self._commit_s)

    def await_merges(self) -> bool:
        """Waits for the merges that run. Returns whether there are any to install."""
        return self.installer.await_merges()

    def install_merges(self, *, whole: bool) -> bool:
        """Makes merges that have ended part of the index; returns whether there were any."""
        return self.installer.install(whole=whole)

    def release_retired(self) -> None:
        """Gives up the inputs of installed merges."""
        self.installer.release_retired()

    @property
    def merging(self) -> bool:
        """Whether merges run, or have ended and are not installed."""
        return len(self.installer.merges) > 0

    @property
    def running(self) -> tuple[Merge, ...]:
        """The merges that are at work."""
        return self.installer.merges.running

    def cancel_merges(self) -> None:
        """Ends the merges that run; nothing of them stays."""
        self.installer.cancel()
