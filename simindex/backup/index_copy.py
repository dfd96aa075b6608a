"""Makes a backup of an index that is read and written meanwhile, in the place of an older one.

    pages.sim/                 the index: nothing is changed in it, and no writer waits
    backups/.pages.XXXXXXXX/   held while the backup is made
        new/                   FORMAT; links or copies of segment files; a new catalog
    backups/pages/             `new`, once all of it is durable: at once, see `replacement`

Invariants
1. Head, records and names of files are of one commit: they are read in one transaction. A file
   that a merge has taken away meanwhile gives another try, with the next commit.
2. The backup gets its name when all of it is durable, was opened as an index, and its files were
   found to be those that its catalog names.
3. An older backup goes after that. Until then nobody writes to it: its LOCK is held.
4. No file of the index is written to by the backup, nor by who later writes to the backup, though
   both share it: files are never changed once they have a name; see `durable`.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from simindex.backup import destination
from simindex.backup.files import Files
from simindex.errors import CorruptFile, SimindexError, StorageFailed
from simindex.records.reports import BackupReport, Progress
from simindex.repair.check import faults
from simindex.storage.ancestry import VALUE, State, branched, encode, why_not_older
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.catalog_copy import copy_commit
from simindex.storage.catalog.leases import acquire, check_place
from simindex.storage.catalog.records import Head, Reading
from simindex.storage.files import durable, locks, removal
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.format import read_format
from simindex.storage.files.refusals import remedied
from simindex.storage.location import checked_call, described, leased
from simindex.storage.snapshot import Snapshot, take
from simindex.writing.creation import require_place
from simindex.writing.replacement import (
    clear_up,
    folder_beside,
    led_to,
    left_to_the_next_run,
    remove_beside,
    take_the_place,
)

TRIES = 100
"""How often files of a commit are looked for, while merges take them away: milliseconds each."""


def make_backup(
    index: Path, catalog: Catalog, uuid: bytes, to: str | os.PathLike[str], *, verify: bool,
    progress: Progress | None,
) -> BackupReport:
    """Backs up the newest commit of an index; see `Index.backup`."""
    started = time.perf_counter()
    with remedied(index):
        path = checked_call(to, "c", None).absolute()
        require_place(path)  # a link to nothing is not followed
        path = led_to(path)
        return _made(led_to(index), catalog, uuid, path, verify, progress, started)


def _made(
    index: Path, catalog: Catalog, uuid: bytes, path: Path, verify: bool,
    progress: Progress | None, started: float,
) -> BackupReport:
    destination.require_possible(path, index)
    destination.require_free_or_backup(path, index, uuid)
    clear_up(path)
    with ExitStack() as held:
        older: State | None = None
        lock: Descriptor | None = None
        if destination.require_free_or_backup(path, index, uuid):
            older, lock = held.enter_context(destination.held(path))
        with _forbidden_told(path):
            beside, folder = folder_beside(path)
        held.enter_context(folder)
        try:
            new = beside / "new"
            durable.make_directory(new)
            # Before anything is in it: who may not read the index may not read its backup.
            mode = (path if path.exists() else index).stat().st_mode
            new.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
            backup = _Backup(index, catalog, uuid, path, older, new, verify=verify)
            report = backup.make(progress)
            _name(new, path, index, lock)
        except BaseException:
            _give_up(beside, path)
            raise
        remove_beside(beside, path)
    return replace(report, seconds=time.perf_counter() - started)


@contextmanager
def _forbidden_told(path: Path) -> Iterator[None]:
    """Names the folder of the backup where nobody may make another one in it."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        raise StorageFailed(
            f"no backup can be made in {path.parent} ({error.strerror})",
            remedy="check its permissions, or name another folder", path=str(path.parent),
            errno=error.errno,
        ) from error


def _name(new: Path, path: Path, index: Path, lock: Descriptor | None) -> None:
    """Gives a whole backup its name, which the older backup has whose lock is given."""
    if lock is not None:
        if not locks.is_locked(lock, path / "LOCK"):
            raise destination.kept(path, index, "is not what it was when the backup began")
        take_the_place(path, new.parent)
        return
    try:
        durable.move(new, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise destination.kept(path, index, "was made by somebody else meanwhile") from error


def _give_up(beside: Path, path: Path) -> None:
    """Removes what was made, and gives an older backup its name again if it has lost it.

    Where somebody has made something else of that name meanwhile, both backups stay.
    """
    with left_to_the_next_run():
        if (beside / "old").exists():
            if path.exists():
                return
            durable.move(beside / "old", path)
        remove_beside(beside, path)


class _Backup:
    """One that is being made in the folder `new`."""

    def __init__(
        self, index: Path, catalog: Catalog, uuid: bytes, path: Path, older: State | None,
        new: Path, *, verify: bool,
    ) -> None:
        self.index, self.catalog, self.uuid = index, catalog, uuid
        self.path, self.older, self.new = path, older, new
        self.verify = verify
        self.catalog_bytes = 0
        self.value = b""
        """The head that was seen last, as it is stored."""
        before = None if older is None else path / "segments"
        self.files = Files(index / "segments", before, new / "segments", verify=verify)

    def make(self, progress: Progress | None) -> BackupReport:
        """Makes all of it durable under its temporary name."""
        # First: so who finds the folder after a kill knows it as one of an index.
        self._copy_format()
        durable.make_directory(self.new / "segments")
        head = self._take()
        self.files.copy(progress)
        for name in ("segments", "catalog"):
            durable.sync_directory(self.new / name)
        durable.sync_directory(self.new)
        self._check(head, progress)
        files = self.files
        return BackupReport(
            path=str(self.path), generation=head.generation, linked=len(files.linked),
            kept=len(files.kept), copied=len(files.copied),
            bytes_copied=files.bytes_copied + self.catalog_bytes,
            verified=self.verify, seconds=0.0,
        )

    def _copy_format(self) -> None:
        read_format(self.index, writable=True)  # what this version reads past would be lost
        data = (self.index / "FORMAT").read_bytes()

        def same(_fd: int) -> None:
            if read_format(self.index) != self.uuid:
                check_place(self.catalog.environment)
                raise CorruptFile(f"{self.index}/FORMAT names another index than the one opened")

        with durable.NewFile(self.new) as file:
            file.write(data, 0)
            file.publish("FORMAT", same)

    def _take(self) -> Head:
        """Takes the files and the catalog of the newest commit; returns its head."""
        before = b""
        for _ in range(TRIES):
            try:
                return self._taken()
            except FileNotFoundError as error:
                if isinstance(error, SimindexError):
                    raise
                gone = str(error.filename)
                damage = CorruptFile(f"the catalog names {gone}, which is missing", path=gone)
            except CorruptFile as error:  # or, without a table of readers, a page used again
                damage = error
            check_place(self.catalog.environment)
            # A file goes after a commit that does not name it, which the next try then sees.
            if self.value == before:
                break
            before = self.value
        raise damage

    def _taken(self) -> Head:
        catalog = self.new / "catalog"
        removal.remove_tree(catalog)  # of the try before
        durable.make_directory(catalog)
        # A lease is taken and given back outside of the transaction: another thread that closes the
        # index waits for this to end, and nobody else gets a lease meanwhile.
        with (
            acquire(catalog, writable=True, create=True) as environment,
            self.catalog.environment.transaction() as txn,
        ):
            reading = Reading(txn)
            self.value, _ = reading.head()
            now = destination.state(reading)
            reason = None if self.older is None else why_not_older(self.older, now)
            if reason is not None:
                raise destination.kept(self.path, self.index, reason)
            self.files.take(_files(reading, now.head))
            way = encode((*now.way, branched(now.head.generation)))
            copy_commit(txn, now.head, environment, VALUE, way)
            self.catalog_bytes = environment.file_bytes
        return now.head

    def _check(self, head: Head, progress: Progress | None) -> None:
        """Opens the backup as an index; with `verify`, reads all of it.

        Raises CorruptFile, which names the file of the index, unless it is whole.
        """
        try:
            uuid, lease = leased(self.new, writable=False)
            with lease as environment:
                self._check_content(Catalog(environment), uuid, head, progress)
        except CorruptFile as error:
            def named(text: object) -> str:
                return str(text).replace(str(self.new), str(self.index))

            raise CorruptFile(
                named(error.what), remedy=error.remedy, path=named(error.data.get("path", ""))
            ) from error

    def _check_content(
        self, catalog: Catalog, uuid: bytes, head: Head, progress: Progress | None
    ) -> None:
        options = described(catalog, index=uuid).options
        snapshot = take(catalog, self.new / "segments", index=uuid, options=options)
        if uuid != self.uuid or snapshot.head.generation != head.generation:
            raise CorruptFile(f"{self.new} reads back differently than it was written")
        for error in _damage(snapshot):
            raise error
        total = sum(path.stat().st_size for path in (self.new / "segments").iterdir())

        def told(rows: int, of_rows: int) -> None:
            if progress is not None:
                progress(total * rows // max(1, of_rows), total)

        if self.verify:
            for finding in faults(
                self.new, catalog, index=uuid, options=options, snapshot=snapshot, progress=told
            ):
                raise CorruptFile(f"{finding.path}: {finding.what}", path=finding.path)


def _files(reading: Reading, head: Head) -> Iterator[str]:
    """Names of all files of a commit."""
    yield from (run.file for run in head.tombstones if run.file)
    for name in head.segments:
        yield from reading.segment(head, name).files


def _damage(snapshot: Snapshot) -> Iterator[CorruptFile]:
    """Of structures, without which the index answers, and which are opened all the same."""
    for segment in snapshot.segments:
        for structure in (*segment.structures.values(), segment.slices):
            if structure is not None and structure.damage is not None:
                yield structure.damage
