"""The commits of the one writer of an index: its lock, its snapshot, what waits for the next one.

    snapshot   the index as of the last commit; the head is in it, and nowhere else
    waiting    what comes after that commit
    finish     carries an edit out, which makes both anew

The commit rule: data is durable under its final name before the transaction that names it, and
files are unlinked after the transaction that stops naming them. An error inside that transaction
leaves its outcome unknown, so the writer then refuses to go on, and unlinks nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence

from simindex.errors import ClosedIndex, CommitFailed, ReadOnlyIndex
from simindex.options import IndexOptions
from simindex.storage.catalog.catalog import Edit
from simindex.storage.catalog.records import Pages
from simindex.storage.catalog.registry import check_place
from simindex.storage.catalog.values import seal
from simindex.storage.files import locks
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.segmentfiles import SegmentFiles, checked_designs
from simindex.storage.snapshot import Snapshot
from simindex.storage.view import View
from simindex.writing.strays import remove_strays
from simindex.writing.waiting import Waiting


class Committer:
    """Holds the index's lock from creation to `close`."""

    def __init__(self, view: View) -> None:
        self.view, self.catalog = view, view.catalog
        self.failed: str | None = None
        """Why it changes nothing any more."""
        self.lock: Descriptor | None = None
        self._snapshot: Snapshot | None = None
        self._files: SegmentFiles | None = None
        try:
            self.lock = locks.lock(view.path / "LOCK")
            with self.catalog.reading() as reading:
                value, head = reading.head()
            self.waiting = Waiting(view.options.key_secret, value, head)
            remove_strays(self.catalog, view.segments, value, head)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Gives the lock back; may be called again, after an interrupt."""
        self._snapshot = None
        if self.lock is not None:
            locks.unlock(self.lock)

    @property
    def files(self) -> SegmentFiles:
        """Where segment files are written, and what they carry by the options of the last commit.
        """
        options = self.view.options
        if self._files is None or self._files.options is not options:
            self._files = SegmentFiles(
                self.view.segments, self.view.index, options, tuple(checked_designs(options))
            )
        return self._files

    @property
    def options(self) -> IndexOptions:
        """As of the last commit."""
        return self.view.options

    @property
    def snapshot(self) -> Snapshot:
        """The index as of the last commit, which was this writer's."""
        if self._snapshot is None:
            found = self.view.newest()
            if found.value != self.waiting.value:
                raise self._not_alone(
                    "another writer has changed the index, though this one held LOCK"
                )
            self._snapshot = found
        return self._snapshot

    def alone(self) -> Snapshot:
        """The snapshot, for a change of it.

        Refuses to change an index that another writer has changed, or may change now: LOCK keeps
        others out for as long as its name leads to it.
        """
        self._snapshot = None  # so that it is compared with the catalog
        snapshot = self.snapshot
        if self.lock is None or not locks.is_locked(self.lock, self.view.path / "LOCK"):
            raise self._not_alone(
                "its LOCK was removed or replaced, so that another writer may be open"
            )
        return snapshot

    def _not_alone(self, reason: str) -> CommitFailed:
        self.failed = reason
        return CommitFailed(
            f"{self.view.path} was not changed: {reason}. Nothing may remove LOCK while a "
            "writer is open. Open the index again, and repeat what was not committed",
            path=str(self.view.path),
        )

    def refuse(self, reason: str) -> None:
        """Changes nothing from now on, and unlinks nothing that a commit may have named."""
        if self.failed is None:
            self.failed = reason

    def check_usable(self) -> None:
        """Raises ReadOnlyIndex once a commit has failed, or a change was cut off."""
        if self.failed is not None:
            raise ReadOnlyIndex(
                f"{self.view.path} is no longer written by this handle: {self.failed}. "
                "Close it and open the index again, which holds its last commit",
                path=str(self.view.path),
            )

    def forget(self) -> None:
        """Lets nothing wait."""
        self.waiting = Waiting(self.options.key_secret, self.waiting.value, self.waiting.since)

    def finish(self, edit: Edit, written: Sequence[str]) -> None:
        """Commits, and unlinks the files written for it only if it is certain that it did not.

        Nobody else unlinks them: who calls this cannot tell what an error means. Raises ClosedIndex
        if another index has taken this one's place.
        """
        try:
            check_place(self.catalog.environment)
            self.files.require(edit.files)
            head = self.catalog.commit(edit)
            self._snapshot = None
            self.view.recipe = self.waiting.recipe or self.view.recipe
            self.waiting = Waiting(
                self.options.key_secret, seal("head", b"head", head.encode()), head
            )
        except BaseException as error:
            if isinstance(error, (ClosedIndex, OSError)) and not edit.begun:
                self.files.remove_named(written)
            else:
                # An interrupt arrives when the transaction has just ended, most likely well.
                self.failed = str(error) or f"its commit was interrupted by {type(error).__name__}"
            raise

    def stage(self, pages: Pages) -> None:
        """Stores directories ahead of the commit that names their segment."""
        try:
            self.catalog.stage(self.waiting.value, pages)
        except CommitFailed as error:
            self.failed = str(error)
            raise

    def unstage(self, segment: str) -> None:
        """Removes the directories that were stored for a segment."""
        self.catalog.unstage(self.waiting.value, [segment])
