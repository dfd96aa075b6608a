"""Opens what a power cut has left, and says how it differs from what was promised."""

from __future__ import annotations

import gc
import os
import pickle  # noqa: TID251  (verdicts of our own children)
import selectors
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability.recorder import Acknowledge, Begin, Recorder, record
from reliability.replay import CrashState, Promise, Replay, differences, plainest
from reliability.workloads import State, deterministic, pages_left, rows_of
from simindex import Batch, IndexOptions
from simindex.errors import IndexExists, IndexNotFound, SimindexError
from simindex.records.reports import Finding
from simindex.storage.files.file_names import KEPT_PREFIX
from simindex.writing.ownership import exists

PATIENCE_S = 60.0
"""A state that takes longer to judge hangs."""

PARTS = {"FORMAT", "LOCK", "catalog", "segments"}
CATALOG = {"data.mdb", "lock.mdb"}

FAULTS = ("lost", "wrong", "signals", "hangs", "leaked")


@dataclass(slots=True)
class Verdict:
    """What one or more states turned out to be."""

    states: set[bytes] = field(default_factory=set)
    """Digests of those that were judged."""
    recoveries: int = 0
    """How many recoveries were themselves recorded and crashed."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """(one of FAULTS, what it is)."""

    def add(self, other: Verdict) -> None:
        """Takes in another."""
        self.states |= other.states
        self.recoveries += other.recoveries
        self.faults += other.faults

    def count(self, fault: str) -> int:
        """Faults of one kind."""
        return sum(kind == fault for kind, _ in self.faults)


class Fault(Exception):
    """A state is not what was promised."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind, self.what = kind, what


def found_by_a_reader(path: Path) -> tuple[State, int]:
    """Rows and generation of the index, or None and 0 where there is none."""
    try:
        with simindex.open(path) as index:
            return rows_of(index), index.generation
    except IndexNotFound:
        return None, 0


def held_against(
    found: State, generation: int, promises: Sequence[Promise], states: Sequence[State]
) -> None:
    """Raises Fault unless what was found is what every promise allows."""
    for promise in promises:
        if found not in states[promise.acknowledged : promise.begun + 1]:
            older = found in states[: promise.acknowledged] or found is None
            raise Fault(
                "lost" if older else "wrong",
                f"{_shown(found)} instead of {_shown(states[promise.acknowledged])} or "
                f"{_shown(states[promise.begun])}",
            )
        if found is not None and generation < promise.generation:
            raise Fault("lost", f"commit {generation} instead of {promise.generation} or later")


def _shown(state: State) -> str:
    return "no index" if state is None else f"{len(state)} rows"


def recover(path: Path, found: State, options: IndexOptions) -> simindex.Index:
    """Opens what a crash left as the next writer does: makes the index if there is none."""
    if found is not None:
        return simindex.open(path, "w")
    try:
        return simindex.open(path, "c", options=options)
    except IndexExists as error:
        if "files of an index but no FORMAT" not in str(error):
            raise
        # An index that was being replaced when the power went: whoever did it asks again.
        return simindex.open(path, "n", options=options, overwrite=True)


def examine(
    path: Path, seen: tuple[State, int] | None, options: IndexOptions, *, further: bool
) -> tuple[State, int]:
    """Opens the index for writing, as which it recovers, and returns rows and generation.

    Raises Fault unless these are what a reader has seen before, if one has, nothing is damaged, and
    nothing is left behind. With `further` it also goes on to append and to merge everything.
    """
    index = recover(path, None if seen is not None and seen[0] is None else (), options)
    try:
        found = rows_of(index), index.generation
        if seen is not None and (seen[0] or ()) != found[0]:
            raise Fault("wrong", "a writer sees other rows than a reader")
        if seen is not None and seen[0] is not None and seen[1] != found[1]:
            raise Fault("wrong", f"a writer sees commit {found[1]}, not {seen[1]}")
        for finding in _of_this(index):
            kind = "wrong" if finding.severity == "error" else "leaked"
            raise Fault(kind, f"{Path(finding.path).name}: {finding.what}")
        if pages := pages_left(index):
            raise Fault("leaked", f"{pages} pages in the catalog")
        names = {entry.name for entry in path.iterdir()}
        names |= {entry.name for entry in (path / "catalog").iterdir()}
        names = {name for name in names if not name.startswith(KEPT_PREFIX)}  # by a repair
        if names - PARTS - CATALOG:
            raise Fault("leaked", f"{sorted(names - PARTS - CATALOG)}")
        if further:
            _go_on(index, found[0])
        return found
    finally:
        index.close()


def _of_this(index: simindex.Index) -> Iterator[Finding]:
    """What `check` finds, but for what a repair has put aside."""
    for finding in index.check():
        if finding.severity == "error" or not Path(finding.path).name.startswith(KEPT_PREFIX):
            yield finding


def _go_on(index: simindex.Index, rows: tuple[tuple[str, bytes], ...]) -> None:
    words = index.options.words
    fingerprint = b"\xff" * (8 * words)
    fresh = np.full((3, words), 2**64 - 1, np.uint64)
    name = "last" if index.options.keys else 2**63
    named: dict[str, Any] = {"keys" if index.options.keys else "ids": [name] * 3}
    sketch_words = index.options.sketch_words
    if sketch_words:
        named["sketch"] = np.full((3, sketch_words), 2**64 - 1, np.uint64)
        named["features"] = [1 << 17] * 3
        fingerprint += b"\xff" * (8 * sketch_words) + (1 << 17).to_bytes(8, sys.byteorder)
    batch = Batch(fresh, **named)
    index.append(batch)
    index.commit()
    index.compact(full=True)
    if rows_of(index) != tuple(sorted([*rows, *[(str(name), fingerprint)] * 3])):
        raise Fault("wrong", "rows appended after a crash are not all that is new")
    if list(_of_this(index)) or pages_left(index):
        raise Fault("wrong", "the index is not sound after rows were appended")


@dataclass(frozen=True, slots=True)
class Trial:
    """A replay whose states are judged, and what the workload promised."""

    replay: Replay
    states: Sequence[State]
    options: IndexOptions
    seed: int
    further: int = 32
    """One state in so many also goes on."""
    read: int = 3
    """One in so many of the torn and drawn states is opened by a reader first, of others all."""
    damaged: bool = False
    """Whether the index is damaged until its first operation, a repair, is acknowledged."""
    again: int = 0
    """The recovery of one state in so many is recorded, and crashed in turn; 0: of none."""
    again_states: int = 64
    """At most so many states of a recovery are judged."""

    def judge(self, state: CrashState, root: Path) -> Verdict:
        """Builds a state in the folder `root`, which is made and removed, and judges it."""
        verdict = Verdict({state.digest})
        chosen = int.from_bytes(state.digest[:4], "little")
        path = root / "index"
        root.mkdir()
        try:
            self.replay.build(state.layout, root)
            if self.damaged and min(promise.acknowledged for promise in state.promises) == 0:
                self._repair(path, state)
                return verdict
            again = self.again > 0 and chosen % self.again == 0
            if again or state.rank < 3 or not chosen % self.read or not exists(path):
                seen = found_by_a_reader(path)
                held_against(*seen, state.promises, self.states)
            else:
                seen = None
            if again and seen is not None:
                self._crash_again(root, *seen, verdict)
                return verdict
            found = examine(path, seen, self.options, further=not chosen % self.further)
            if seen is None:
                held_against(*found, state.promises, self.states)
        except Fault as fault:
            verdict.faults.append((fault.kind, f"{state.why}: {fault.what}"))
        except SimindexError as error:
            verdict.faults.append(("lost", f"{state.why}: {type(error).__name__}: {error}"))
        except Exception as error:
            verdict.faults.append(("signals", f"{state.why}: {type(error).__name__}: {error}"))
        finally:
            shutil.rmtree(root)
        return verdict

    def _repair(self, path: Path, state: CrashState) -> None:
        """A repair that is run again finds as much as one that was not interrupted."""
        if any(promise.acknowledged for promise in state.promises):
            found, _ = found_by_a_reader(path)
            if found != self.states[1]:
                raise Fault("lost", "a repair that had returned is not all there")
        simindex.repair(path, apply=True)
        seen = found_by_a_reader(path)
        if seen[0] != self.states[1]:
            raise Fault(
                "lost", f"{_shown(seen[0])} after another repair, not {_shown(self.states[1])}"
            )
        examine(path, seen, self.options, further=False)

    def _crash_again(self, root: Path, found: State, generation: int, verdict: Verdict) -> None:
        """Records the recovery of the index below `root`, and judges the crashes of it."""
        recorder = Recorder(root)
        states: list[State] = [found]
        with deterministic(self.seed), record(recorder):
            if found is None:
                states.append(())
                recorder.note(Begin(1))
            index = recover(root / "index", found, self.options)
            recorder.note(Acknowledge(len(states) - 1, index.generation))
            index.close()
        replay = Replay(recorder.start, recorder.trace, Promise(0, 0, generation))
        crashes = replay.states(draws=2, seed=self.seed)
        if wrong := differences(replay, replay.final(), root):
            raise Fault("wrong", f"the trace of a recovery is not complete: {wrong}")
        verdict.recoveries += 1
        trial = Trial(replay, states, self.options, self.seed, self.further)
        for crash in plainest(crashes, self.again_states):
            if crash.digest not in verdict.states:
                verdict.add(trial.judge(crash, root / "again"))


Work = Callable[[int], Verdict]


def judged(count: int, work: Work) -> Iterator[Verdict]:
    """`work(0)` to `work(count - 1)`, done by a child of this process, which they may kill.

    What kills it, or takes longer than PATIENCE_S, is a fault of that one state; another child goes
    on with the next. At its end a child must have no more descriptors open than at its beginning.
    """
    number = 0
    while number < count:
        for verdict in _child(range(number, count), work):
            number += 1
            yield verdict


def _child(numbers: range, work: Work) -> Iterator[Verdict]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 1
        try:
            _serve(numbers, work, writing)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    done = 0
    hangs = False
    with selectors.DefaultSelector() as ready:
        ready.register(reading, selectors.EVENT_READ)
        received = bytearray()
        while done < len(numbers):
            if not ready.select(PATIENCE_S):
                hangs = True
                os.kill(pid, signal.SIGKILL)
                break
            data = os.read(reading, 1 << 16)
            if not data:
                break
            received += data
            while len(received) >= 4 and len(received) >= (
                end := 4 + int.from_bytes(received[:4], "little")
            ):
                verdict: Verdict = pickle.loads(received[4:end])  # noqa: S301
                del received[:end]
                done += 1
                yield verdict
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    if done < len(numbers):
        kind = "hangs" if hangs else "signals"
        code = os.waitstatus_to_exitcode(status)
        yield Verdict(faults=[(kind, f"state {numbers[done]}: the process ended with {code}")])


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _serve(numbers: range, work: Work, writing: int) -> None:
    gc.freeze()  # what the parent holds is looked at by no collection here
    before = _descriptors()
    for number in numbers:
        verdict = work(number)
        if number == numbers[-1]:
            gc.collect()
            more = _descriptors() - before
            if more > 0:
                verdict.faults.append(("leaked", f"{more} descriptors"))
        data = pickle.dumps(verdict)
        data = len(data).to_bytes(4, "little") + data
        while data:
            data = data[os.write(writing, data) :]
