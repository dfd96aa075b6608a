"""Measures a machine's constants by timing the real kernels on made-up tables.

    levels         probes of tables of 25 kB to 510 MB, under headers of four widths
    vosh, heaped   putting few and many flip sets in order
    delta P, S, R  permuting, sorting, binary search
    sweep          two batches over one table: what each probe takes, and what each row
    table          one of the permuted tables of a query, without the look-up
    scan           one query, and many
    top scan       the nearest documents, for one query and for many
    slice lists    the same, with few and many lists, rows in them, and rows compared
    D              reading a file; see `disk_speed`

Times are of the processor, so that what else runs counts only by the caches and the memory it
takes. Everything is measured in some rounds, and the least time of each step counts (`rounds`). The
log says so where rounds differ.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, U32, U64
from simindex.bits import vosh
from simindex.bits.design import BlockDesign
from simindex.bits.volatility import STEP, from_random_pairs
from simindex.methods import bphs, psm
from simindex.planning.costs import along, table_bytes
from simindex.planning.disk_speed import DiskSpeed
from simindex.planning.machine import Curve, Level, Machine
from simindex.planning.rounds import REPEATED, STEADY, Rounds
from simindex.storage.tables.sorted_rows import header_bits

log: logging.Logger = logging.getLogger(__package__)

LEVEL_ROWS = (3_000, 50_000, 800_000, 6_000_000, 23_000_000, 60_000_000)
"""From the nearest cache to far beyond the last; no powers of 2, whose buckets would begin with a
cache line."""
MIDDLE, LARGE = 2, 4
"""Places there of the tables that other steps are measured on."""
LEVEL_SHARE = 8
"""A table that takes more than this part of the machine's memory is not measured."""

H = 3
FAR_H = 8
ROUNDS, MOST_ROUNDS = 2, 4
"""Rounds that are measured anyway, and while steps differ."""

NETWORKED = (2, 6, 32, 96, 256)
"""Flips of the queries that are timed, by networks."""

HEAPED = 600
"""And by heap, at these radii."""
HEAPED_H = (3, 6)

NARROWER = (0, 2, 5, 7)
"""Header bits fewer than a directory's that are looked up, so that buckets are longer."""
LONG_NARROWER = (3, 6)
"""And where a sweep goes bucket by bucket."""

MADE_ROWS = 1 << 20
"""Made at a time."""

PROBES = 1 << 18
SOUGHT = 1 << 16
"""Of a binary search."""
SWEEPS = (1 << 16, 1 << 18)
"""Queries of the two sweeps that are timed."""
LONGER_ROWS = 100

TOP_WORDS = 16
"""Of the fingerprints whose nearest are looked for."""
TOP_QUERIES = (16, 64)
"""Of two calls that share what rows are turned into."""
NEAR_ROWS, FAR_ROWS = 1 << 13, 1 << 19
"""Of a table near the processor, and of one beyond its caches."""

LISTED_SHARES = (8, 2)
"""Parts of the larger table whose slice lists are searched."""
LISTED_ERRORS = (0, 1, 2)
LISTED_RERANK = (16, 1024)

LEAST_NS = 0.01
"""No step takes less; a difference of two noisy times may seem to."""


def measure(file: Path | None = None, *, level_rows: tuple[int, ...] = LEVEL_ROWS) -> Machine:
    """The constants of the machine this runs on.

    Parameters
    ----------
    file : Path, optional
        Is read for D; without one, or if it is short, D stays what it is by default.
    level_rows : tuple of int
        Sizes of the tables timed, smallest first.

    Notes
    -----
    About ten seconds and 1.1 GB of memory; twice as long on a machine that is busy.
    """
    tables = [_Rows.made(np.random.default_rng(count), count) for count in _fitting(level_rows)]
    rounds, disk = Rounds(), None if file is None else DiskSpeed(file)
    number = 0
    while number < ROUNDS or (number < MOST_ROUNDS and rounds.busy):
        machine = _round(rounds, tables)
        if disk is not None:
            disk.read()
        number += 1
    if rounds.busy:
        log.warning(
            "the machine was busy while it was measured: %d of %d steps differed by more than a "
            "factor of %g between rounds. Run `simindex tune` again when less runs",
            len(rounds.unsteady), len(rounds), STEADY,
        )
    speed = None if disk is None else disk.bytes_s()
    return machine if speed is None else replace(machine, disk_bytes_s=speed)


def _fitting(level_rows: Sequence[int]) -> list[int]:
    """The smallest, and those larger ones that leave the machine most of its memory."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // LEVEL_SHARE
    return [
        rows for rows in level_rows
        if rows == level_rows[0] or table_bytes(rows, 1, header_bits(rows)) <= most
    ]


class _Rows(NamedTuple):
    """A made-up table."""

    rows: U64
    table: _native.CheckedTable
    directory: U32
    width: int

    @classmethod
    def made(cls, rng: np.random.Generator, count: int) -> _Rows:
        rows = _sorted_rows(rng, count)
        width = header_bits(count)
        directory = _native.header_directory(rows[:, 0], width)
        # Ids are not looked at before there are matches: the rows themselves save their memory.
        return cls(
            rows, _native.CheckedTable(rows, directory, width, rows[:, 0]), directory, width
        )


def _round(rounds: Rounds, tables: Sequence[_Rows]) -> Machine:
    """The constants, by the least times of this round and those before."""
    rng = np.random.default_rng(2011)
    levels = tuple(_level(rounds, rng, one) for one in tables)
    middle, large = (tables[min(place, len(tables) - 1)] for place in (MIDDLE, LARGE))
    rows = large.rows
    sought = cycle([_near(rng, rows, SOUGHT)[:, 0] for _ in range(REPEATED + 1)])
    searched = rounds.seconds("search", lambda: np.searchsorted(rows[:, 0], next(sought)))
    alone = rounds.seconds("scan alone", lambda: _native.scan(rows, rows[:1], H, False))
    machine = Machine(
        delta_r_ns=_ns(searched, SOUGHT) / log2(len(rows)),
        delta_l_ns=_slope(levels[-1][1]),
        levels=levels,
        measured=True,
        scanned_alone_ns=_ns(alone, len(rows)),
        **_vosh_times(rounds, rng),
        **_row_times(rounds, rng),
        **_top_times(rounds, rng, min(FAR_ROWS, len(rows))),
    )
    machine = replace(machine, **_sweep_times(rounds, rng, large, machine))
    return replace(machine, table_ns=_table_ns(rounds, rng, middle, machine))


def _ns(seconds: float, steps: float) -> float:
    return max(LEAST_NS, seconds * 1e9 / steps)


def _sorted_rows(rng: np.random.Generator, count: int) -> U64:
    step = (1 << 64) // count
    rows = np.arange(count, dtype=np.uint64)
    rows *= np.uint64(step)
    for start in range(0, count, MADE_ROWS):  # a second array of this size would not be small
        part = rows[start : start + MADE_ROWS]
        part += rng.integers(0, step, len(part), dtype=np.uint64)
    return rows[:, None]


def _near(rng: np.random.Generator, rows: U64, count: int) -> U64:
    """Queries, half of which are a stored row with a bit flipped."""
    queries = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    stored = rows[rng.integers(0, len(rows), count // 2), 0]
    flips = np.uint64(1) << rng.integers(0, 64, count // 2, dtype=np.uint64)
    queries[: count // 2] = stored ^ flips
    return rng.permutation(queries)[:, None]


def _level(rounds: Rounds, rng: np.random.Generator, one: _Rows) -> Level:
    """Of queries that are new each time, as in calls: repeated, they find their rows in a cache.

    At 60 M rows, queries that were asked before took 18 ns a probe and 305 ns in buckets of 915
    rows; new ones took 24 and 658.
    """
    points: list[tuple[float, float]] = []
    count, width = len(one.rows), one.width
    for bits in sorted({max(0, width - fewer) for fewer in NARROWER}, reverse=True):
        masks = psm.exhaustive_masks(bits, 1)
        asked = max(16, PROBES // len(masks) >> (width - bits))
        queries = cycle([_near(rng, one.rows, asked) for _ in range(REPEATED + 1)])

        def probe(bits: int, queries: Iterator[U64], masks: U64) -> None:
            _native.probe_checked(one.table, bits, next(queries), masks, H, False)

        seconds = rounds.seconds(
            f"probe {count} rows under {bits} bits", partial(probe, bits, queries, masks)
        )
        points.append((count / (1 << bits), _ns(seconds, asked * len(masks))))
    return table_bytes(count, 1, width), tuple(points)


def _slope(curve: Curve) -> float:
    """ns of one more row where a curve begins."""
    (few, low), (more, high) = curve[:2]
    return max(LEAST_NS, (high - low) / (more - few))


def _weights(rng: np.random.Generator, count: int) -> F32:
    return rng.standard_normal((count, 64), dtype=np.float32)


def _vosh_times(rounds: Rounds, rng: np.random.Generator) -> dict[str, Any]:
    weights = _weights(rng, 1 << 14)
    costs = from_random_pairs(weights[:256], distance=H).costs

    def ns(flips: int, count: int, h: int) -> float:
        order = vosh.plan(20, h, flips)
        seconds = rounds.seconds(
            f"{flips} flips within {h}", lambda: _native.vosh(
                weights[:count], costs, STEP, 20, h, flips, order.candidates, order.sort_network,
                order.select_network,
            )
        )
        return _ns(seconds, count)

    networked = tuple((k, ns(k, max(1 << 10, (1 << 16) // k), H)) for k in NETWORKED)
    heaped = tuple((h, ns(HEAPED, 1 << 9, h) / HEAPED) for h in HEAPED_H)
    return {"vosh": networked, "heaped": heaped, "delta_v_ns": heaped[0][1] / log2(HEAPED)}


def _row_times(rounds: Rounds, rng: np.random.Generator) -> dict[str, Any]:
    words = rng.integers(0, 1 << 64, 1 << 20, dtype=np.uint64)
    few = words[: 1 << 15, None]
    design = BlockDesign.flat(4, 1)
    permuted = rounds.seconds("permute", lambda: _native.permute(few, design.rotations(1)))
    arranged = rounds.seconds("sort", lambda: np.sort(words))
    scanned, far = (
        rounds.seconds(f"scan within {h}", partial(_native.scan, few, words[:64, None], h, False))
        for h in (H, FAR_H)
    )
    return {
        "delta_p_ns": _ns(permuted, len(few)),
        "delta_s_ns": _ns(arranged, len(words) * log2(len(words))),
        "scanned_ns": _ns(scanned, len(few) * 64),
        "scanned_far_ns": _ns(far, len(few) * 64),
    }


def _top_times(rounds: Rounds, rng: np.random.Generator, count: int) -> dict[str, Any]:
    rows = rng.integers(0, 1 << 64, (count, TOP_WORDS), dtype=np.uint64)
    ids = np.arange(count, dtype=np.uint64)
    queries = rng.integers(0, 1 << 64, (TOP_QUERIES[-1], TOP_WORDS), dtype=np.uint64)

    def word_ns(rows_asked: int, asked: int) -> float:
        some = rows[:rows_asked]
        scan = partial(_native.top_scan, some, ids[:rows_asked], queries[:asked], 10)
        return _ns(rounds.seconds(f"{asked} top scans of {rows_asked}", scan), some.size * asked)

    few, many = (word_ns(count // 8, asked) for asked in TOP_QUERIES)
    turned = max(LEAST_NS, (few - many) / (1 / TOP_QUERIES[0] - 1 / TOP_QUERIES[1]))
    return {
        "top_scanned_ns": max(LEAST_NS, many - turned / TOP_QUERIES[1]),
        "top_turned_ns": turned,
        "top_near_ns": word_ns(min(count, NEAR_ROWS), 1),
        "top_alone_ns": word_ns(count, 1),
        **_listed_times(rounds, rows, ids, queries),
    }


def _listed_times(rounds: Rounds, rows: U64, ids: U64, queries: U64) -> dict[str, float]:
    """Fits what rows, lists, rows scored and rows compared take to the times of some searches."""
    steps: list[tuple[float, ...]] = []
    for count in [len(rows) // share for share in LISTED_SHARES]:
        some, own = rows[:count], ids[:count]
        starts, numbers = _native.slice_lists(some, 16, 0, 4 * TOP_WORDS)
        slices = _native.CheckedSlices(some, own, starts, numbers)
        for errors in LISTED_ERRORS:
            for rerank in LISTED_RERANK:
                search = partial(
                    _native.top_slices, slices, queries, 10, errors, rerank, None
                )
                *_, lists, scored, _, _ = search()
                share = 1 / len(queries)
                step = f"lists of {count} within {errors}, {rerank} compared"
                taken = _ns(rounds.seconds(step, search), len(queries))
                steps.append((taken, count, lists * share, scored * share, rerank))
    told = np.array(steps)
    # Of relative errors, so that short searches count as much as long ones.
    fitted, *_ = np.linalg.lstsq(told[:, 1:] / told[:, :1], np.ones(len(told)), rcond=None)
    names = ("issl_cleared_ns", "issl_list_ns", "issl_scored_ns", "issl_reranked_ns")
    return {
        name: max(LEAST_NS, float(value)) for name, value in zip(names, fitted, strict=True)
    }


def _sweep_times(
    rounds: Rounds, rng: np.random.Generator, large: _Rows, machine: Machine
) -> dict[str, Any]:
    rows, table, directory, width = large
    queries = _near(rng, rows, SWEEPS[-1])

    def swept_ns(bits: int, count: int) -> float:
        """Cost of a probe, when this many queries look up headers with at most one flipped bit."""
        masks = psm.exhaustive_masks(bits, 1)
        own = _permuted(rows, directory, width, bits, masks, 1)
        some = partial(_native.bphs, table, width, [own], queries[:count], H, False, 1)
        return _ns(rounds.seconds(f"{count} swept under {bits}", some), count * len(masks))

    bucket = len(rows) / (1 << width)
    few, many = (swept_ns(width, count) for count in SWEEPS)
    # What is brought in does not depend on how many ask, once all is.
    probes = [count * (1 + width) for count in SWEEPS]
    streamed = max(LEAST_NS, (few - many) / (1 / probes[0] - 1 / probes[1]) / len(rows))
    in_cache = max(LEAST_NS, many - streamed * len(rows) / probes[1])
    further = in_cache + LONGER_ROWS * _slope(machine.levels[0][1])
    longer = []
    for fewer in LONG_NARROWER:
        bits = max(0, width - fewer)
        count = SWEEPS[0]
        brought = streamed * len(rows) / (count * (1 + bits))
        longer.append((len(rows) / (1 << bits), max(LEAST_NS, swept_ns(bits, count) - brought)))
    return {
        "streamed_ns": streamed,
        "swept": ((bucket, in_cache), (bucket + LONGER_ROWS, further)),
        "bucketed": tuple(longer),
    }


def _permuted(
    rows: U64, directory: U32, width: int, bits: int, masks: U64, flips: int,
    design: BlockDesign | None = None, number: int = 0,
) -> _native.CheckedPermuted:
    none = np.empty((0, 4), np.uint64)
    header = np.zeros(1, np.uint64) if design is None else bphs.header_mask(design, number, bits)
    return _native.CheckedPermuted(
        rows, directory, width, bits,
        design.rotations(number) if design is not None and number else none,
        design.rotations(number, inverse=True) if design is not None and number else none,
        masks, header, flips,
    )


def _table_ns(
    rounds: Rounds, rng: np.random.Generator, middle: _Rows, machine: Machine
) -> float:
    design = BlockDesign.flat(4, 1)
    rows, own, _, width = middle
    bits = min(width, min(design.header_bits))
    masks = psm.exhaustive_masks(bits, 0)
    tables = []
    for number in range(design.tables):
        permuted = np.sort(design.permute(rows, number), axis=0) if number else rows
        directory = _native.header_directory(permuted[:, 0], bits)
        tables.append(_permuted(permuted, directory, bits, bits, masks, 0, design, number))
    queries = _near(rng, rows, 1 << 16)
    seconds = rounds.seconds(
        "four tables", lambda: _native.bphs(own, width, tables, queries, H, False, 1)
    )
    looked_up = along(machine.swept, len(rows) / (1 << bits))
    return max(machine.delta_p_ns, _ns(seconds, len(queries) * design.tables) - looked_up)
