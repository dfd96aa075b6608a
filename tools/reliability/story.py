"""What is done to an index, step by step, and what it then holds: the oracle of the trials.

    Story(seed).step(k)     the k-th step, k = 1, 2, ...: one commit, then perhaps a compaction
    Story(seed).state(k)    the rows after it, whatever happened in between
    number(rows)            k, read off the rows of an index

Each step appends a row of its own, the marker, whose id says its number, so that any snapshot of
the index tells which step it must hold, all of it and nothing more. Everything follows from seed
and number: a process that is killed, its successor and the readers need not agree on
anything else. Imports nothing of the package but what the steps call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import IndexNotFound

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

ROW = np.dtype([("id", "<u8"), ("fingerprint", "<u8"), ("sketch", "<u8"), ("size", "<i8")])
Rows = NDArray[Any]
"""ROW (n,), sorted: rows of an index, equal ones as often as they are stored."""

MARKER = 1 << 62
"""Ids from here on are markers."""

OPTIONS = IndexOptions(
    batch_rows=16, min_merge=2, reservoir_rows=4, structures=("psm", "bphs:G=2,g=1", "issl"),
    sketch_bits=64,
)
"""Every kind of file with a few rows: 2 of them make a segment, 2 segments a merge."""

STRUCTURES = (
    ("psm", "bphs:G=2,g=1", "issl"), ("psm", "bphs:G=2,g=1,r=1"), ("psm",), ("psm", "issl"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One commit, and what follows it."""

    number: int
    kind: str
    """append, replace, delete or ingest."""
    rows: Rows
    """Appended, in this order; the marker is the last."""
    doomed: U64
    """Ids whose earlier rows are deleted."""
    tidy: str
    """A compaction after the commit: "", "some", "full" or the structures, joined by +."""

    def batch(self) -> Batch:
        """The rows as they are appended."""
        return Batch(
            self.rows["fingerprint"].copy(), ids=self.rows["id"].copy(),
            weights=np.ones((len(self.rows), 64), np.float32),
            sketch=self.rows["sketch"].reshape(-1, 1), features=self.rows["size"],
        )

    def calls(self, index: simindex.Index) -> list[Callable[[], Any]]:
        """The calls that its commit is made of, each of which can be done again if it fails."""
        batch = self.batch()
        if self.kind == "ingest":
            return [partial(index.ingest, batch, h=3)]
        if self.kind == "replace":
            return [partial(index.replace, batch), index.commit]
        calls: list[Callable[[], Any]] = [partial(index.append, batch), index.commit]
        return [partial(index.delete, ids=self.doomed), *calls] if len(self.doomed) else calls

    def commit(self, index: simindex.Index, before: Rows | None = None) -> str:
        """Does it, up to and including its commit; returns what was wrong with its answers.

        With `before`, the state it begins from, the matches of an ingest are compared.
        """
        found = [call() for call in self.calls(index)]
        if self.kind == "ingest" and before is not None:
            return compared(found[0], expected_within(before, self.rows, 3), "ingest")
        return ""

    def follow_up(self, index: simindex.Index) -> None:
        """Compacts, if this step does."""
        if self.tidy in ("some", "full"):
            index.compact(full=self.tidy == "full")
        elif self.tidy:
            index.compact(structures=tuple(self.tidy.split("+")))


class Story:
    """Steps and states of one seed; states are kept, so ask them in rising order."""

    def __init__(self, seed: int, script: Callable[[Story, int], Step] | None = None) -> None:
        self.seed = seed
        self._script = script or drawn
        self._steps: list[Step | None] = [None]
        self._states: list[Rows] = [np.empty(0, ROW)]

    def step(self, number: int) -> Step:
        """The step of that number, from 1."""
        self._extend(number)
        found = self._steps[number]
        assert found is not None
        return found

    def state(self, number: int) -> Rows:
        """What the index holds after so many steps."""
        self._extend(number)
        return self._states[number]

    def _extend(self, number: int) -> None:
        while len(self._states) <= number:
            step = self._script(self, len(self._states))
            before = self._states[-1]
            kept = before[~np.isin(before["id"], step.doomed)]
            self._states.append(np.sort(np.concatenate([kept, step.rows])))
            self._steps.append(step)


def rows_of(ids: Any, fingerprints: Any, sketches: Any = None, sizes: Any = None) -> Rows:
    """Rows of columns, in their order; by default with the sketches and sizes that are theirs."""
    rows = np.empty(len(ids), ROW)
    rows["id"], rows["fingerprint"] = ids, fingerprints
    rows["sketch"] = sketch_of(rows["fingerprint"]) if sketches is None else sketches
    rows["size"] = size_of(rows["fingerprint"]) if sizes is None else sizes
    return rows


def sketch_of(fingerprints: U64) -> U64:
    """The sketches of fingerprints, which are as far from each other as these are."""
    return ~fingerprints


def size_of(fingerprints: U64) -> I64:
    """How many features the documents have: powers of two, which a byte has exactly."""
    return np.int64(1) << (fingerprints % np.uint64(21)).astype(np.int64)


def step(
    number: int, kind: str, ids: Any, fingerprints: Any, doomed: Any = (), tidy: str = ""
) -> Step:
    """A step with its marker added."""
    marker = np.uint64(0xABCD_0000_0000_0000 | number)
    rows = rows_of([*ids, MARKER + number], [*fingerprints, marker])
    gone = np.array([*doomed, *(ids if kind == "replace" else ())], np.uint64)
    if kind == "replace":  # of its own marker there is none yet
        gone = np.append(gone, np.uint64(MARKER + number))
    return Step(number, kind, rows, gone, tidy)


def drawn(story: Story, number: int) -> Step:
    """A step at random: mostly small, now and then large, hot or a deletion of very much."""
    rng = np.random.default_rng([story.seed, number])
    state = story.state(number - 1)
    kind = str(rng.choice(["append", "ingest", "replace", "delete"], p=[0.4, 0.25, 0.15, 0.2]))
    count = int(rng.choice([0, 1, 2, 5, 20, 60], p=[0.1, 0.3, 0.2, 0.2, 0.15, 0.05]))
    if kind == "delete":
        count = 0
    centres = np.random.default_rng(story.seed).integers(0, 1 << 64, 6, dtype=np.uint64)
    fingerprints = rng.choice(centres, count)
    if rng.random() < 0.8:  # else a hot template: all rows are one of six
        for _ in range(3):
            fingerprints ^= np.uint64(1) << rng.integers(0, 64, count, dtype=np.uint64)
    ids = rng.integers(0, 500, count, dtype=np.uint64)
    doomed: U64 = np.empty(0, np.uint64)
    if kind == "replace":
        ids = np.unique(ids)
        fingerprints = fingerprints[: len(ids)]
    elif kind == "delete" and len(state):
        names = np.unique(state["id"])
        doomed = rng.choice(names, int(rng.integers(1, 1 + max(1, len(names) // 3))))
    tidy = ""
    if rng.random() < 0.12:
        tidy = str(rng.choice(["some", "full", "+".join(rng.choice(np.array(NAMES)).split(" "))]))
    return step(number, kind, ids, fingerprints, doomed, tidy)


NAMES = [" ".join(names) for names in STRUCTURES]


def opened(path: Path) -> simindex.Index:
    """The index as it is, whose structures the story may have changed, or a new one."""
    try:
        return simindex.open(path, "w")
    except IndexNotFound:
        return simindex.open(path, "c", options=OPTIONS)


def rows_in(index: simindex.Index) -> Rows:
    """All live rows of an index, sorted."""
    parts = [
        rows_of(
            batch.ids, batch.fingerprints, _one_column(batch.sketch),
            0 if batch.sizes is None else batch.sizes,
        )
        for batch in index.rows()
    ]
    return np.sort(np.concatenate([np.empty(0, ROW), *parts]))


def _one_column(sketch: U64 | None) -> Any:
    return 0 if sketch is None else sketch[:, 0]


def number(rows: Rows) -> int:
    """The number of the last step that the rows are of; 0 if they are none's."""
    newest = int(rows["id"].max(initial=0))
    return newest - MARKER if newest >= MARKER else 0


def difference(rows: Rows, state: Rows) -> str:
    """What is wrong with rows that should be a state, or ""."""
    if np.array_equal(rows, state):
        return ""
    missing = len(np.setdiff1d(state, rows))
    return f"{len(rows)} rows instead of {len(state)}, {missing} missing"


def expected(state: Rows, queries: U64, h: int) -> list[tuple[int, int, int]]:
    """All (query, distance, id) within h, unique and sorted; by brute force."""
    apart = np.bitwise_count(queries[:, None] ^ state["fingerprint"][None, :])
    query, row = np.nonzero(apart <= h)
    ids = state["id"][row].tolist()
    return sorted(set(zip(query.tolist(), apart[query, row].tolist(), ids, strict=True)))


def expected_within(before: Rows, rows: Rows, h: int) -> list[tuple[int, int, int]]:
    """What ingesting rows answers: each meets the state and the rows before it."""
    found: list[tuple[int, int, int]] = []
    for place in range(len(rows)):
        known = np.concatenate([before, rows[:place]])
        query = rows["fingerprint"][place : place + 1]
        found += [(place, apart, name) for _, apart, name in expected(known, query, h)]
    return found


def compared(found: Any, right: list[tuple[int, int, int]], what: str) -> str:
    """What is wrong with matches, or ""."""
    columns = (found.query, found.distance, found.id)
    given = list(zip(*(column.tolist() for column in columns), strict=True))
    return "" if given == right else f"{what}: {len(given)} matches instead of {len(right)}"


METHODS = ("auto", "psm", "scan")


SIMILARITY, SIMILAR_BITS = 0.9, 9
"""A similarity, and the largest distance that sketches of 64 bits keep by it."""


def wrong_by_similarity(index: simindex.Index, state: Rows, queries: U64) -> str:
    """What is wrong with the matches whose sketches are near, or ""."""
    batch = Batch(queries, sketch=sketch_of(queries).reshape(-1, 1))
    found = index.query(batch, similarity=SIMILARITY)
    return compared(found, expected(state, queries, SIMILAR_BITS), f"similarity {SIMILARITY}")


def wrong_answers(
    index: simindex.Index, state: Rows, rng: np.random.Generator, threads: int = 1
) -> str:
    """Asks a pinned or unchanged index a few things; returns the first wrong answer, or ""."""
    pool = np.append(state["fingerprint"][:200], np.uint64(rng.integers(0, 1 << 63)))
    queries = rng.choice(pool, 4) ^ (np.uint64(1) << rng.integers(0, 64, 4, dtype=np.uint64))
    h, method = int(rng.integers(0, 9)), str(rng.choice(METHODS))
    if method == "psm":
        h = min(h, 2)
    found = index.query(queries, h=h, method=method, threads=threads)
    wrong = compared(found, expected(state, queries, h), f"{method} at h={h}")
    wrong = wrong or wrong_by_similarity(index, state, queries)
    if wrong or not len(state):
        return wrong
    names, starts = np.unique(state["id"], return_index=True)
    apart = np.bitwise_count(queries[:, None] ^ state["fingerprint"][None, :])
    nearest = np.minimum.reduceat(apart, starts, axis=1)  # of the rows of each id
    k = min(3, len(names))
    top = index.top(queries, k=k, method="scan")
    order = np.argsort(nearest, axis=1, kind="stable")[:, :k]  # names are in rising order
    right = np.array_equal(top.distance, np.take_along_axis(nearest, order, 1))
    return "" if right and np.array_equal(top.id, names[order]) else f"top {k} is not the nearest"
