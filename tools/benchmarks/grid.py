"""How far `auto` is from the best single choice: one index, every radius, every recall.

A cell is a radius and a recall. Its choices are all that keep the promise: each design that is
exact for the radius, psm and scan. They and `auto` are asked the same queries in turn, round by
round; half of the queries are within the radius of a stored row. Choices that the model finds
`FAR` times slower than the best get fewer queries; one that turns out to be near the best all the
same is asked again with as many as the others. What every choice takes, predicted and measured, is
printed as the run goes on.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import Corpus
from benchmarks.report import Measurement, quantity
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch
from simindex.errors import InvalidOption
from simindex.planning.costs import CALL_NS, SEGMENT_NS

RADII = tuple(range(1, 9))
RECALLS = (0.9, 0.95, 0.99, 1.0)

STRUCTURES = (
    "psm", "bphs:G=2,g=1,r=1", "bphs:G=4,g=1", "bphs:G=5,g=1", "bphs:G=5,g=2", "bphs:nested=4x4",
    "bphs:G=3,g=1,r=2", "bphs:G=4,g=1,r=1",
)
"""Exact up to h = 3, 4 (G=5,g=1), 8 (r=2) and 7; psm for any."""

LIMIT = 1.3
"""`auto` is to be no more than so many times slower than the best."""

CALL_S = 0.15
"""How long a call of the best choice should take: its queries follow."""

FAR = 5.0
LEAST_QUERIES = 16
"""Any choice is asked so many, however slow."""

NEAR = 2.0
"""A choice with fewer queries that comes so near the best is asked as many as it."""

AGAIN = 2
"""A cell above the limit is measured so many times longer, and all rounds count."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A method in a cell: what the model says of it, and what was measured."""

    method: str
    plan: str
    """How it searches: a design's name, or psm with its t and k, or scan."""
    predicted_ns: float
    """Of a query, the call around it included."""
    queries: int
    times_ns: tuple[float, ...] = ()
    """Of a query, for each round."""

    @property
    def ns(self) -> float:
        """The middle round."""
        return statistics.median(self.times_ns)

    def __str__(self) -> str:
        return (
            f"{self.plan} {self.ns:,.0f} ns, predicted {self.predicted_ns:,.0f}, "
            f"{self.predicted_ns / self.ns - 1:+.0%}"
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """`auto` and every single choice, for a radius and a recall."""

    h: int
    recall: float
    auto: Choice
    single: tuple[Choice, ...]

    @property
    def best(self) -> Choice:
        """The fastest single choice, as measured."""
        return min(self.single, key=lambda choice: choice.ns)

    @property
    def ratio(self) -> float:
        """How many times slower than the best `auto` is."""
        return self.auto.ns / self.best.ns

    def __str__(self) -> str:
        ordered = sorted(self.single, key=lambda choice: choice.ns)
        return f"auto: {self.auto}; single: " + "; ".join(str(choice) for choice in ordered)


def auto_grid(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Every cell, and the worst of them; tuned first, on the core and at the time."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed, h=RADII[-1]), directory)
    structures = tuple(options.structure or STRUCTURES)
    with simindex.open(stored.path, "w") as index:
        if index.options.structures != structures:
            say("  building permuted tables")
            index.compact(full=True, structures=structures)
        index.tune()
    name = "auto-grid single" if options.single else "auto-grid"
    cells = []
    with simindex.open(stored.path) as index:
        for h in RADII:
            index.tune(h=h, machine=False)
            asked = questions(stored, h)
            for recall in RECALLS:
                cell = measured(options, index, asked, watch, h, recall)
                mark = f", above {LIMIT}" if cell.ratio > LIMIT else ""
                say(f"  h = {h}, recall {recall:g}: {cell.ratio:.2f}{mark}; {cell}")
                cells.append(cell)
    return [*(_line(name, options.rows, cell) for cell in cells), _worst(name, options.rows, cells)]


def questions(stored: Stored, h: int) -> Batch:
    """As many rewrites within h as documents that resemble none, in random order."""
    near = stored.partner >= 0
    original = stored.fingerprints[stored.partner[near]]
    near[near] = np.bitwise_count(stored.queries[near] ^ original) <= h
    far = stored.partner < 0
    half = min(np.count_nonzero(near), np.count_nonzero(far))
    chosen = np.concatenate([np.flatnonzero(near)[:half], np.flatnonzero(far)[:half]])
    chosen = np.random.default_rng(h).permutation(chosen)
    return Batch(stored.queries, weights=stored.weights).take(chosen)


def measured(
    options: Namespace, index: simindex.Index, asked: Batch, watch: Stopwatch, h: int,
    recall: float,
) -> Cell:
    """Times `auto` and all its choices in turn."""
    methods = (*exact_designs(index, h), "psm", "scan", "auto")
    most = len(asked)

    def choice(method: str, queries: int) -> Choice:
        size = 1 if options.single else queries
        plan, predicted_ns = predicted(index, asked, h, recall, method, size)
        return Choice(method, plan, predicted_ns, queries)

    fastest_ns = min(choice(method, most).predicted_ns for method in methods)
    count = enough(fastest_ns, most)
    if options.single:
        count = min(count, options.calls)
    choices = [choice(method, count) for method in methods]
    choices = [
        one if one.predicted_ns <= FAR * fastest_ns
        else choice(one.method, min(count, enough(one.predicted_ns, most)))
        for one in choices
    ]
    ask = partial(_timed, index, asked, watch, h, recall, options.single)
    choices = ask(choices)
    nearest_ns = min(one.ns for one in choices)
    if any(one.queries < count and one.ns <= NEAR * nearest_ns for one in choices):
        choices = ask([
            choice(one.method, count) if one.ns <= NEAR * nearest_ns else one for one in choices
        ])
    *single, auto = choices
    cell = Cell(h, recall, auto, tuple(single))
    for _ in range(AGAIN):
        if cell.ratio <= LIMIT:
            break
        best, auto = ask([cell.best, cell.auto])
        cell = replace(cell, auto=auto, single=tuple(
            best if one.method == best.method else one for one in cell.single
        ))
    return cell


def exact_designs(index: simindex.Index, h: int) -> list[str]:
    """Those of the index's designs that an exact call may name."""
    found = []
    for name in index.options.structures:
        if name == "psm":
            continue
        try:
            index.query(np.zeros(1, np.uint64), h=h, method=name)
        except InvalidOption:  # not exact for so large a radius
            continue
        found.append(name)
    return found


def enough(query_ns: float, most: int) -> int:
    """Queries of a call that takes about `CALL_S`."""
    return max(min(LEAST_QUERIES, most), min(most, int(CALL_S * 1e9 / query_ns)))


def predicted(
    index: simindex.Index, batch: Batch, h: int, recall: float, method: str, queries: int
) -> tuple[str, float]:
    """(plan in words, expected ns of a query) of a call of so many queries, without making it.

    `Index.explain` says the same, but runs the call three times.
    """
    snapshot = index._current()
    plan = index._answerer.plans.plan(
        snapshot, index._answerer.question(h=h, recall=recall, method=method), queries,
        batch.weights
    )
    words = []
    for one in plan.tables:
        kind = "" if one.method == "scan" else f" t={one.header_bits} k={one.flips}"
        words.append(one.method + ("" if one.design else kind))
    call_ns = CALL_NS + SEGMENT_NS * len(plan.tables)
    return "+".join(words), sum(one.nanoseconds for one in plan.tables) + call_ns / queries


def _timed(
    index: simindex.Index, asked: Batch, watch: Stopwatch, h: int, recall: float, single: bool,
    choices: Sequence[Choice],
) -> list[Choice]:
    """The choices with another turn of rounds."""

    def call(choice: Choice) -> Callable[[], None]:
        size = 1 if single else choice.queries
        batches = [
            asked.take(np.arange(at, min(at + size, choice.queries)))
            for at in range(0, choice.queries, size)
        ]

        def run() -> None:
            for batch in batches:
                index.query(batch, h=h, recall=recall, method=choice.method, threads=1)

        return run

    times = watch.in_turn({choice.method: call(choice) for choice in choices})
    return [
        replace(choice, times_ns=choice.times_ns + tuple(
            seconds * 1e9 / choice.queries for seconds in times[choice.method]
        ))
        for choice in choices
    ]


def _line(name: str, rows: int, cell: Cell) -> Measurement:
    auto, best = cell.auto, cell.best
    notes = (
        f"by {auto.plan}; best {best.plan}, {quantity(1e9 / best.ns)} queries/s: "
        f"{cell.ratio:.2f}; predicted {auto.predicted_ns:,.0f} and {best.predicted_ns:,.0f} ns; "
        f"{auto.queries:,} queries"
    )
    return Measurement(
        name, f"simindex auto, h = {cell.h}, recall {cell.recall:g}", rows,
        tuple(1e9 / ns for ns in auto.times_ns), "queries/s", notes=notes,
    )


def _worst(name: str, rows: int, cells: Sequence[Cell]) -> Measurement:
    above = [cell for cell in cells if cell.ratio > LIMIT]
    listed = ", ".join(f"h = {cell.h} at {cell.recall:g}" for cell in above) or "none"
    worst = max(cells, key=lambda cell: cell.ratio)
    return Measurement(
        f"{name} worst", "simindex auto", rows, (worst.ratio,), "times the best",
        notes=f"h = {worst.h} at {worst.recall:g}; {len(above)} of {len(cells)} above {LIMIT}: "
        f"{listed}",
    )
