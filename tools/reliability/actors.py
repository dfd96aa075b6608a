"""The processes of a soak: `python -m reliability.actors ROLE FOLDER SEED LINE`.

    writer      does the operations of `oracle.World`, one a commit, some seconds at a time
    compactor   waits for the lock as any user would, then compacts, and sometimes checks
    reader      asks, and compares every answer with the oracle's for the commit it sees

Whoever opens the index for writing first settles what the journal leaves open: whether the commit
that was intended last is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability import journal
from reliability.gauges import Gauges
from reliability.journal import Journal
from reliability.oracle import MOST_H, Answer, State, World, weights_for
from simindex import Batch, IndexOptions
from simindex.errors import IndexLocked

STRUCTURES = ("psm", "bphs:G=3,g=1,r=2", "issl")

MOST_REPORTS = 50
"""Answers that were wrong are written down, so many of each process."""

SESSION_OPERATIONS = 12
PAUSE_S = 0.4
"""Between two of the writer's sessions, so that others get the lock."""


def options(world: World) -> IndexOptions:
    """Of an index that seals, spills and merges all the time."""
    return IndexOptions(
        batch_rows=world.documents * 12, min_merge=4, structures=STRUCTURES, reservoir_rows=512
    )


class Actor:
    """What the roles share."""

    def __init__(self, folder: Path, seed: int, line: int) -> None:
        settings = json.loads((folder / "settings.json").read_text())
        self.folder, self.path = folder, folder / "pages.sim"
        self.world = World(seed, settings["documents"], settings["window"])
        self.rate = float(settings["rate"])
        self.journal = Journal(folder / "journal")
        self.gauges = Gauges(folder / "gauges")
        self.gauges.line = line
        self.rng = np.random.default_rng([seed, 4, line])
        self.reports = 0

    def run(self) -> None:
        """Until the trial ends."""
        raise NotImplementedError

    def wrong(self, what: str, **data: Any) -> None:
        """Counts and describes an answer that is not the oracle's."""
        self.gauges.add("wrong")
        self.reports += 1
        if self.reports <= MOST_REPORTS:
            with (self.folder / "wrong.txt").open("a") as file:
                file.write(f"process {os.getpid()}, line {self.gauges.line}: {what}: {data}\n")

    def holds(self, index: simindex.Index, number: int) -> bool:
        """Whether an operation is in the index, by a row of it."""
        if number < 1:
            return True
        value, name = self.world.marker(number)
        found = index.query(np.array([value], np.uint64), h=0, threads=1)
        return name in found.id.tolist()

    def place(self, index: simindex.Index) -> int:
        """The last operation that a pinned index holds; the journal must allow it."""
        self.journal.read()
        least, most = self.journal.bounds(index.generation)
        place = next((k for k in range(most + 1, max(0, least - 3), -1) if self.holds(index, k)), 0)
        if not least <= place <= most:
            self.gauges.add("lost")
            self.wrong("operations", place=place, allowed=(least, most), at=index.generation)
        return place

    def opened(self) -> simindex.Index | None:
        """The index, open for writing, once the lock is had; None at the end of the trial."""
        while not self.gauges.stopping:
            try:
                index = simindex.open(self.path, "w")
            except IndexLocked:
                self.gauges.add("beat", 0)
                time.sleep(0.01)
                continue
            self.settle(index)
            return index
        return None

    def opened_at_end(self) -> simindex.Index:
        """The index, open for writing, when nobody else has it."""
        index = simindex.open(self.path, "w")
        self.settle(index)
        return index

    def settle(self, index: simindex.Index) -> None:
        """Says of an intent that was left open whether its commit is there."""
        self.journal.read()
        last = self.journal.last
        if not self.holds(index, last) or index.generation < self.journal.acknowledged[last]:
            self.gauges.add("lost")
            self.wrong("an acknowledged commit is missing", operation=last, at=index.generation)
        if self.journal.intent is not None:
            operation, _ = self.journal.intent
            there = self.holds(index, operation)
            self.gauges.add("settled" if there else "voided")
            kind = journal.ACK if there else journal.VOID
            self.journal.write(kind, operation, index.generation)
            self.journal.read()

    def judge_whole(self, index: simindex.Index, state: State, what: str) -> None:
        """Compares all live rows."""
        parts = list(index.rows())
        ids = np.concatenate([np.empty(0, np.uint64), *(part.ids for part in parts)])
        values = np.concatenate([np.empty(0, np.uint64), *(part.rows[:, 0] for part in parts)])
        order = np.lexsort((values, ids))
        expected = state.contents()
        self.gauges.add("answers")
        if not np.array_equal(values[order], expected[0]) or not np.array_equal(
            ids[order], expected[1]
        ):
            self.wrong(what, operations=state.number, rows=len(ids), expected=len(state))


class Writer(Actor):
    """Does one operation after the other."""

    def run(self) -> None:
        """Until the trial ends."""
        while (index := self.opened()) is not None:
            clean = self.rng.random() < 0.5
            try:
                self.session(index, int(self.rng.integers(1, 2 * SESSION_OPERATIONS)))
                if clean:
                    with index:
                        pass
            finally:
                index.close()
            time.sleep(PAUSE_S)

    def session(self, index: simindex.Index, operations: int) -> None:
        """Some operations with one handle."""
        for _ in range(operations):
            if self.gauges.stopping:
                return
            began = time.monotonic()
            number = self.journal.last + 1
            operation = self.world.operation(number)
            batch = Batch(
                operation.appended.fingerprints, ids=operation.appended.ids,
                weights=operation.weights,
            )
            if not operation.ingested:
                if len(operation.deleted):
                    index.delete(ids=operation.deleted)
                if len(operation.replacing):
                    index.replace(Batch(
                        operation.replacing.fingerprints, ids=operation.replacing.ids
                    ))
                index.append(batch)
            self.journal.write(journal.INTENT, number, index.generation)
            if operation.ingested:
                found = index.ingest(batch, h=3, threads=1)
            else:
                index.commit()
            self.journal.write(journal.ACK, number, index.generation)
            self.journal.read()
            self.gauges.add("operations")
            if operation.ingested:
                self.judge_ingest(number, found)
            time.sleep(max(0.0, 1 / self.rate - (time.monotonic() - began)))

    def judge_ingest(self, number: int, found: simindex.Matches) -> None:
        """Matches with what was stored, and with the rows before in the batch."""
        batch = self.world.operation(number).appended
        before = self.world.state(number - 1).matches(batch.fingerprints, batch.clusters, 3)
        apart = np.bitwise_count(batch.fingerprints[:, None] ^ batch.fingerprints[None, :])
        query, row = np.nonzero(np.tril(apart <= 3, -1))
        expected = Answer.of(
            np.concatenate([before.query, query]),
            np.concatenate([before.distance, apart[query, row].astype(np.int64)]),
            np.concatenate([before.id, batch.ids[row]]),
        )
        self.gauges.add("answers", len(batch))
        self.gauges.add("brute", len(batch))
        if not expected.same(found.query, found.distance, found.id):
            self.wrong("ingest", operation=number, found=len(found), expected=len(expected.query))


class Compactor(Actor):
    """Compacts now and then."""

    def run(self) -> None:
        """Until the trial ends."""
        while (index := self.opened()) is not None:
            with index:
                kind = int(self.rng.integers(8))
                if kind == 0:
                    index.compact(full=True)
                elif kind == 1:
                    some = STRUCTURES[: int(self.rng.integers(1, 4))]
                    index.compact(structures=some)
                elif kind == 2:
                    index.compact(structures=STRUCTURES)
                else:
                    index.compact()
                self.gauges.add("compactions")
                place = self.journal.last
                state = self.world.state(place)
                self.judge_whole(index, state, "rows after a compaction")
                if kind in (0, 3):
                    found = index.check()
                    self.gauges.add("checks")
                    if found:
                        self.wrong("check", findings=found)
            time.sleep(float(self.rng.uniform(0.2, 2)))


class Reader(Actor):
    """Asks through three handles: one that is refreshed, one that follows, one that stays."""

    def run(self) -> None:
        """Until the trial ends."""
        seen, places = 0, 0
        with (
            simindex.open(self.path, refresh=False) as index,
            simindex.open(self.path) as following,
        ):
            while not self.gauges.stopping:
                with simindex.open(self.path, refresh=False) as pinned:
                    stays = self.state(pinned)
                    generation, rows = pinned.generation, len(pinned)
                    until = time.monotonic() + float(self.rng.uniform(3, 25))
                    while time.monotonic() < until and not self.gauges.stopping:
                        index.refresh()
                        state = self.state(index)
                        if index.generation < seen or state.number < places:
                            self.wrong("time went back", at=index.generation, seen=seen)
                        seen, places = index.generation, state.number
                        self.gauges.set("generation", seen)
                        for _ in range(8):
                            self.ask(index, state)
                        self.follow(following, state.number)
                        self.ask(pinned, stays)
                        self.gauges.add("pinned")
                        if pinned.generation != generation or len(pinned) != rows:
                            self.wrong("a pinned snapshot changed", at=pinned.generation)
                    self.judge_whole(pinned, stays, "rows of a pinned snapshot")

    def state(self, index: simindex.Index) -> State:
        """What a pinned index must hold."""
        return self.world.state(self.place(index))

    def follow(self, index: simindex.Index, least: int) -> None:
        """A handle that follows commits answers as of one that is current during the call."""
        queries, clusters = self.world.questions(self.rng, least, 64)
        first = index.generation
        found = index.query(queries, h=3, threads=1)
        last = index.generation
        self.journal.read()
        bounds = (self.journal.bounds(first)[0], self.journal.bounds(last)[1])
        self.gauges.add("answers", len(queries))
        for number in range(max(least, bounds[0]), bounds[1] + 1):
            expected = self.world.state(number).matches(queries, clusters, 3)
            if expected.same(found.query, found.distance, found.id):
                return
        self.wrong("a handle that follows", between=(first, last), operations=(least, *bounds))

    def ask(self, index: simindex.Index, state: State) -> None:
        """One batch by one of the methods."""
        kind = int(self.rng.integers(16))
        if kind < 9:
            self.ask_exact(index, state, ("auto", "bphs", "scan", "psm", "issl")[kind % 5])
        elif kind == 9:
            self.ask_first(index, state)
        elif kind < 12:
            self.ask_some(index, state)
        elif kind < 15:
            self.ask_top(index, state, ("auto", "scan", "issl")[kind - 12])
        else:
            self.ask_brute(index, state)
        self.gauges.add("batches")

    def ask_exact(self, index: simindex.Index, state: State, method: str) -> None:
        """All matches, at recall 1."""
        h = int(self.rng.integers(0, (3 if method in ("psm", "auto") else MOST_H) + 1))
        count = 48 if method == "scan" else 512
        if method == "bphs" and not _has(index, "bphs"):
            method = "auto"
        if method == "issl" and not _has(index, "issl"):
            method = "auto"
        queries, clusters = self.world.questions(self.rng, state.number, count)
        weights = weights_for(self.rng, queries) if self.rng.random() < 0.3 else None
        limit = 64 << 20 if method == "auto" and self.rng.random() < 0.1 else None
        found = index.query(
            Batch(queries, weights=weights), h=h, method=method, memory_limit=limit,
            threads=int(self.rng.integers(1, 3)),
        )
        self.judge(f"query by {method}", state.matches(queries, clusters, h), found, len(queries))

    def judge(self, what: str, expected: Answer, found: simindex.Matches, count: int) -> None:
        """Counts answers and compares them."""
        self.gauges.add("answers", count)
        if not expected.same(found.query, found.distance, found.id):
            self.wrong(what, found=len(found), expected=len(expected.query))

    def ask_first(self, index: simindex.Index, state: State) -> None:
        """One match of each query that has any."""
        queries, clusters = self.world.questions(self.rng, state.number, 512)
        found = index.query(queries, h=3, first=True, threads=1)
        expected = state.matches(queries, clusters, 3)
        self.gauges.add("answers", len(queries))
        if not expected.holds(found.query, found.distance, found.id) or not np.array_equal(
            found.query, np.unique(expected.query)
        ):
            self.wrong("first", found=len(found), expected=len(np.unique(expected.query)))

    def ask_some(self, index: simindex.Index, state: State) -> None:
        """At a recall below 1 what is found is right, and no more than there is."""
        queries, clusters = self.world.questions(self.rng, state.number, 128)
        batch = Batch(queries, weights=weights_for(self.rng, queries))
        recall = float(self.rng.choice([0.5, 0.9, 0.97]))
        found = index.query(batch, h=3, recall=recall, method="psm", threads=1)
        self.gauges.add("answers", len(queries))
        self.gauges.add("subset", len(queries))
        if not state.matches(queries, clusters, 3).holds(found.query, found.distance, found.id):
            self.wrong("a recall below 1", recall=recall, found=len(found))

    def ask_top(self, index: simindex.Index, state: State, method: str) -> None:
        """The nearest documents; all of them, though few rows are looked at by lists."""
        if method == "issl" and not _has(index, "issl"):
            method = "scan"
        k = int(self.rng.integers(1, 12))
        if len(state) < 1000:
            return
        queries, clusters = self.world.questions(self.rng, state.number, 24, 0)
        found = index.top(
            queries, k=k, method=method, max_error=2, rerank=1 << 20, threads=1
        )
        nearest = state.nearest(queries, clusters)
        starts = np.searchsorted(nearest.query, np.arange(len(queries) + 1))
        self.gauges.add("answers", len(queries))
        for at in range(len(queries)):
            own = slice(starts[at], min(starts[at] + k, starts[at + 1]))
            far, names = nearest.distance[own], nearest.id[own]
            if not np.array_equal(found.distance[at, : len(far)], far) or not np.array_equal(
                found.id[at, : len(far)], names
            ):
                self.wrong(f"top by {method}", k=k, query=int(queries[at]))

    def ask_brute(self, index: simindex.Index, state: State) -> None:
        """What is compared with all rows: also queries that are near to nothing, and any h."""
        near, _ = self.world.questions(self.rng, state.number, 6)
        queries = np.concatenate([near, self.rng.integers(0, 1 << 64, 2, dtype=np.uint64)])
        h = int(self.rng.integers(0, 13))
        found = index.query(queries, h=h, threads=1)
        self.judge("all rows", state.brute(queries, h), found, len(queries))
        self.gauges.add("brute", len(queries))
        if len(state) >= 1000:
            top = index.top(near, k=5, method="scan", threads=1)
            expected = state.brute_nearest(near, 5)
            self.gauges.add("answers", len(near))
            self.gauges.add("brute", len(near))
            if not np.array_equal(top.id.ravel(), expected.id) or not np.array_equal(
                top.distance.ravel(), expected.distance
            ):
                self.wrong("top of all rows", queries=near.tolist())


def _has(index: simindex.Index, name: str) -> bool:
    """Whether every segment has a structure, and there is one."""
    segments = index._handle.view.last().segments
    if name == "issl":
        return bool(segments) and all(segment.slices is not None for segment in segments)
    return bool(segments) and all(segment.structures for segment in segments)


ROLES: dict[str, type[Actor]] = {"writer": Writer, "compactor": Compactor, "reader": Reader}


def main() -> int:
    """Runs one role; the exit code is 1 after any error."""
    role, folder, seed, line = sys.argv[1:5]
    actor = ROLES[role](Path(folder), int(seed), int(line))
    actor.gauges.add("ready")
    try:
        actor.run()
    except BaseException:
        with (actor.folder / "errors.txt").open("a") as file:
            file.write(f"{role}, process {os.getpid()}:\n{traceback.format_exc()}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
