"""Merged segments put in the place of their inputs.

    start     segments that became too many are merged by threads (merges.py)
    install   one that has ended becomes part of the index, by a commit of its own; its inputs are
              unlinked, and their space is given back by a thread
    compact   the same at once, by the thread of the caller
    cancel    ends the merges that run, and removes what they wrote
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from simindex.errors import SimindexError, raised_by_a_handler
from simindex.records.reports import Progress
from simindex.storage.catalog.catalog import Edit
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.segmentfiles import Merged
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.segment import Segment
from simindex.writing import policy
from simindex.writing.committer import Committer
from simindex.writing.composition import drop_settled
from simindex.writing.merges import Merge, Merges, State, put_off, release

MAX_SEGMENTS = 64
"""From so many on, those being merged included, a commit waits until a merge has ended."""

PATIENCE = 0.6
"""Share of its own time that a commit waits for merges which are late: the less each waits, the
more alike they are."""

STAGED_PAGES = 16
"""Pages of header directories, 128 KiB each, that one commit stores for a merged segment. One of
12.8 M rows has 25 MB of them; all in one transaction took as long as the rest of the commit."""

log = logging.getLogger("simindex")


class Installer:
    """Of one writer."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self.merges = Merges()
        self._retired: list[Segment] = []
        self._held: list[Descriptor] = []

    def due(self, fanout: int) -> list[Segment]:
        """Segments that have become too many, oldest first, but those that are being merged."""
        busy = self.merges.inputs
        free = [one for one in self._committer.snapshot.segments if one.name not in busy]
        return [free[place] for place in policy.pick([len(s) for s in free], fanout)]

    def start(self) -> None:
        """Begins to merge segments that have become too many."""
        committer = self._committer
        while not self.merges.full:
            inputs = self.due(committer.options.min_merge)
            snapshot = committer.snapshot
            if not inputs or not self.merges.start(
                committer.files, inputs, snapshot.tombstones, horizon=snapshot.head.generation,
                appended=snapshot.head.appended,
            ):
                return

    def keep_pace(self, commit_s: float) -> None:
        """Waits for merges that are late, at most a part of what the last commit took.

        Where there are `MAX_SEGMENTS`, it waits until a merge has ended, however long that takes.
        """
        snapshot = self._committer.snapshot
        if len(snapshot.segments) >= MAX_SEGMENTS:
            self.start()
            self.merges.wait(self.merges.any_ended)
        elif self.merges:
            appended = snapshot.head.appended
            self.merges.wait(lambda: self.merges.on_time(appended), PATIENCE * commit_s)

    def await_merges(self) -> bool:
        """Waits for the merges that run. Returns whether there are any to install."""
        self.merges.wait(self.merges.all_ended)
        return len(self.merges) > 0

    def install(self, *, whole: bool) -> bool:
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
        is installed when these are the last ones. A full disk puts it off to a later commit, which
        gives False.
        """
        committer = self._committer
        committer.check_usable()
        merge = self.merges.next_ended()
        if merge is None:
            return None
        snapshot = committer.alone()
        try:
            if len(merge.unstaged) > STAGED_PAGES and not (
                whole or len(snapshot.segments) >= MAX_SEGMENTS
            ):
                self._stage(merge)
                return None
            merged = replace(merge.merged, pages=merge.unstaged)
            self.merges.take(merge)
            self._replace(snapshot, merge.inputs, merged, merge.horizon, unlink=False)
        except OSError as error:
            committed = committer.failed is not None or committer.waiting.value != snapshot.value
            if committed or raised_by_a_handler(error):
                raise
            if merge in self.merges:
                self.merges.take(merge)
            self._remove(merge)
            put_off(error)
            return False
        self._retired += merge.inputs
        self._held += committer.files.remove_held(segment.record for segment in merge.inputs)
        return True

    def _stage(self, merge: Merge) -> None:
        """Stores some of a merged segment's directories ahead of its installing."""
        count, merge.staged = max(0, merge.staged), -1
        pages = merge.merged.pages[count : count + STAGED_PAGES]
        self._committer.stage(pages)
        merge.staged = count + len(pages)

    def _remove(self, merge: Merge) -> None:
        """Removes what a merge has written: its directories, then its files, which tell of them.

        What cannot be removed now is left to the next writer.
        """
        record = merge.merged.record if merge.state is State.WRITTEN else None
        if record is not None and merge.staged:
            if self._committer.failed is not None:
                return
            try:
                self._committer.unstage(record.name)
            except (SimindexError, OSError, MemoryError) as error:
                if raised_by_a_handler(error):
                    raise
                log.warning("%s is not removed yet, the next writer does: %s", record.name, error)
                return
        merge.cancel()  # which unlinks its files

    def release_retired(self) -> None:
        """Gives up the inputs of installed merges, once no snapshot of the writer's has them."""
        if self._retired or self._held:
            _ = self._committer.snapshot  # which is then of the commit that installed them
            self._release()

    def _release(self) -> None:
        release(self._retired, self._held)  # which empties them, also if it is interrupted
        self._retired, self._held = [], []

    def cancel(self) -> None:
        """Ends the merges that run; nothing of them stays."""
        try:
            for merge in self.merges.take_staged():
                self._remove(merge)
        finally:
            self.merges.cancel()

    def close(self) -> None:
        """Ends the merges, and gives up what was merged; may be called again."""
        self.cancel()
        if self._retired or self._held:
            self._release()

    def compact(self, inputs: Sequence[Segment], progress: Progress | None) -> None:
        """Replaces some segments by one, without their dead rows; drops settled tombstones."""
        committer = self._committer
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
        self._committer.finish(edit, written)
