"""A lost or damaged index made usable again, with what its files still give.

    survey     reads all there is, and says what is wrong and what is lost (survey.py); what is to
               be done about it are the steps (steps.py)
    segments   what is intact of a damaged one is written as a new one; files beside are built anew
    catalog    a new one is made beside the old one, whole and synced, then gets its name
    kept       what was replaced, or is not part of the index, is moved into `damaged-<n>/`

    again      all is read again, as the next repair would: what is still wrong is told

Invariants
1. Until the new catalog gets the old one's name, the index is what it was: new files are strays.
2. Nothing is deleted but what a repair itself made and did not finish. A segment's file that will
   be no part of the index has a second name in `damaged-<n>/` before the new catalog is in place,
   since the next writer removes strays.
3. Whenever it is interrupted, it can be run again, and finds as much.
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
from simindex.storage.files.refusals import translated
from simindex.storage.location import check_age, check_storage, checked_call, described, leased
from simindex.storage.snapshot import take


def repair(
    path: str | os.PathLike[str], *, apply: bool = False, progress: Progress | None = None
) -> RepairReport:
    """Finds out what is wrong with an index and, with `apply`, rebuilds it from what is left.

    Parameters
    ----------
    apply : bool
        Without it nothing is changed, and the report tells what would be.
    progress : function, optional
        Called with bytes of segments read and in all.

    Returns
    -------
    RepairReport

    Raises
    ------
    InvalidOption
        If `path` is not a path, or `apply` neither true nor false.
    IndexNotFound, IndexLocked
        If there is nothing of an index, or it is open for writing: close it first.
    FormatTooNew, FormatTooOld
        If another version wrote it; with `apply`, FormatTooNew also if this one may only read it.
    CorruptFile
        If too little is left to make an index of, or something in the way is to be removed first.
    StorageFailed
        If the system refuses to read a file.
    StorageFull
        If there is no space for the new files; the index is as it was.

    Notes
    -----
    Rows are in the segments, and a segment's rows come back unless damage reaches them. A catalog
    that is damaged gives back what of its records is whole. Of one that is gone are lost: rows that
    waited in it for a segment, deletions since each segment was written, the recipe, and the sample
    of weights. Rows that were appended but not committed may be back then.

    All files are read, in bounded memory, but for permuted tables that are built anew: these are
    sorted one at a time in memory, 8 bytes a row of 64 bits; and so are rows of a segment that are
    out of order, with their ids and keys. With `apply` all are read again in the end, and what is
    still wrong then is in the report.
    """
    directory = checked_call(path, "r", None, "lazy").absolute()
    apply = as_flag(apply, "apply")
    with translated(directory, apply):
        # Before the lock: its file would be made, or written over, in a folder of somebody else.
        if not anything_of_an_index(directory):
            raise IndexNotFound(
                f"there is no index at {path}, nor anything of one",
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
