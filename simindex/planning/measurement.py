"""Measures a machine's constants by timing the real kernels on made-up tables, in a few seconds.

    levels         probes of tables of 32 kB to 180 MB, under headers of three widths
    vosh, heaped   putting few and many flip sets in order
    delta P, S, R  permuting, sorting, binary search
    sweep          two batches over one table: what each probe takes, and what each row
    table          one of the permuted tables of a query, beside looking it up
    scan           one query, and many
    top scan       the nearest documents, for one query and for many
    slice lists    the same, with few and many lists, rows in them, and rows compared
    D              reading a file

Times are of the processor, so that what else runs counts only by the caches and the memory it
takes; D is by the clock on the wall. Each figure is the least of some repetitions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, U32, U64
from simindex.bits import vosh
from simindex.bits.design import BlockDesign
from simindex.bits.volatility import STEP, from_random_pairs
from simindex.methods import bphs, psm
from simindex.planning.costs import along, table_bytes
from simindex.planning.machine import Curve, Level, Machine
from simindex.storage.tables.sortedrows import header_bits

LEVEL_ROWS = (3_000, 50_000, 800_000, 6_000_000, 23_000_000)
"""From the nearest cache to far beyond the last; no powers of 2, whose buckets would begin with a
cache line."""

H = 3
FAR_H = 8
REPEATED = 3
NETWORKED = (2, 6, 32, 96, 256)
"""Flips of the queries that are timed, by networks."""

HEAPED = 600
"""And by heap, at these radii."""
HEAPED_H = (3, 6)

NARROWER = (0, 2, 5)
"""Header bits fewer than a directory's that are looked up, so that buckets are longer."""
LONG_NARROWER = (3, 6)
"""And where a sweep goes bucket by bucket."""

PROBES = 1 << 18
SWEEPS = (1 << 16, 1 << 18)
"""Queries of the two sweeps that are timed."""
READ_BYTES = 1 << 28
READ_AT_ONCE = 1 << 22
LEAST_READ_BYTES = 1 << 20
"""A shorter file says nothing of a disk."""

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
    About five seconds and 600 MB of memory.
    """
    rng = np.random.default_rng(2011)
    levels = []
    for count in level_rows:
        rows = _sorted_rows(rng, count)
        table, directory, width = _checked(rows)
        levels.append(_level(rng, rows, table, width))
    queries = _near(rng, rows, 1 << 16)
    searched = _least(lambda: np.searchsorted(rows[:, 0], queries[:, 0]))
    machine = Machine(
        delta_r_ns=_ns(searched, len(queries)) / log2(len(rows)),
        delta_l_ns=_slope(levels[-1][1]),
        levels=tuple(levels),
        measured=True,
        scanned_alone_ns=_ns(
            _least(lambda: _native.scan(rows, queries[:1], H, False)), len(rows)
        ),
        **_vosh_times(rng),
        **_row_times(rng),
        **_top_times(rng, min(FAR_ROWS, level_rows[-1])),
    )
    machine = replace(machine, **_sweep_times(rng, rows, table, directory, width, machine))
    middle = level_rows[min(2, len(levels) - 1)]
    machine = replace(machine, table_ns=_table_ns(rng, middle, machine))
    speed = None if file is None else read_bytes_s(file)
    return machine if speed is None else replace(machine, disk_bytes_s=speed)


def read_bytes_s(path: Path) -> float | None:
    """D: bytes a second of reading a file from its start; None if it is too short to tell.

    What the system holds of it in memory is dropped first, unless somebody has it mapped.
    """
    with path.open("rb", buffering=0) as file:
        size = min(READ_BYTES, os.fstat(file.fileno()).st_size)
        if size < LEAST_READ_BYTES:
            return None
        os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
        buffer = bytearray(READ_AT_ONCE)
        read = 0
        start = time.perf_counter()
        while read < size and (got := file.readinto(buffer)):
            read += got
        return read / max(1e-9, time.perf_counter() - start)


def _least(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATED + 1):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times[1:])


def _ns(seconds: float, steps: float) -> float:
    return max(LEAST_NS, seconds * 1e9 / steps)


def _sorted_rows(rng: np.random.Generator, count: int) -> U64:
    step = (1 << 64) // count
    rows = np.arange(count, dtype=np.uint64) * np.uint64(step)
    rows += rng.integers(0, step, count, dtype=np.uint64)
    return rows[:, None]


def _checked(rows: U64) -> tuple[_native.CheckedTable, U32, int]:
    width = header_bits(len(rows))
    directory = _native.header_directory(rows[:, 0], width)
    ids = np.arange(len(rows), dtype=np.uint64)
    return _native.CheckedTable(rows, directory, width, ids), directory, width


def _near(rng: np.random.Generator, rows: U64, count: int) -> U64:
    """Queries, half of which are a stored row with a bit flipped."""
    queries = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    stored = rows[rng.integers(0, len(rows), count // 2), 0]
    flips = np.uint64(1) << rng.integers(0, 64, count // 2, dtype=np.uint64)
    queries[: count // 2] = stored ^ flips
    return rng.permutation(queries)[:, None]


def _level(
    rng: np.random.Generator, rows: U64, table: _native.CheckedTable, width: int
) -> Level:
    points: list[tuple[float, float]] = []
    for bits in sorted({max(0, width - fewer) for fewer in NARROWER}, reverse=True):
        masks = psm.exhaustive_masks(bits, 1)
        queries = _near(rng, rows, max(16, PROBES // len(masks) >> (width - bits)))
        seconds = _least(
            partial(_native.probe_checked, table, bits, queries, masks, H, False)
        )
        points.append((len(rows) / (1 << bits), _ns(seconds, len(queries) * len(masks))))
    return table_bytes(len(rows), 1, width), tuple(points)


def _slope(curve: Curve) -> float:
    """ns of one more row where a curve begins."""
    (few, low), (more, high) = curve[:2]
    return max(LEAST_NS, (high - low) / (more - few))


def _weights(rng: np.random.Generator, count: int) -> F32:
    return rng.standard_normal((count, 64), dtype=np.float32)


def _vosh_times(rng: np.random.Generator) -> dict[str, Any]:
    weights = _weights(rng, 1 << 14)
    costs = from_random_pairs(weights[:256], distance=H).costs

    def ns(flips: int, count: int, h: int) -> float:
        order = vosh.plan(20, h, flips)
        seconds = _least(
            lambda: _native.vosh(
                weights[:count], costs, STEP, 20, h, flips, order.candidates, order.sort_network,
                order.select_network,
            )
        )
        return _ns(seconds, count)

    networked = tuple((k, ns(k, max(1 << 10, (1 << 16) // k), H)) for k in NETWORKED)
    heaped = tuple((h, ns(HEAPED, 1 << 9, h) / HEAPED) for h in HEAPED_H)
    return {"vosh": networked, "heaped": heaped, "delta_v_ns": heaped[0][1] / log2(HEAPED)}


def _row_times(rng: np.random.Generator) -> dict[str, Any]:
    words = rng.integers(0, 1 << 64, 1 << 20, dtype=np.uint64)
    few = words[: 1 << 15, None]
    design = BlockDesign.flat(4, 1)
    permuted = _least(lambda: _native.permute(few, design.rotations(1)))
    arranged = _least(lambda: _native.sort_pairs(words, words))
    scanned, far = (
        _least(partial(_native.scan, few, words[:64, None], h, False)) for h in (H, FAR_H)
    )
    return {
        "delta_p_ns": _ns(permuted, len(few)),
        "delta_s_ns": _ns(arranged, len(words) * log2(len(words))),
        "scanned_ns": _ns(scanned, len(few) * 64),
        "scanned_far_ns": _ns(far, len(few) * 64),
    }


def _top_times(rng: np.random.Generator, count: int) -> dict[str, Any]:
    rows = rng.integers(0, 1 << 64, (count, TOP_WORDS), dtype=np.uint64)
    ids = np.arange(count, dtype=np.uint64)
    queries = rng.integers(0, 1 << 64, (TOP_QUERIES[-1], TOP_WORDS), dtype=np.uint64)

    def word_ns(rows_asked: int, asked: int) -> float:
        some = rows[:rows_asked]
        scan = partial(_native.top_scan, some, ids[:rows_asked], queries[:asked], 10)
        return _ns(_least(scan), some.size * asked)

    few, many = (word_ns(count // 8, asked) for asked in TOP_QUERIES)
    turned = max(LEAST_NS, (few - many) / (1 / TOP_QUERIES[0] - 1 / TOP_QUERIES[1]))
    return {
        "top_scanned_ns": max(LEAST_NS, many - turned / TOP_QUERIES[1]),
        "top_turned_ns": turned,
        "top_near_ns": word_ns(min(count, NEAR_ROWS), 1),
        "top_alone_ns": word_ns(count, 1),
        **_listed_times(rows, ids, queries),
    }


def _listed_times(rows: U64, ids: U64, queries: U64) -> dict[str, float]:
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
                taken = _ns(_least(search), len(queries))
                steps.append((taken, count, lists * share, scored * share, rerank))
    told = np.array(steps)
    # Of relative errors, so that short searches count as much as long ones.
    fitted, *_ = np.linalg.lstsq(told[:, 1:] / told[:, :1], np.ones(len(told)), rcond=None)
    names = ("issl_cleared_ns", "issl_list_ns", "issl_scored_ns", "issl_reranked_ns")
    return {
        name: max(LEAST_NS, float(value)) for name, value in zip(names, fitted, strict=True)
    }


def _sweep_times(
    rng: np.random.Generator, rows: U64, table: _native.CheckedTable, directory: U32, width: int,
    machine: Machine,
) -> dict[str, Any]:
    queries = _near(rng, rows, SWEEPS[-1])

    def swept_ns(bits: int, count: int) -> float:
        """Of a probe, when so many queries look up headers with at most a flipped bit."""
        masks = psm.exhaustive_masks(bits, 1)
        own = _permuted(rows, directory, width, bits, masks, 1)
        some = partial(_native.bphs, table, width, [own], queries[:count], H, False, 1)
        return _ns(_least(some), count * len(masks))

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


def _table_ns(rng: np.random.Generator, count: int, machine: Machine) -> float:
    design = BlockDesign.flat(4, 1)
    rows = _sorted_rows(rng, count)
    own, _, width = _checked(rows)
    bits = min(width, min(design.header_bits))
    masks = psm.exhaustive_masks(bits, 0)
    tables = []
    for number in range(design.tables):
        permuted = np.sort(design.permute(rows, number), axis=0) if number else rows
        directory = _native.header_directory(permuted[:, 0], bits)
        tables.append(_permuted(permuted, directory, bits, bits, masks, 0, design, number))
    queries = _near(rng, rows, 1 << 16)
    seconds = _least(
        lambda: _native.bphs(own, width, tables, queries, H, False, 1)
    )
    looked_up = along(machine.swept, count / (1 << bits))
    return max(machine.delta_p_ns, _ns(seconds, len(queries) * design.tables) - looked_up)
