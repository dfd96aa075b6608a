"""The one writer of an index: its commits, and its background merges.

    append       rows wait in memory; every batch_rows of them are written as a segment file that is
                 not yet part of the index                                       (waiting.py)
    commit       one LMDB transaction makes all of it live, with the tombstones; fewer rows than a
                 segment takes go to the catalog as a pending run, and pending runs are sealed into
                 a segment once they are that many together                      (committer.py)
    start        segments and files of tombstones that became too many are merged by threads
                                                                                 (merges.py)
    install      one that has ended becomes part of the index, by a commit of its own; its inputs
                 are unlinked, and their space is given back by a thread
    compact      the same at once, by the thread of the caller
    cancel       ends the merges that run, and removes what they wrote
    restructure  segments get other permuted tables and slice lists for the same rows
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    SimindexError,
    StorageFull,
    raised_by_a_handler,
)
from simindex.options import checked_structures
from simindex.records.reports import Progress
from simindex.storage.catalog.catalog import Edit
from simindex.storage.catalog.records import Run
from simindex.storage.catalog.values import pack
from simindex.storage.files.verification import verified
from simindex.storage.segmentfiles import Merged, checked_designs, slice_design
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables import permuted, slicelist
from simindex.storage.tables.record import SegmentRecord, StructureRecord
from simindex.storage.tables.segment import Segment
from simindex.storage.view import View
from simindex.writing import policy
from simindex.writing.committer import Committer
from simindex.writing.edits import drop_settled
from simindex.writing.merges import MAX_MERGES, Merge, Merges, State, put_off, release

MAX_SEGMENTS = 64
"""From so many on, those being merged included, a commit waits until a merge has ended."""

PATIENCE = 0.6
"""Share of its own time that a commit waits for merges which are late: the less each waits, the
more alike they are."""

STAGED_PAGES = 16
"""Pages of header directories, 128 KiB each, that one commit stores for a merged segment. One of
12.8 M rows has 25 MB of them; all in one transaction took as long as the rest of the commit."""

Given = ParamSpec("Given")
Result = TypeVar("Result")

log = logging.getLogger("simindex")


class Writer:
    """Holds the index's lock, by its committer, from creation to `close`."""

    def __init__(self, view: View) -> None:
        self.merges = Merges()
        self._retired: list[Segment] = []
        self._given_up: list[SegmentRecord] = []
        """Merged segments whose directories are stored, and to be removed with their files."""
        self.committer = Committer(view)  # last: an interrupt behind it would keep the lock

    def close(self) -> None:
        """Ends merges and gives the lock back; what was not committed is discarded.

        May be called again, after an interrupt.
        """
        try:
            self.cancel_merges()
            self._release()
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
        changed = self.given_space(committer.commit, seal_pending=seal_pending)
        try:
            if self.install_merges(whole=False) or changed:
                self.start_merges()
            self._remove_given_up()
            self._release_retired()
        except (ClosedIndex, CorruptFile, OSError, MemoryError) as error:
            put_off(error)  # what is committed stays so: it is not for the caller to repeat

    def given_space(
        self, work: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs
    ) -> Result:
        """What `work` returns; on a full disk it is tried again without the files of merges."""
        try:
            return work(*arguments, **named)
        except StorageFull:
            if not self.merges:
                raise
            self.cancel_merges()
        return work(*arguments, **named)

    # -- merges ------------------------------------------------------------------------------------

    def due(self, fanout: int) -> list[Segment]:
        """Segments that have become too many, oldest first, but those that are being merged; or
        those of which too much is deleted. None where `fanout` says that nothing is merged."""
        busy = {segment.name for merge in self.merges for segment in merge.inputs}
        snapshot = self.committer.snapshot
        free = [one for one in snapshot.segments if one.name not in busy]
        if fanout < 2 or not free:
            return []
        dead = [snapshot.dead_share(one) for one in free]
        live = [round(len(one) * (1 - share)) for one, share in zip(free, dead, strict=True)]
        places = policy.pick(live, fanout)
        if not places:
            kept = [snapshot.tombstones.concerning(one.horizon) for one in free]
            wasted = policy.purged(dead, kept, snapshot.stored_rows)
            groups = policy.fitting([live[place] for place in wasted])
            places = [wasted[place] for place in groups[0]] if groups else []
        return [free[place] for place in places]

    def due_runs(self, fanout: int) -> list[Run]:
        """Files of tombstones that have become too many, unless some are being merged."""
        if any(merge.runs for merge in self.merges):
            return []
        runs = [run for run in self.committer.snapshot.head.tombstones if run.file]
        return [runs[place] for place in policy.pick([run.rows for run in runs], fanout)]

    def start_merges(self) -> None:
        """Begins to merge what has become too much."""
        committer = self.committer
        runs = self.due_runs(committer.view.options.min_merge)
        if runs:
            self.merges.start_runs(committer.files, runs, committer.snapshot)
        while len(self.merges) < MAX_MERGES:
            inputs = self.due(committer.view.options.min_merge)
            if not inputs or not self.merges.start(committer.files, inputs, committer.snapshot):
                return

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

    def finish_merges(self, *, start: bool) -> None:
        """Waits for the merges that run and installs them; with `start`, until none is due."""
        while self.await_merges():
            if self.install_merges(whole=True) and start:
                self.start_merges()
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
                self._replace_runs(snapshot, merge.runs, merged, unlink=False)
            else:
                self._replace(snapshot, merge.inputs, merged, merge.horizon, unlink=False)
        except (OSError, MemoryError) as error:
            committed = committer.failed is not None or committer.waiting.value != snapshot.value
            if committed or raised_by_a_handler(error):
                raise
            if merge in self.merges:
                self.merges.take(merge)
            self._remove(merge)
            put_off(error)
            return False
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

    def _release_retired(self) -> None:
        """Gives up the inputs of installed merges, once no snapshot of the writer's has them."""
        if self._retired or self.committer.held:
            _ = self.committer.snapshot  # which is then of the commit that installed them
            self._release()

    def _release(self) -> None:
        if self._retired or self.committer.held:
            # Which empties them, also if it is interrupted.
            release(self._retired, self.committer.held)
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
        merged = committer.files.merge(
            inputs, snapshot.tombstones, horizon=horizon, generation=horizon + 1, progress=progress
        )
        self._replace(snapshot, inputs, merged, horizon, unlink=True)
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

    def compact_runs(self, runs: Sequence[Run]) -> None:
        """Replaces some files of tombstones by one."""
        committer = self.committer
        committer.check_usable()
        snapshot = committer.alone()
        merged = committer.files.merge_deletions(
            snapshot.runs_of(runs), oldest=snapshot.oldest,
            generation=snapshot.head.generation + 1,
        )
        self._replace_runs(snapshot, runs, merged, unlink=True)

    def _replace_runs(
        self, snapshot: Snapshot, runs: Sequence[Run], merged: Merged, *, unlink: bool
    ) -> None:
        """Puts a merged file of tombstones in the place of its inputs, of which some may be settled
        and gone; `unlink` as in `_replace`."""
        edit = Edit(snapshot.value, snapshot.head)
        for run in runs:
            if run in snapshot.head.tombstones:
                edit.drop_run("tombstones", run)
        if merged.deletions is not None:
            edit.add_deletion_file(merged.deletions)
        drop_settled(edit, snapshot.oldest)
        self.committer.finish(edit, merged.files if unlink else ())

    def restructure(self, structures: Sequence[str]) -> bool:
        """Gives all segments these structures, in one commit; returns whether anything changed.

        Tables and lists that are there and undamaged stay; their files are read to know it.
        """
        committer = self.committer
        committer.check_usable()
        snapshot, files = committer.alone(), committer.files
        options = replace(committer.view.options, structures=checked_structures(structures))
        designs, slices = checked_designs(options), slice_design(options)
        edit = Edit(snapshot.value, snapshot.head)
        if options.structures != committer.view.options.structures:
            edit.set_value("options", pack(options.to_dict()))
        added: list[str] = []
        dropped: list[str] = []
        try:
            for segment in snapshot.segments:
                kept = [
                    s for s in segment.record.structures
                    if s.structure in options.structures and _sound(segment, s)
                ]
                stale = [s.name for s in segment.record.structures if s not in kept]
                names = {structure.structure for structure in kept}
                record = replace(segment.record, structures=tuple(kept))
                missing = [design for design in designs if design.structure not in names]
                lists = None if slices is None or slices.structure in names else slices
                if not stale and not missing and lists is None:
                    continue
                if missing or lists is not None:
                    segment.envelope.verify()
                made, directories = files.beside(
                    record, segment.fingerprints, missing, lists, edit.head.generation
                )
                added += [structure.name for structure in made]
                dropped += stale
                edit.change_structures(
                    segment.record, replace(record, structures=(*kept, *made)), directories
                )
            if not edit.puts:
                return False
        except BaseException:
            files.remove_named(added)
            raise
        committer.finish(edit, added)
        files.remove_named(dropped)
        return True


def _sound(segment: Segment, structure: StructureRecord) -> bool:
    """Whether a segment's tables or lists are whole, and are those that its rows make."""
    lists = segment.slices
    try:
        rows = verified(segment.fingerprints)
        if lists is not None and lists.record == structure:
            lists.envelope.verify()
            wrong = slicelist.disorder(lists, rows)
        else:
            tables = segment.structures[structure.structure]
            tables.envelope.verify()
            wrong = permuted.disorder(tables, permuted.content_sum(rows))
        return next(wrong, None) is None
    except CorruptFile:
        return False
