"""Wrong orders of what changes the disk, which a replay must catch: each leaves a sync out, or
does one thing ahead of another.

They replace `disk.system`. The index works as usual, because the calls are made; what
the trace tells is the order that a writer with the fault would have made them in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reliability.recorder import (
    Acknowledge,
    Begin,
    Content,
    Name,
    Operation,
    Recorder,
    Rename,
    Sync,
    SyncedWrite,
    Write,
)
from simindex.storage.files.descriptor import Descriptor


class NoFileSync(Recorder):
    """A file gets its name before its bytes are on the disk."""

    def sync(self, fd: int) -> None:
        pass


class NoDirectorySync(Recorder):
    """Names are never synced."""

    def sync_directory(self, path: Path) -> None:
        pass


class _Late(Recorder):
    """Holds operations back until LMDB has committed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._held: list[Operation] = []
        self._holding = False

    def note(self, *operations: Operation) -> None:
        if self._holding:
            self._held += operations
        else:
            super().note(*operations)

    @contextmanager
    def _back(self, hold: bool = True) -> Iterator[None]:
        self._holding, before = hold, self._holding
        try:
            yield
        finally:
            self._holding = before

    def committed(self, data: Path, before: Content | None, after: Content) -> None:
        with self._back(hold=False):
            super().committed(data, before, after)
            held, self._held = self._held, []
            self.note(*held)


class CommitBeforeData(_Late):
    """The transaction that names a file comes before the file is synced and renamed."""

    def sync(self, fd: int) -> None:
        with self._back():
            super().sync(fd)

    def rename(self, path: Path, to: Path) -> None:
        with self._back(to.parent.name == "segments"):
            super().rename(path, to)

    def sync_directory(self, path: Path) -> None:
        with self._back(path.name == "segments"):
            super().sync_directory(path)


class StructuresAfterCommit(_Late):
    """Permuted tables and slice lists get their names after the transaction that names them."""

    def rename(self, path: Path, to: Path) -> None:
        with self._back(to.suffix in (".bphs", ".issl")):
            super().rename(path, to)

    def sync_directory(self, path: Path) -> None:
        # Else the next file's sync would stand for theirs.
        with self._back(path.name == "segments" and bool(self._held)):
            super().sync_directory(path)


class DeletionsAfterCommit(StructuresAfterCommit):
    """Files of tombstones get their names after the transaction that names them."""

    def rename(self, path: Path, to: Path) -> None:
        with self._back(to.suffix == ".dead"):
            _Late.rename(self, path, to)


class UnlinkBeforeCommit(Recorder):
    """Files go before the transaction that no longer names them, or what was stored for them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._commit = 0

    def committed(self, data: Path, before: Content | None, after: Content) -> None:
        start = len(self.trace)
        super().committed(data, before, after)
        if any(isinstance(operation, SyncedWrite) for operation in self.trace[start:]):
            self._commit = start

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        since = self.trace[self._commit :]
        made = any(isinstance(op, Name | Rename) and op.node is not None for op in since)
        if self._commit and not made and not any(isinstance(op, Acknowledge) for op in since):
            self.trace.insert(self._commit, self.trace.pop())


class UnlinkBeforeUnstaging(UnlinkBeforeCommit):
    """Files of a merge that was given up go before the pages that only their names tell of."""


class NoSyncAtCreate(Recorder):
    """Names are not synced while an index is made."""

    def sync_directory(self, path: Path) -> None:
        if any(isinstance(operation, Acknowledge) for operation in self.trace):
            super().sync_directory(path)


class NoSyncOfTheParent(Recorder):
    """The name of a new index is not synced in the folder it is in."""

    def sync_directory(self, path: Path) -> None:
        if path != self.root:
            super().sync_directory(path)


class NoSyncOfTheCatalog(Recorder):
    """The name of a new index's catalog file is not synced."""

    def sync_directory(self, path: Path) -> None:
        if path.name != "catalog":
            super().sync_directory(path)


class FormatFirst(Recorder):
    """FORMAT, which says that there is an index, is made before the catalog."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._first: int | None = None

    def create(self, path: Path, flags: int) -> Descriptor:
        start = len(self.trace)
        file = super().create(path, flags)
        if path.name == "lock.mdb" and len(self.trace) > start:
            self._first = start  # where the catalog begins
        self._format = start
        return file

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        last = self.trace[-2] if len(self.trace) > 1 else None
        if isinstance(last, Rename) and last.to_name == "FORMAT" and self._first is not None:
            moved = self.trace[self._format :]
            del self.trace[self._format :]
            self.trace[self._first : self._first] = moved
            self._first = None


class PagesNotSynced(Recorder):
    """LMDB's pages are not synced before the meta page that leads to them (MDB_NOSYNC)."""

    def committed(self, data: Path, before: Content | None, after: Content) -> None:
        start = len(self.trace)
        super().committed(data, before, after)
        self.trace[start:] = [op for op in self.trace[start:] if not isinstance(op, Sync)]


class MetaNotSynced(Recorder):
    """LMDB's meta page is not synced when a commit returns (MDB_NOMETASYNC)."""

    def committed(self, data: Path, before: Content | None, after: Content) -> None:
        start = len(self.trace)
        super().committed(data, before, after)
        self.trace[start:] = [
            Write(op.file, op.offset, op.data) if isinstance(op, SyncedWrite) else op
            for op in self.trace[start:]
        ]


class PromisedEarly(Recorder):
    """A commit returns before its transaction has ended."""

    def note(self, *operations: Operation) -> None:
        super().note(*operations)
        if isinstance(operations[-1], Acknowledge):
            begun = max((n for n, op in enumerate(self.trace) if isinstance(op, Begin)), default=0)
            for place in range(begun, len(self.trace)):
                if isinstance(self.trace[place], SyncedWrite):
                    self.trace.insert(place, self.trace.pop())
                    return


ORDERS: dict[type[Recorder], tuple[str, ...]] = {
    # the wrong order: a workload that shows it, base first
    NoFileSync: ("index", "seal"),
    NoDirectorySync: ("index", "seal"),
    CommitBeforeData: ("index", "seal"),
    UnlinkBeforeCommit: ("index", "compact"),
    NoSyncAtCreate: ("nothing",),
    NoSyncOfTheParent: ("nothing",),
    NoSyncOfTheCatalog: ("nothing",),
    FormatFirst: ("nothing",),
    UnlinkBeforeUnstaging: ("index", "append", "seal", "append", "reopen"),
    StructuresAfterCommit: ("index", "restructure"),
    DeletionsAfterCommit: ("index", "seal", "delete"),
    PagesNotSynced: ("index", "delete"),
    MetaNotSynced: ("index", "delete"),
    PromisedEarly: ("index", "append"),
}
"""Those of any engine first, then those that this one could have."""

