"""Repairs a lost or damaged index from what its files still contain.

    survey     reads all files, and says what is wrong and what is lost (survey.py); the steps say
               what to do about it (steps.py)
    segments   the intact rows of a damaged segment become a new segment; its other files are
               rebuilt
    catalog    a new catalog is made next to the old one, completed and synced, then gets its name
    kept       replaced files, and files that are not part of the index, move into `damaged-<n>/`
    again      all files are read again, as the next repair would do; the report has what is still
               wrong

Invariants
1. Until the new catalog gets the old one's name, the index is unchanged: new files are strays.
2. A repair deletes only files that a repair made and did not finish. The file of a segment that
   will not be part of the index has a second name in `damaged-<n>/` before the new catalog is in
   place, because the next writer removes strays.
3. After an interrupt the repair can run again, and recovers as much.
4. `RepairReport.remaining` is empty only if the next repair would find nothing to do.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from simindex.errors import CorruptFile, IndexNotFound, SimindexError, raised_by_a_handler
from simindex.options import as_flag
from simindex.records.reports import Finding, Progress, RepairReport
from simindex.repair.check import faults, strays
from simindex.repair.steps import Steps
from simindex.repair.survey import anything_of_an_index, survey
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.files import locks
from simindex.storage.files.format import check_features, read_format
from simindex.storage.files.published import require_unpublished
from simindex.storage.files.refusals import translated
from simindex.storage.location import check_age, check_storage, checked_call, described, leased
from simindex.storage.snapshot import take


def repair(
    path: str | os.PathLike[str], *, apply: bool = False, progress: Progress | None = None
) -> RepairReport:
    """Reports the damage of an index and, with `apply`, rebuilds the index from its intact parts.

    Parameters
    ----------
    apply : bool
        Do the repair. Without it nothing is changed, and the report shows what would be done.
    progress : function (done, all), optional
        Called with the number of bytes of segments read and to read.

    Returns
    -------
    RepairReport

    Raises
    ------
    InvalidOption
        If `path` is not a path, or `apply` neither true nor false.
    IndexNotFound, IndexLocked
        If there is no part of an index, or if it is open for writing: close it first.
    FormatTooNew, FormatTooOld
        If another version wrote it. With `apply`, FormatTooNew also if this version may only read
        it.
    CorruptFile
        If too little is left to make an index from, or if you must remove something first.
    ReadOnlyIndex
        With `apply`, of a published shard of `simindex.distributed`: repair a copy of it.
    StorageFailed
        If the system refuses to read a file.
    StorageFull
        If there is no space for the new files. The index is as it was.

    Notes
    -----
    A repair recovers the rows of segments, except rows that damage reaches, and the undamaged
    records of the catalog. Without the catalog these are lost: rows that waited in it for a
    segment, deletions since each segment was written, the recipe, and the sample of weights. Rows
    that were appended but not committed may appear.

    It reads all files, in bounded memory, with two exceptions: permuted tables that are rebuilt are
    sorted in memory one at a time, 8 bytes a row of 64 bits, and so are rows of a segment that are
    out of order, with their ids and keys. With `apply` it reads all files again at the end, and
    reports what is still wrong.
    """
    directory = checked_call(path, "r", None, "lazy").absolute()
    apply = as_flag(apply, "apply")
    if apply:
        require_unpublished(directory)
    with translated(directory, apply):
        # Before the lock: its file would be made, or written over, in a folder of somebody else.
        if not anything_of_an_index(directory):
            raise IndexNotFound(
                f"there is no index at {path}, and no file of one",
                remedy="name the folder of the index", path=str(path),
            )
    with translated(directory, apply), _locked(directory, apply=apply):
        steps = _surveyed(directory, progress)
        found = steps.found
        if not found.findings or not apply:
            return steps.report()
        # Refuses to write where there is what this version reads past, as a writer does.
        if found.format_sound:
            read_format(found.path, writable=True)
        for file in found.segments:
            check_features(file.path, file.header.read_compatible)
        if steps.only_obstructed:
            steps.clear()
            found.findings += _checked(directory)
        if not steps.only_obstructed:
            steps.do()
        return replace(steps.report(), applied=True, remaining=tuple(_remaining(directory)))


def _surveyed(directory: Path, progress: Progress | None) -> Steps:
    """What is to be done about all that is wrong with an index."""
    found = survey(directory, progress)
    check_storage(
        directory, allow_remote=found.options is not None and found.options.allow_remote
    )
    steps = Steps(found)
    if not found.findings:
        found.findings += _checked(directory)
    return steps


def _remaining(directory: Path) -> list[Finding]:
    """What is wrong with an index that was repaired.

    Where the system refuses to read it, a note says so: the report must not be lost by it.
    """
    try:
        return _surveyed(directory, None).found.findings
    except CorruptFile as error:
        return [Finding("error", str(directory), error.what)]
    except (SimindexError, OSError, MemoryError) as error:
        if raised_by_a_handler(error):
            raise
        why = str(error) or "no memory"
        what = f"was repaired, but cannot be read again ({why}): run `simindex check`"
        return [Finding("note", str(directory), what)]


@contextmanager
def _locked(directory: Path, *, apply: bool) -> Iterator[None]:
    """Holds the writer's lock; on a read-only medium, where nothing is to be changed, none."""
    try:
        lock = locks.lock(directory / "LOCK")
    except OSError as error:
        if apply or isinstance(error, SimindexError) or error.errno not in (
            errno.EROFS, errno.EACCES
        ):
            raise
        yield
        return
    try:
        yield
    finally:
        locks.unlock(lock)


def _checked(directory: Path) -> list[Finding]:
    """The damage that `check` finds, once the survey found nothing."""
    try:
        uuid, lease = leased(directory, writable=False)
        try:
            catalog = Catalog(lease.environment)
            options = described(catalog, index=uuid).options
            snapshot = take(catalog, directory / "segments", index=uuid, options=options)
            check_age(directory, catalog, snapshot)
            found = faults(directory, catalog, index=uuid, options=options, snapshot=snapshot)
            found += strays(directory, catalog, snapshot)
        finally:
            lease.release()
    except CorruptFile as error:
        return [Finding("error", str(directory), error.what)]
    return [each for each in found if each.severity == "error"]
