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
from simindex.storage.files.checksums import Verify
from simindex.storage.location import Described, described
from simindex.storage.snapshot import OtherOptions, Snapshot, take

LOOK_S = 1.0
"""So often a view looks whether its path still leads to what it has open: 1.5 us."""


class View:
    """Of one handle."""

    def __init__(
        self, path: Path, catalog: Catalog, found: Described, *, index: bytes, pinned: bool,
        verify: Verify,
    ) -> None:
        self.path: Path = path
        self.catalog: Catalog = catalog
        self.index: bytes = index
        self.segments: Path = path / "segments"
        self.options: IndexOptions = found.options
        self.recipe: Recipe | None = found.recipe
        self._options_checksum = found.options_checksum
        self._pinned, self._verify = pinned, verify
        self._looked = monotonic()
        self._lock = RLock()
        self._snapshot: Snapshot | None = None

    def open(self) -> None:
        """Takes the first snapshot; a writer does so once it has the lock."""
        self._snapshot = self._taken(None)

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
        self.look()
        snapshot = self.last()
        if self.catalog.head_value() == snapshot.value:
            return snapshot
        with self._lock:
            self._snapshot = snapshot = self._taken(self.last())
            return snapshot

    def look(self) -> None:
        """`check_place`, unless that was done within LOOK_S."""
        if monotonic() - self._looked > LOOK_S:
            self.check_place()

    def adopt(self, recipe: Recipe | None, options: IndexOptions | None) -> None:
        """Takes what this process has just committed, before the next snapshot tells the same."""
        with self._lock:  # else another thread could put back what it has read before
            self.recipe, self.options = recipe or self.recipe, options or self.options

    def check_place(self) -> None:
        """Raises ClosedIndex if another index, or a repaired catalog, has replaced this one.
        """
        check_place(self.catalog.environment)
        self._looked = monotonic()

    def _taken(self, before: Snapshot | None) -> Snapshot:
        """The newest snapshot, once the options are those that came with it.

        Structures change, by a compaction, and whether rows have keys, before there are any.
        """
        while True:
            try:
                found = take(
                    self.catalog, self.segments, index=self.index, options=self.options,
                    options_checksum=self._options_checksum, before=before, verify=self._verify,
                )
            except OtherOptions:
                self._describe()
            except CorruptFile:
                self.check_place()  # files of a replaced index are missing, or another's
                raise
            else:
                if self.recipe is None and "recipe" in found.head.values:
                    self._describe()
                return found

    def _describe(self) -> None:
        """Takes the recipe and the options of the last commit."""
        found = described(self.catalog, index=self.index)
        self.recipe = self.recipe or found.recipe
        self.options, self._options_checksum = found.options, found.options_checksum
