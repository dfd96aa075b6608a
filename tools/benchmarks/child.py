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
from benchmarks.corpora import U64, H
from benchmarks.recipes import RECIPES
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


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "build": build, "build-peer": build_peer, "open": open_index, "open-peer": open_peer,
    "fingerprint": fingerprint, "pairs": pairs,
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
