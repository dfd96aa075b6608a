"""Tasks that are measured in an interpreter of their own: `child.py TASK '{"argument": …}'`.

Each prints one JSON object. Peak memory is the growth of the largest resident size over what the
process held before it began; files that it maps count.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks import machine, peers
from benchmarks.corpora import U64, H, fingerprints_only
from benchmarks.formats import extract_pages, fingerprint_column
from benchmarks.recipes import RECIPES
from benchmarks.scale import RADII, questions
from benchmarks.stopwatch import CLOCKS, Stopwatch
from benchmarks.texts import loaded

BATCH_ROWS = 1_000_000


def batches(fingerprints: str, rows: int) -> Iterator[tuple[int, U64]]:
    """(first row, fingerprints) read from a file of uint64; not mapped, that would count."""
    for first in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - first)
        yield first, np.fromfile(fingerprints, dtype="<u8", count=count, offset=8 * first)


def grown(before: int) -> int:
    """Bytes that the largest resident size exceeds `before`."""
    return machine.peak_bytes() - before


def build(path: str, fingerprints: str, rows: int, structures: list[str]) -> dict[str, Any]:
    """Append with ids in batches of a million, commit, compact to one segment."""
    import simindex

    before = machine.resident_bytes()
    steps = {"append": 0.0, "commit": 0.0, "compact": 0.0, "close": 0.0}
    options = simindex.IndexOptions(structures=tuple(structures))
    index = simindex.open(path, "n", options=options)
    for first, words in batches(fingerprints, rows):
        ids = np.arange(first, first + len(words), dtype=np.uint64)
        steps["append"] += timed(partial(index.append, words, ids=ids))
    steps["commit"] = timed(index.commit)
    steps["compact"] = timed(lambda: index.compact(full=True))
    stats = index.stats()
    steps["close"] = timed(index.close)
    return {
        "seconds": sum(steps.values()), "steps": steps, "peak_bytes": grown(before),
        "disk_bytes": machine.disk_bytes(Path(path)), "segments": stats.segments,
        "rows": stats.rows,
    }


def build_peer(path: str, fingerprints: str, rows: int, kind: str) -> dict[str, Any]:
    """Add in batches of a million, write to a file."""
    name, index, _ = peers.empty(kind)
    before = machine.resident_bytes()
    steps = {"add": 0.0, "write": 0.0}
    if not index.is_trained:
        _, sample = next(batches(fingerprints, rows))
        steps["train"] = timed(lambda: index.train(peers.as_bytes(sample[:200_000])))
    for _, words in batches(fingerprints, rows):
        steps["add"] += timed(partial(index.add, peers.as_bytes(words)))

    def write() -> None:
        peers.faiss().write_index_binary(index, path)
        with Path(path).open("rb") as file:
            os.fsync(file.fileno())

    steps["write"] = timed(write)
    return {
        "name": name, "seconds": sum(steps.values()), "steps": steps, "peak_bytes": grown(before),
        "disk_bytes": machine.disk_bytes(Path(path)),
    }


def open_index(path: str, query: int) -> dict[str, Any]:
    """Open an index and ask one question."""
    import simindex

    word = np.array([query], dtype=np.uint64)
    before = machine.resident_bytes()
    start = time.perf_counter()
    index = simindex.open(path)
    opened = time.perf_counter()
    found = index.query(word, h=H)
    answered = time.perf_counter()
    found_again = timed(lambda: index.query(word, h=H))
    return {
        "open": opened - start, "first_query": answered - opened, "next_query": found_again,
        "matches": len(found), "peak_bytes": grown(before),
    }


def open_peer(path: str, query: int) -> dict[str, Any]:
    """Read a FAISS file and ask one question."""
    module = peers.faiss()
    word = peers.as_bytes(np.array([query], dtype=np.uint64))
    before = machine.resident_bytes()
    start = time.perf_counter()
    index = module.read_index_binary(path)
    opened = time.perf_counter()
    limits, _, _ = index.range_search(word, H + 1)
    answered = time.perf_counter()
    return {
        "open": opened - start, "first_query": answered - opened, "matches": int(limits[-1]),
        "peak_bytes": grown(before),
    }


def pairs(fingerprints: str, collapse: bool, clock: Literal["wall", "cpu"]) -> dict[str, Any]:
    """All pairs of the rows of a file, once."""
    import simindex

    rows = np.fromfile(fingerprints, dtype="<u8")
    simindex.find_all(rows[:1])
    machine.forget_peak()
    before = machine.resident_bytes()
    start = CLOCKS[clock]()
    found = simindex.find_all(rows, h=H, collapse_equal=collapse, threads=1)
    seconds = CLOCKS[clock]() - start
    return {
        "seconds": seconds, "pairs": len(found), "peak_bytes": grown(before),
        "resident_bytes": machine.peak_bytes(),
        "represented": found.represented if isinstance(found, simindex.CollapsedPairs) else
        len(found),
    }


def limited(
    path: str, fingerprints: str, skewed: bool, queries: int, first: bool, limit: int | None,
    repeat: int, clock: Literal["wall", "cpu"],
) -> dict[str, Any]:
    """Exact queries in one call, each a row with two bits flipped, or all the hot row."""
    import simindex

    rng = np.random.default_rng(1)
    rows = np.fromfile(fingerprints, dtype="<u8")
    asked = rows[rng.integers(0, len(rows), queries)]
    if skewed:
        asked[:] = rows[0]
    del rows
    for bit in (3, 40):
        asked ^= np.uint64(1) << np.uint64(bit)
    with simindex.open(path) as index:
        index.query(asked[:1], h=H)
        machine.forget_peak()
        before = machine.resident_bytes()
        seconds, found = Stopwatch(repeat, clock).seconds(
            lambda: index.query(asked, h=H, first=first, memory_limit=limit, threads=1)
        )
        return {
            "seconds": seconds, "peak_bytes": grown(before), "matches": len(found),
            "queries": queries,
        }


def fingerprint(
    texts: str, recipes: list[str], repeat: int, clock: Literal["wall", "cpu"]
) -> dict[str, Any]:
    """Fingerprint the texts of a file by some of `RECIPES`, on one thread."""
    listed = loaded(Path(texts))
    return {name: _fingerprint(listed, name, Stopwatch(repeat, clock)) for name in recipes}


def _fingerprint(texts: list[str], name: str, watch: Stopwatch) -> dict[str, Any]:
    recipe = RECIPES[name].fitted(texts)
    recipe.batch(texts[:1], threads=1)
    machine.forget_peak()
    before = machine.resident_bytes()
    batch = recipe.batch(texts, threads=1)
    peak = grown(before)
    assert batch.weights is not None
    result_bytes = batch.rows.nbytes + batch.weights.nbytes
    seconds, _ = watch.seconds(lambda: recipe.batch(texts, threads=1))
    return {"seconds": seconds, "peak_bytes": peak, "result_bytes": result_bytes}


def scale_build(
    path: str, rows: int, seed: int, clock: Literal["wall", "cpu"]
) -> dict[str, Any]:
    """Append with ids in batches of a million, each committed, and leave.

    What is waited for at the end, while segments are merged, is in seconds of the wall clock: other
    threads do it.
    """
    import simindex

    before, own, spent = machine.resident_bytes(), machine.own_bytes(), 0.0
    with simindex.open(path, "n") as index:
        for first, words in fingerprints_only(rows, seed):
            ids = np.arange(first, first + len(words), dtype=np.uint64)

            def add(words: U64 = words, ids: U64 = ids) -> None:
                index.append(words, ids=ids)
                index.commit()

            spent += timed(add, clock)
        held, before_leaving = machine.own_bytes() - own, index.stats().segments
        leaves = time.perf_counter()
    left = time.perf_counter() - leaves
    with simindex.open(path) as reader:
        segments = reader.stats().segments
    return {
        "seconds": spent, "left": left, "before_leaving": before_leaving, "segments": segments,
        "own_bytes": held,
        "peak_bytes": grown(before), "disk_bytes": machine.disk_bytes(Path(path)),
    }


def scale_ask(
    path: str, rows: int, seed: int, calls: int, repeat: int, clock: Literal["wall", "cpu"]
) -> dict[str, Any]:
    """Calls of many queries and of one, on one thread; how much memory is the reader's own."""
    import simindex

    asked, own = questions(rows, seed), machine.own_bytes()
    watch = Stopwatch(repeat, clock)
    told: dict[str, Any] = {"batches": {}, "calls": {"p50": [], "p99": []}}
    with simindex.open(path) as index:
        for h in RADII:
            rates, found = watch.rates(
                len(asked), partial(index.query, asked, h=h, threads=1)
            )
            told["batches"][h] = {
                "rates": rates, "method": found.stats.method, "matches": len(found) / len(asked),
                "compared": found.stats.rows_compared / len(asked),
            }
            del found
        alone = np.resize(asked, max(calls, 1))
        for repetition in range(repeat + 1):
            times = [1e6 * timed(partial(index.query, alone[at : at + 1], h=H), clock)
                     for at in range(calls)]
            if repetition:
                told["calls"]["p50"].append(float(np.percentile(times, 50)))
                told["calls"]["p99"].append(float(np.percentile(times, 99)))
        told["own_bytes"] = machine.own_bytes() - own
    return told


def timed(call: Callable[[], object], clock: Literal["wall", "cpu"] = "wall") -> float:
    """Seconds of a call."""
    start = CLOCKS[clock]()
    call()
    return CLOCKS[clock]() - start


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "build": build, "build-peer": build_peer, "open": open_index, "open-peer": open_peer,
    "fingerprint": fingerprint, "pairs": pairs, "limited": limited,
    "scale-build": scale_build, "scale-ask": scale_ask,
    "extract-pages": extract_pages, "fingerprint-column": fingerprint_column,
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
