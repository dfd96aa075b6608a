"""Several threads that ask and add documents through one handle: what they do together, and how
long the calls take of which one waits for another."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from benchmarks import machine
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import CLOCKS, Stopwatch, say
from benchmarks.texts import made
from simindex import Batch

THREADS = (1, 2, 8)
TEXTS = 2_000
"""Of 300 words, of which documents are made: the first half of one and the second of another."""

Given = Callable[[int], tuple[Batch] | tuple[str, str]]
"""The document of a number, with its key if it has one."""


def threads(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """`seen_or_add` of a sixteenth of --rows documents by 1, 2 and 8 threads, on all cores: as
    fingerprints, and as texts. By processor time, a call takes what all threads use meanwhile."""
    documents = max(max(THREADS), options.rows // 16)
    found = []
    for kind, given in (("fingerprints", fingerprints(documents, options.seed)),
                        ("texts", texts(documents, options.seed))):
        rates: dict[int, list[float]] = {count: [] for count in THREADS}
        calls: dict[int, list[Any]] = {count: [] for count in THREADS}
        for _ in range(watch.repeat):
            for count in THREADS:
                rate, took = together(directory / "together.sim", given, documents, count, watch)
                say(f"  {kind}, {count}: {rate:,.0f}/s, {1e3 * took.max():.1f} ms")
                rates[count].append(rate)
                calls[count].append(took)
        for count in THREADS:
            name = f"seen_or_add of {kind}, threads: {count}"
            found.append(
                Measurement(name, "simindex", documents, tuple(rates[count]), "documents/s")
            )
            for what, point in (("p50", 50.0), ("p99", 99.0), ("longest call", 100.0)):
                each = tuple(1e6 * float(np.percentile(took, point)) for took in calls[count])
                found.append(Measurement(f"{name}, {what}", "simindex", documents, each, "µs"))
    return found


def fingerprints(count: int, seed: int) -> Given:
    """Uniform ones, of which about one in ten is near an earlier one."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**64, count, dtype=np.uint64)
    near = np.flatnonzero(rng.random(count) < 0.1)[1:]
    rows[near] = rows[rng.integers(0, near)] ^ np.uint64(1) << rng.integers(0, 64, len(near),
                                                                         np.uint64)
    return lambda number: (Batch(rows[number : number + 1]),)


def texts(count: int, seed: int) -> Given:
    """Of 300 words, made up, with keys like addresses."""
    rng = np.random.default_rng(seed)
    halves = [(text[: len(text) // 2], text[len(text) // 2 :]) for text in made(TEXTS, seed)]
    parts = rng.integers(0, TEXTS, (count, 2)).tolist()
    return lambda number: (
        halves[parts[number][0]][0] + halves[parts[number][1]][1],
        f"https://example.org/page/{number}",
    )


def together(
    path: Path, given: Given, documents: int, count: int, watch: Stopwatch
) -> tuple[float, np.ndarray[Any, np.dtype[np.float64]]]:
    """Documents a second of several threads, and the seconds of each call."""
    took = np.zeros(documents)
    raised: list[BaseException] = []
    clock = CLOCKS[watch.clock]
    begin = threading.Barrier(count + 1)
    remove(path)
    with machine.on_every_core(), simindex.open(path, "c") as index:

        def ask(part: int) -> None:
            try:
                begin.wait()
                for number in range(part * documents // count, (part + 1) * documents // count):
                    document = given(number)
                    start = clock()
                    index.seen_or_add(*document)
                    took[number] = clock() - start
            except BaseException as error:
                raised.append(error)

        index.seen_or_add(*given(0))
        every = [threading.Thread(target=ask, args=(part,)) for part in range(count)]
        for thread in every:
            thread.start()
        begin.wait()
        start = clock()
        for thread in every:
            thread.join()
        seconds = clock() - start
    remove(path)
    if raised:
        raise raised[0]
    return documents / seconds, took
