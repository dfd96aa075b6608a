"""The one writer of an index: its commits, and its background merges.

    append       rows wait in memory; every batch_rows of them are written as a segment file that is
                 not yet part of the index                                       (waiting.py)
    commit       one LMDB transaction makes all of it live, with the tombstones; fewer rows than a
                 segment takes go to the catalog as a pending run, and pending runs are sealed into
                 a segment once they are that many together                      (committer.py)
    start        segments and files of tombstones that became too many are merged by threads
                                                                                 (merges.py)
    settle       the same until few segments are left, where the writer is idle or leaves
    install      one that has ended becomes part of the index, by a commit of its own; its inputs
                 are unlinked, and their space is given back by a thread
    compact      the same at once, by the thread of the caller
    cancel       ends the merges that run, and removes what they wrote
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    SimindexError,
    StorageFull,
    raised_by_a_handler,
)
from simindex.storage.catalog.catalog import Edit
from simindex.writing import policy, tombstone_runs
from simindex.writing.catalog_edit import drop_settled
from simindex.writing.committer import Committer
from simindex.writing.merge_progress import by_tables, telling
from simindex.writing.merges import MAX_MERGES, Merge, Merges, State
from simindex.writing.releasing import Releases

if TYPE_CHECKING:
    from simindex.records.reports import Progress
    from simindex.storage.segment_files import Merged
    from simindex.storage.snapshot import Snapshot
    from simindex.storage.tables.record import SegmentRecord
    from simindex.storage.tables.segment import Segment
    from simindex.storage.view import View

MAX_SEGMENTS = 64
"""From so many on, those being merged included, a commit waits until a merge has ended."""

PATIENCE = 0.6
"""Share of its own time that a commit waits for merges which are late: the less each waits, the
more alike they are."""

STAGED_PAGES = 16
"""Pages of header directories, 128 KiB each, that one commit stores for a merged segment. One of
12.8 M rows has 25 MB of them; all in one transaction took as long as the rest of the commit."""

log: logging.Logger = logging.getLogger(__package__)


class Writer:
    """Holds the index's lock, by its committer, from creation to `close`."""

    def __init__(self, view: View) -> None:
        self.merges: Merges = Merges()
        self._retired: list[Segment] = []
        self._releases = Releases()
        self._given_up: list[SegmentRecord] = []
        """Merged segments whose directories are stored, and to be removed with their files."""
        self.committer: Committer = Committer(view)

    def close(self) -> None:
        """Ends merges and gives the lock back; what was not committed is discarded.

        May be called again, after an interrupt.
        """
        try:
            self.cancel_merges()
            self._release_retired(closing=True)
        finally:
            self.committer.close()

    @property
    def uninstalled(self) -> set[str]:
        """Names of files of this writer that no commit names: of rows that were appended, and of
        merges that have ended or were given up."""
        records = [record for record, _ in self.committer.waiting.spilled] + self._given_up
        ours = {name for record in records for name in record.files}
        return ours.union(*(merge.files for merge in self.merges))

    def commit(self, *, seal_pending: bool = False) -> None:
        """Commits what waits, installs a merge that has ended, and begins what is due.

        `seal_pending` writes pending rows as a segment, however few they are.
        """
        committer = self.committer
        committer.hand_over()
        if not committer.waiting.empty:
            committer.view.check_place()
            self._keep_pace()
        try:
            changed = committer.commit(seal_pending=seal_pending)
        except StorageFull:
            self.make_room()
            changed = committer.commit(seal_pending=seal_pending)
        try:
            self.merges.hopeful |= changed
            if self.install_merges(whole=False) or changed:
                self.start_merges()
            self._remove_given_up()
            self._release_retired()
        except (ClosedIndex, CorruptFile, OSError, MemoryError) as error:
            self.merges.put_off(error)  # what is committed stays: it is not to be repeated

    def make_room(self) -> None:
        """Ends the merges and removes their files, so that what the disk had no room for can be
        tried again; without merges it raises the StorageFull that is being handled."""
        if not self.merges:
            raise
        self.cancel_merges()

    # -- merges ------------------------------------------------------------------------------------

    @property
    def _fanout(self) -> int:
        """With which commits merge; 0 where nothing is merged but by `compact`."""
        return self.committer.view.options.min_merge

    def due(self, *, settling: bool = False) -> list[Segment]:
        """Segments that have become too many, oldest first, but those that are being merged; or
        those of which too much is deleted. With `settling`, many are more than a few."""
        busy = {segment.name for merge in self.merges for segment in merge.inputs}
        snapshot = self.committer.snapshot
        free = [one for one in snapshot.segments if one.name not in busy]
        if not free:
            return []
        dead = [snapshot.dead_share(one) for one in free]
        live = [round(len(one) * (1 - share)) for one, share in zip(free, dead, strict=True)]
        places = policy.settling(live) if settling else policy.pick(live, self._fanout)
        if not places:
            kept = [snapshot.tombstones.concerning(one.horizon) for one in free]
            wasted = policy.purged(dead, kept, snapshot.stored_rows)
            groups = policy.fitting([live[place] for place in wasted])
            places = [wasted[place] for place in groups[0]] if groups else []
        return [free[place] for place in places]

    def start_merges(self, *, settling: bool = False) -> None:
        """Begins to merge what has become too much."""
        committer = self.committer
        snapshot = committer.snapshot
        if not self._fanout:
            return
        if not any(merge.runs for merge in self.merges):
            runs = tombstone_runs.due(snapshot, self._fanout)
            if runs:
                self.merges.start_runs(committer.files, runs, snapshot)
        while len(self.merges) < MAX_MERGES:
            inputs = self.due(settling=settling)
            if not inputs or not self.merges.start(
                committer.files, inputs, snapshot, hurried=not settling
            ):
                return

    @property
    def is_settled(self) -> bool:
        """Whether no merge is there, and an idle writer would begin none: it begins none where it
        has committed nothing, nor once a merge has failed, until the next commit."""
        if self.merges:
            return False
        return not (self._fanout and self.merges.hopeful and self.due(settling=True))

    def settle(self) -> None:
        """Begins the next merge on the way to few segments, if no merge is there."""
        if not self.is_settled and not self.merges:
            self.start_merges(settling=True)

    def _keep_pace(self) -> None:
        """Waits for merges that are late, at most a part of what the last commit took.

        Where there are `MAX_SEGMENTS`, it waits until a merge has ended, however long that takes.
        """
        snapshot = self.committer.snapshot
        if len(snapshot.segments) >= MAX_SEGMENTS:
            self.start_merges()
            self.merges.wait(lambda: any(merge.ended and merge.inputs for merge in self.merges))
        elif self.merges:
            appended, patience_s = snapshot.head.appended, PATIENCE * self.committer.commit_s
            self.merges.wait(
                lambda: not any(merge.late(appended) for merge in self.merges), patience_s
            )

    def await_merges(self) -> bool:
        """Waits for the merges that run. Returns whether there are any to install."""
        self.merges.wait(lambda: False)
        return len(self.merges) > 0

    def finish_merges(self, *, settle: bool, progress: Progress | None = None) -> None:
        """Waits for the merges that run and installs them; with `settle`, until few are left.

        The space of what they replace is free when it returns.
        `progress` is told how many rows are written, and how many will have to be.
        """
        done = 0
        while True:
            if settle:
                self.settle()
            running = tuple(self.merges)
            if not running:
                self._releases.wait()
                return
            rows = sum(merge.rows for merge in running)
            total = done + rows + (self._rows_to_come(running) if settle else 0)
            self.merges.wait(telling(progress, running, done, total))
            done += rows
            self.install_merges(whole=True)
            self._release_retired()

    def _rows_to_come(self, running: Sequence[Merge]) -> int:
        """Rows that are still to be merged once these have ended."""
        busy = {segment.name for merge in running for segment in merge.inputs}
        free = [len(one) for one in self.committer.snapshot.segments if one.name not in busy]
        return policy.settling_rows(free + [merge.rows for merge in running if merge.inputs])

    def install_next(self) -> None:
        """What an idle writer does at a time: it installs a part of what has ended, then settles.

        Nothing may wait for a commit.
        """
        self.install_merges(whole=False)
        self._remove_given_up()
        self.settle()
        self._release_retired()

    def install_merges(self, *, whole: bool) -> bool:
        """Makes merges that have ended part of the index; returns whether there were any.

        Unless `whole`, one of them, or a part of one that is large, so that no commit takes long.
        """
        installed = False
        while (done := self._install_one(whole=whole)) is not None:
            installed |= done
            if not whole:
                break
        return installed

    def _install_one(self, *, whole: bool) -> bool | None:
        """Makes a merge that has ended part of the index; None if none has, or none can be yet.

        Unless `whole`, no more than `STAGED_PAGES` of its directories are stored at a time, and it
        is installed when these are the last ones. A full disk, or no memory, puts it off to a later
        commit, which gives False.
        """
        committer = self.committer
        committer.check_usable()
        merge = self.merges.next_ended()
        if merge is None:
            return None
        snapshot = committer.alone()
        if merge.runs and not snapshot.runs_of(merge.runs):  # settled meanwhile
            self.merges.take(merge)
            merge.cancel()
            return False
        try:
            if len(merge.unstaged) > STAGED_PAGES and not (
                whole or len(snapshot.segments) >= MAX_SEGMENTS
            ):
                self._stage(merge)
                return None
            merged = replace(merge.merged, pages=merge.unstaged)
            self.merges.take(merge)
            if merge.runs:
                tombstone_runs.install(committer, snapshot, merge.runs, merged)
            else:
                self._replace(snapshot, merge.inputs, merged, merge.horizon, unlink=False)
        except (OSError, MemoryError) as error:
            committed = committer.failed is not None or committer.waiting.value != snapshot.value
            if committed or raised_by_a_handler(error):
                raise
            if merge in self.merges:
                self.merges.take(merge)
            self._remove(merge)
            self.merges.put_off(error)
            return False
        self.merges.installed += 1
        self._retired += merge.inputs
        gone = [name for segment in merge.inputs for name in segment.record.files]
        committer.held += committer.files.remove_held(gone)
        return True

    def _stage(self, merge: Merge) -> None:
        """Stores some of a merged segment's directories ahead of its installing."""
        count, merge.staged = max(0, merge.staged), -1
        pages = merge.merged.pages[count : count + STAGED_PAGES]
        self.committer.stage(pages)
        merge.staged = count + len(pages)

    def _remove(self, merge: Merge) -> None:
        """Removes what a merge has written: its directories, then its files, which name them.

        The bytes go at once, because the commit that removes directories may need their space.
        """
        committer = self.committer
        if not merge.staged or merge.state is not State.WRITTEN:
            merge.cancel()
        elif committer.failed is None:
            record = merge.merged.record
            assert record is not None  # else it would have no directories
            self._given_up.append(record)  # first: after an interrupt it is known what is left
            merge.give_up()
            committer.files.empty(record)
            self._remove_given_up()

    def _remove_given_up(self) -> None:
        """Removes the directories and files of merges that were given up.

        What cannot be removed now, for want of space, is removed after a later commit, at the end,
        or by the next writer.
        """
        committer, records = self.committer, self._given_up
        if not records or committer.failed is not None:
            return
        try:
            committer.catalog.unstage(committer.waiting.value, [one.name for one in records])
        except (SimindexError, OSError, MemoryError) as error:
            if raised_by_a_handler(error):
                raise
            log.warning("%s is not removed yet: %s", records[0].name, error)
            return
        committer.files.remove(records)
        records.clear()

    def _release_retired(self, *, closing: bool = False) -> None:
        """Gives up the inputs of installed merges, once no snapshot of the writer's has them."""
        retired, held = self._retired, self.committer.held
        if retired or held:
            if not closing:
                _ = self.committer.snapshot  # which is then of the commit that installed them
            self._releases.release(retired, held)  # which empties them, also if it is interrupted
            self._retired, self.committer.held = [], []

    def cancel_merges(self) -> None:
        """Ends the merges that run; nothing of them stays."""
        try:
            for merge in self.merges.take_staged():
                self._remove(merge)
            self._remove_given_up()
        finally:
            self.merges.cancel()

    def compact(self, inputs: Sequence[Segment], progress: Progress | None) -> None:
        """Replaces some segments by one, without their dead rows; drops settled tombstones."""
        committer = self.committer
        committer.check_usable()
        snapshot = committer.alone()
        horizon = snapshot.head.generation
        rows, step = by_tables(progress, 1 + committer.files.steps)
        merged = committer.files.merge(
            inputs, snapshot.tombstones, horizon=horizon, generation=horizon + 1, progress=rows,
            step=step,
        )
        self._replace(snapshot, inputs, merged, horizon, unlink=True)
        self.merges.installed += 1
        committer.files.remove(segment.record for segment in inputs)

    def _replace(
        self, snapshot: Snapshot, inputs: Sequence[Segment], merged: Merged, horizon: int, *,
        unlink: bool,
    ) -> None:
        """Puts a merged segment in the place of its inputs, whose files may then be unlinked.

        With `unlink`, the merged segment's files go if it is certain that the commit failed.
        """
        edit = Edit(snapshot.value, snapshot.head)
        edit.merge_segments(
            [segment.record for segment in inputs], merged.record, merged.pages, merged.dead
        )
        gone = {segment.name for segment in inputs}
        horizons = [table.horizon for table in snapshot.tables if table.name not in gone]
        drop_settled(edit, min([*horizons, horizon]))
        written = merged.record.files if unlink and merged.record is not None else ()
        self.committer.finish(edit, written)
