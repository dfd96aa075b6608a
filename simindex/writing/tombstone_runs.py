"""Runs of tombstones in files of their own, that a merge makes one of.

    due        those that have become too many
    compact    they become one at once, by the thread of the caller
    install    the same once a merge has written it
"""

from __future__ import annotations

from collections.abc import Sequence

from simindex.storage.catalog.catalog import Edit
from simindex.storage.catalog.records import Run
from simindex.storage.segment_files import Merged
from simindex.storage.snapshot import Snapshot
from simindex.writing import policy
from simindex.writing.catalog_edit import drop_settled
from simindex.writing.committer import Committer


def due(snapshot: Snapshot, fanout: int) -> list[Run]:
    """Those that have become too many."""
    runs = [run for run in snapshot.head.tombstones if run.file]
    return [runs[place] for place in policy.pick([run.rows for run in runs], fanout)]


def compact(committer: Committer, runs: Sequence[Run]) -> None:
    """Replaces some by one."""
    committer.check_usable()
    snapshot = committer.alone()
    merged = committer.files.merge_deletions(
        snapshot.runs_of(runs), oldest=snapshot.oldest, generation=snapshot.head.generation + 1
    )
    _replace(committer, snapshot, runs, merged, merged.files)


def install(
    committer: Committer, snapshot: Snapshot, runs: Sequence[Run], merged: Merged
) -> None:
    """Replaces those by what a merge has written, whose files stay if the commit fails."""
    _replace(committer, snapshot, runs, merged, ())


def _replace(
    committer: Committer, snapshot: Snapshot, runs: Sequence[Run], merged: Merged,
    written: Sequence[str],
) -> None:
    """Puts a merged file in the place of its inputs, of which some may be settled and gone."""
    edit = Edit(snapshot.value, snapshot.head)
    for run in runs:
        if run in snapshot.head.tombstones:
            edit.drop_run("tombstones", run)
    if merged.deletions is not None:
        edit.add_deletion_file(merged.deletions)
    drop_settled(edit, snapshot.oldest)
    committer.finish(edit, written)
