"""Merges that run in the background, each in a thread of its own.

    Merges.start      segments that have become too many -> a Merge, whose thread writes one
    Merges.start_runs files of tombstones, likewise
    Merges.next_ended one that has ended, for the writer to install
    Merges.wait       for a writer that is too fast
    Merges.cancel     ends them all; nothing of them stays

Invariants
1. A thread reads segment files and writes new ones. It opens no transaction: those of LMDB belong
   to the thread that began them, so what is written is installed by the writer's own.
2. A segment is an input of one merge at a time, and stays live until that merge is installed.
   So is a run of tombstones, unless it is settled and dropped meanwhile.
   Only a merge that is WRITTEN can be installed. One that was cancelled never becomes WRITTEN,
   whatever interrupts the cancelling, and what it has written is never named by a commit.
3. The horizon of a merged segment is the commit its inputs were taken from. Tombstones committed
   since apply to it, and are kept as long as an input is live.
4. A thread knows neither writer nor index, so a handle that is dropped is closed as ever; and it
   ends with the process.

A writer must not outrun its merges for ever. By the time it has appended `ALLOWANCE` times the rows
of a merge, that merge is to end: while it is further than the merge, it waits with each commit, but
a part of its own time at most. As many merges are at work as there are processors but one, which
is the writer's, and a smaller one goes first: none waits for a large one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from math import inf
from threading import Condition, RLock, Thread, current_thread
from time import monotonic, sleep

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.resources.memory import give_back
from simindex.resources.threads import begin, processors
from simindex.storage.catalog.records import Pages, Run
from simindex.storage.segment_files import Merged, SegmentFiles
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.segment import Segment

MAX_MERGES = 4
"""That run at a time. Each is of segments that came since the others began, so they are smaller."""

ALLOWANCE = 0.5
"""Rows a writer may append during a merge, as a share of the merge's rows."""

SLACK = 0.1
"""Share of a merge that it may be late: it tells how far it is after each table only."""

LARGE_ROWS = 1 << 17
"""After a merge of so many, memory that was freed is given back to the system: a writer of 2 M rows
kept 60 MiB that nothing used."""

LOOK_S = 1e-3
"""So often a writer that waits looks how far merges are. It waits for no condition and no event of
`threading`: an interrupt may leave their own locks taken, and then nobody gets past them."""

START_S = 0.5
"""So long it is looked whether a thread whose start was interrupted is at work."""

PATIENCE_S = 0.1
"""So long a merge waits for what another thread may have been kept from telling."""

log: logging.Logger = logging.getLogger(__package__)


class State(Enum):
    """How far a merge is; it changes under the lock of `Merges`, and never back."""

    RUNNING = auto()
    WRITTEN = auto()
    """Its outcome is whole: it may be installed."""
    FAILED = auto()
    CANCELLED = auto()
    """It is given up: nothing of it may become part of the index."""


class _Cancelled(Exception):
    """Ends a merge's thread from within."""


class Merge:
    """Some segments, or runs of tombstones, on their way into one; made and started by `Merges`."""

    def __init__(
        self,
        files: SegmentFiles,
        snapshot: Snapshot,
        inputs: Sequence[Segment],
        runs: Sequence[Run],
        lock: RLock,
        moved: Condition,
        beside: Sequence[Merge],
        *,
        hurried: bool,
    ) -> None:
        head = snapshot.head
        self.inputs: tuple[Segment, ...] = tuple(inputs)
        self.runs: tuple[Run, ...] = tuple(runs)
        self.horizon: int = head.generation
        self.rows: int = sum(len(segment) for segment in inputs) + sum(run.rows for run in runs)
        self.appended: int = head.appended
        """Rows of the index when it began."""
        self.done: float = 0.0
        """Share of the work."""
        self._hurried = hurried
        self.state: State = State.RUNNING
        self.staged: int = 0
        """Pages of its directories that are stored; -1 while it is not known."""
        self.error: BaseException | None = None
        self._pid = os.getpid()
        self._begun = self._left = False
        self._merged: Merged | None = None
        self._ended = False
        self._files, self._tombstones = files, snapshot.tombstones
        self._oldest = snapshot.oldest
        self._merging = snapshot.runs_of(runs)
        self._lock, self._moved = lock, moved
        self._beside = beside
        self._at_once = max(1, processors() - 1)
        self._tables = 1 if runs else 1 + files.steps
        self._steps = 0
        self.thread: Thread = Thread(target=self._run, name="simindex merge", daemon=True)

    def _run(self) -> None:
        self._begun = True
        try:
            self._merge()
            if self.rows >= LARGE_ROWS:
                give_back()
        finally:
            self._left = True

    def _merge(self) -> None:
        merged: Merged | None = None
        failure: BaseException | None = None
        try:
            merged = self._written()
        except _Cancelled:
            pass
        except BaseException as error:  # it is for the writer to say, who is in another thread
            failure = error
        with self._lock:
            if self.state is State.RUNNING:
                self._merged, self.error = merged, failure
                self.state = State.FAILED if merged is None else State.WRITTEN
                merged = None
            failure = None  # its traceback leads to this frame
            self._ended = True
            self._moved.notify_all()
        self._remove(merged)  # of a merge that was cancelled meanwhile

    def _written(self) -> Merged:
        if self.runs:
            return self._files.merge_deletions(
                self._merging, oldest=self._oldest, generation=self.horizon + 1
            )
        return self._files.merge(
            self.inputs, self._tombstones, horizon=self.horizon, generation=self.horizon + 1,
            progress=lambda rows, total: self._move(rows / total), step=self._step,
        )

    def join(self) -> None:
        """Returns once its thread has left, if it was started at all.

        `Thread.join` is not enough: where an interrupt ends one, Python may count a thread that is
        at work as ended, and another `join` then returns at once.
        """
        if self.thread.ident is None or not self.begins():
            return  # where its start was interrupted, it may never begin
        while self.at_work:
            sleep(LOOK_S)
        self.thread.join()

    def begins(self) -> bool:
        """Whether its thread is at work, or comes to be soon."""
        deadline = monotonic() + START_S
        while not self._begun and monotonic() < deadline:
            sleep(LOOK_S)
        return self._begun

    def _step(self) -> None:
        self._steps += 1
        self._move(1)

    def _move(self, share: float) -> None:
        """Notes what share of the table being written is done, and lets smaller merges go first."""
        with self._lock:
            while self.state is State.RUNNING and self._smaller() >= self._at_once:
                self._moved.wait(PATIENCE_S)
            if self.state is not State.RUNNING:
                raise _Cancelled
            self.done = (self._steps + share) / self._tables
            self._moved.notify_all()

    def _smaller(self) -> int:
        """How many merges of fewer rows are at work."""
        return sum(
            not other.ended and other.rows < self.rows
            for other in tuple(self._beside) if other is not self
        )

    def cancel(self) -> None:
        """Makes the thread end soon, and removes what it has written; it cannot be installed."""
        self._remove(self.give_up())

    def give_up(self) -> Merged | None:
        """Makes the thread end soon; returns what it has written, which the caller is to remove.
        """
        with self._lock:
            self.state = State.CANCELLED
            self._moved.notify_all()
            merged, self._merged = self._merged, None
        return merged

    def _remove(self, merged: Merged | None) -> None:
        if merged is not None:
            self._files.remove_named(merged.files)

    @property
    def ended(self) -> bool:
        """Whether its thread is at work no more, however it came to that."""
        return self._ended or (self.thread.ident is not None and not self.at_work)

    @property
    def at_work(self) -> bool:
        """Whether its thread was started and has not left, whatever Python counts; see `join`."""
        own = self._pid == os.getpid()  # a forked child has not the thread
        return own and not self._left and (self._begun or self.thread.is_alive())

    @property
    def merged(self) -> Merged:
        """What it has made; of a merge that is WRITTEN only."""
        if self.state is not State.WRITTEN or self._merged is None:
            raise AssertionError(f"a merge that is {self.state.name} has no outcome")
        return self._merged

    @property
    def files(self) -> list[str]:
        """Names of the files that it has written, if it is WRITTEN."""
        merged = self._merged
        return [] if merged is None else list(merged.files)

    @property
    def unstaged(self) -> Pages:
        """Directories of the merged segment that are not stored yet."""
        return self.merged.pages[max(0, self.staged) :]

    def late(self, appended: int) -> bool:
        """Whether it is not as far as it should be by now, with so many rows in the index.

        Tombstones are merged in less time than as many are committed. What an idle writer began
        is never late.
        """
        if self.ended or self.runs or not self._hurried:
            return False
        return self.done + SLACK < (appended - self.appended) / max(1.0, ALLOWANCE * self.rows)


class Merges:
    """Those of one writer. All methods are called by the threads of the writer, one at a time."""

    installed: int
    failed: int

    def __init__(self) -> None:
        self._merges: list[Merge] = []
        self.hopeful: bool = False
        """Whether something was committed since the last failure, of full disks for instance."""
        self.installed = self.failed = 0
        """How many became part of the index, and how many failed."""
        self.over: bool = False
        """Whether the process ends, so that none begins any more."""
        # Entered by itself, never as the condition: an interrupt could come with the lock taken,
        # and nobody would give it back.
        self._lock = RLock()
        self._moved = Condition(self._lock)

    def __len__(self) -> int:
        return len(self._merges)

    def __iter__(self) -> Iterator[Merge]:
        return iter(tuple(self._merges))

    @property
    def running(self) -> tuple[Merge, ...]:
        """Those whose threads are at work."""
        return tuple(merge for merge in self._merges if merge.at_work)

    def start(
        self, files: SegmentFiles, inputs: Sequence[Segment], snapshot: Snapshot, *,
        hurried: bool = True,
    ) -> bool:
        """Begins to merge some segments; returns whether a thread could be had for it.

        A writer that outruns it waits for it, if it is `hurried`.
        """
        return self._start(files, snapshot, inputs, (), hurried=hurried)

    def start_runs(self, files: SegmentFiles, runs: Sequence[Run], snapshot: Snapshot) -> bool:
        """Begins to merge some files of tombstones; returns as `start`."""
        return self._start(files, snapshot, (), runs, hurried=True)

    def _start(
        self, files: SegmentFiles, snapshot: Snapshot, inputs: Sequence[Segment],
        runs: Sequence[Run], *, hurried: bool,
    ) -> bool:
        if self.over:
            return False
        merge = Merge(
            files, snapshot, inputs, runs, self._lock, self._moved, self._merges, hurried=hurried
        )
        self._merges.append(merge)
        try:
            begin(merge.thread)
        except BaseException as error:
            merge.cancel()  # larger ones wait for it
            if not isinstance(error, RuntimeError):
                merge.begins()  # it may be at work, and is joined when it is closed
                raise
            self._merges.remove(merge)
            self.put_off(error)
            return False
        return True

    def put_off(self, error: BaseException) -> None:
        """Says that a merge failed, which loses nothing; another commit tries again.

        What a signal handler of the caller has raised is for the caller.
        """
        if raised_by_a_handler(error):
            raise error
        self.hopeful, self.failed = False, self.failed + 1
        usual = isinstance(error, (CorruptFile, OSError, RuntimeError))
        # Who keeps records of the log keeps no error: its traceback leads to segments.
        log.warning("segments were not merged: %s", str(error), exc_info=None if usual else error)

    def next_ended(self) -> Merge | None:
        """Of the merges that are WRITTEN the one with least to store, or None.

        Those that failed are put off, with a warning: what is committed stays as it is. Those that
        were cancelled are forgotten.
        """
        for merge in [merge for merge in self._merges if merge.ended]:
            if merge.state is State.WRITTEN:
                continue
            self._merges.remove(merge)
            if merge.state is not State.CANCELLED:
                self.put_off(merge.error or RuntimeError("its thread came to no end"))
            merge.error = None  # it holds what its thread had in hand, and that this merge
        written = [merge for merge in self._merges if merge.state is State.WRITTEN]
        return min(written, key=lambda merge: len(merge.unstaged), default=None)

    def take(self, merge: Merge) -> None:
        """Keeps a merge here no longer: the caller installs it, or removes what it wrote."""
        self._merges.remove(merge)

    def take_staged(self) -> list[Merge]:
        """Merges that the catalog may hold pages of, no longer kept here."""
        staged = [merge for merge in self._merges if merge.staged]
        self._merges[:] = [merge for merge in self._merges if not merge.staged]
        return staged

    def wait(self, needless: Callable[[], bool], patience_s: float | None = None) -> None:
        """Waits until it is needless, or no merge runs, or patience ends."""
        deadline = inf if patience_s is None else monotonic() + patience_s
        while any(not merge.ended for merge in self._merges) and not needless():
            left_s = deadline - monotonic()
            if left_s <= 0:
                return
            sleep(min(left_s, LOOK_S))

    def cancel(self) -> None:
        """Ends all merges; none of their files stay. Waits for what cannot be stopped half-way.

        That is a sort or the flush of one table: well under a second for ten million rows.
        """
        merges = self._merges[:]
        for merge in merges:
            merge.cancel()
        # A handle may be dropped, and closed, by the garbage collector in any thread: one of these
        # may hold what the others need to end.
        if not any(merge.thread is current_thread() for merge in merges):
            for merge in merges:
                merge.join()
        self._merges.clear()  # last: it is done again after an interrupt


def wait_for(merges: Sequence[Merge]) -> None:
    """Returns once none of these is at work."""
    while any(merge.at_work for merge in merges):
        sleep(LOOK_S)
