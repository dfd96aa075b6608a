"""The index as a handle sees it: the snapshot taken last, its options, its recipe.

    opened     before that there is no snapshot
    followed   the head is compared at every call; a new one gives a new snapshot, and the options
               and the recipe that came with it. A pinned view is followed only when asked to be
    closed     nothing of the files is held
    replaced   by another index or catalog at its path: it would never see a commit again, and says
               so within LOOK_S

Any thread may look; the view has a lock of its own, which nobody holds for long.
"""

from __future__ import annotations

from pathlib import Path
from threading import RLock
from time import monotonic

from simindex.errors import ClosedIndex, CorruptFile
from simindex.options import IndexOptions
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.leases import check_place
from simindex.storage.catalog.records import Head, SealedHead
from simindex.storage.files.verification import Verify
from simindex.storage.location import Described, described
from simindex.storage.snapshot import Snapshot, take

LOOK_S = 1.0
"""So often a view looks whether its path still leads to what it has open: 1.5 us."""


class View:
    """Of one handle."""

    def __init__(
        self, path: Path, catalog: Catalog, found: Described, *, index: bytes, pinned: bool,
        verify: Verify,
    ) -> None:
        self.path, self.catalog, self.index = path, catalog, index
        self.segments = path / "segments"
        self.options: IndexOptions = found.options
        self.recipe: Recipe | None = found.recipe
        self._options_crc = found.options_checksum
        self._pinned, self._verify = pinned, verify
        self._looked = monotonic()
        self._lock = RLock()
        self._snapshot: Snapshot | None = None

    def open(self) -> None:
        """Takes the first snapshot."""
        self._snapshot = self._take(None)

    def close(self) -> None:
        """Gives the snapshot up; maps and descriptors go once running calls have ended."""
        with self._lock:
            self._snapshot = None

    def forget_lock(self) -> None:
        """In a forked child, which does not have the threads that may hold it."""
        self._lock = RLock()

    def closed_error(self) -> ClosedIndex:
        """What is raised once there is nothing to be seen."""
        return ClosedIndex(
            f"the handle on {self.path} is closed",
            remedy="open the index again", path=str(self.path),
        )

    def current(self) -> Snapshot:
        """What a call sees."""
        return self.last() if self._pinned else self.newest()

    def last(self) -> Snapshot:
        """The snapshot taken last; ClosedIndex if another thread has closed the handle."""
        snapshot = self._snapshot
        if snapshot is None:
            raise self.closed_error()
        return snapshot

    def newest(self) -> Snapshot:
        """The snapshot of the last commit by anybody."""
        if monotonic() - self._looked > LOOK_S:
            self.check_place()
        snapshot = self.last()
        if self.catalog.head_value() == snapshot.value:
            return snapshot
        with self._lock:
            before = snapshot = self.last()
            with self.catalog.reading() as reading:
                known = reading.head(SealedHead(before.value, before.head))
            if known.value != before.value:
                self._follow(known.head)  # first: it says how rows are stored
                snapshot = self._followed(before, known)
                while self._follow(snapshot.head):  # of a commit that came in between
                    snapshot = self._followed(before, known)
                self._snapshot = snapshot  # last: after an interrupt all of it is done again
            return snapshot

    def check_place(self) -> None:
        """Raises ClosedIndex if another index, or a repaired catalog, has replaced this one.
        """
        check_place(self.catalog.environment)
        self._looked = monotonic()

    def _take(self, before: Snapshot | None, known: SealedHead | None = None) -> Snapshot:
        return take(
            self.catalog, self.segments, index=self.index, options=self.options, before=before,
            verify=self._verify, known=known,
        )

    def _followed(self, before: Snapshot, known: SealedHead) -> Snapshot:
        try:
            return self._take(before, known)
        except CorruptFile:
            self.check_place()  # files of an index that was replaced are missing, or another's
            raise

    def _follow(self, head: Head) -> bool:
        """Takes the recipe and the options that came with a commit; whether the options changed.

        Structures change, by a compaction, and whether rows have keys, before there are any.
        """
        values = head.values
        changed = values.get("options") != self._options_crc
        if changed or (self.recipe is None and "recipe" in values):
            found = described(self.catalog, index=self.index)
            self.recipe = self.recipe or found.recipe
            if changed:
                self.options, self._options_crc = found.options, found.options_checksum
        return changed
