"""What an index would take and reach, before there is one: methods side by side, from sizes alone.

    rows, h, recall, memory -> psm | psm exact | block designs | scan -> bytes, queries a second

A forecast is of one thread. Memory is what a search must have at hand: fingerprints of all tables,
and header directories. Ids stand on disk beside them, and are read for matches only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.volatility import from_random_pairs
from simindex.bits.vosh import set_count
from simindex.checks import is_int
from simindex.errors import InvalidOption
from simindex.methods import bphs, issl, psm, scan
from simindex.planning.calibration import Calibration, NearPairs
from simindex.planning.candidates import NARROWEST
from simindex.planning.costs import (
    CALL_NS,
    SEGMENT_NS,
    issl_ns,
    permuted_ns,
    probing_ns,
    scanning_ns,
    top_scanning_ns,
)
from simindex.planning.machine import Machine
from simindex.planning.model import bphs_batch_s, disk_s, psm_batch_s, rate
from simindex.planning.question import check_options
from simindex.storage.tables.record import MAX_ROWS
from simindex.storage.tables.slicelist import WIDE_BITS, SliceDesign
from simindex.storage.tables.sortedrows import header_bits

BATCHES = (10_000, 100_000, 1_000_000, 10_000_000)
"""Sizes m of the batches whose rate is predicted."""

ONLINE_QUERIES = 1024
"""Queries of a call, online."""

MOST_ROWS = 1 << 48

SAMPLE_ROWS = 128


@dataclass(frozen=True, slots=True)
class Forecast:
    """One method's part in a forecast."""

    method: str
    """`"psm"`, `"scan"`, or the name of a block design."""
    recall: float
    """Expected share of the matches; 1 is exact."""
    tables: int
    """T."""
    header_bits: tuple[int, int]
    """Narrowest and widest header looked up, t; zeros for a scan."""
    flips: int
    """k: headers looked up in a table beside the query's own, the most of all tables."""
    disk_bytes_per_row: float
    """With ids and header directories."""
    disk_bytes: int
    memory_bytes: int
    fits: bool
    queries_s: float
    """Online: calls of some queries against tables in memory."""
    batch_queries_s: dict[int, float]
    """[PSM] (18): batches of m queries against the file, read once for each."""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class SliceForecast:
    """What slice lists take beside the rows."""

    structure: str
    slices: int
    """s."""
    slice_bits: int
    """w."""
    segments: int
    """Each has 2^w s lists of its own."""
    disk_bytes: int
    """[ISSL] section 3: 4 (n s + 2^w s), and 4 s for the ends, summed over the segments."""
    disk_bytes_per_row: float
    top_queries_s: float
    """The 10 nearest by these lists with max_error 2, if fingerprints are uniform: rows that crowd
    make lists long that are asked for."""
    top_scan_queries_s: float
    """The same by comparing all rows, one query at a time."""
    top_scan_batch_queries_s: float
    """And many at a time."""


TOP_K, TOP_MAX_ERROR = 10, 2
"""What is asked of slice lists in a forecast."""


def slice_forecast(
    rows: int, *, bits: int, structure: str = "issl", machine: Machine | None = None
) -> SliceForecast | None:
    """What the slice lists of as few segments as possible take; None for narrow fingerprints.

    These have "issl" only if an index is told so: lists of 8 bits are long.
    """
    _check_size(rows, bits)
    if structure == "issl" and bits < WIDE_BITS:
        return None
    design, segments = SliceDesign.parse(structure, bits), -(-rows // MAX_ROWS)
    size = design.list_bytes(rows) + (segments - 1) * design.list_bytes(0)
    each, words, machine = -(-rows // segments), bits // 64, machine or Machine()
    lists = design.slices * sum(comb(design.width, flips) for flips in range(TOP_MAX_ERROR + 1))
    rerank = issl.default_rerank(
        each, TOP_K, TOP_MAX_ERROR, width=design.width, slices=design.slices
    )
    listed_ns = issl_ns(machine, each, words, lists, each * lists / design.lists, rerank)
    alone_ns, shared_ns = (
        top_scanning_ns(machine, each, words, queries) for queries in (1, ONLINE_QUERIES)
    )
    return SliceForecast(
        structure, design.slices, design.width, segments, size, size / rows,
        top_queries_s=1e9 / (CALL_NS + segments * listed_ns),
        top_scan_queries_s=1e9 / (CALL_NS + segments * alone_ns),
        top_scan_batch_queries_s=1e9 / (segments * shared_ns),
    )


def forecast(
    rows: int,
    *,
    h: int = 3,
    recall: float = 1.0,
    bits: int = 64,
    memory_bytes: int | None = None,
    machine: Machine | None = None,
) -> list[Forecast]:
    """Every method that keeps the promise, and exact PSM; the fastest that fits is marked.

    Parameters
    ----------
    recall : float
        Below 1, queries are taken to have weights: flips are those expected of weights of a normal
        distribution under the paper's model, more than an index finds that knows near-duplicates.
    memory_bytes : int, optional
        The most that tables and directories may take.
    machine : Machine, optional
        By default the usual constants.

    Raises
    ------
    InvalidOption
        If an option is out of range, or nothing fits the memory; says the least that would do.
    """
    _check_size(rows, bits)
    check_options(h=h, recall=recall, method="auto", bits=bits)
    asked = _Asked(rows, h, bits, memory_bytes, machine or Machine())
    found = [*_psm(asked, recall), *_designs(asked), _scan(asked)]
    fitting = [one for one in found if one.fits]
    if not fitting:
        least = min(found, key=lambda one: one.memory_bytes)
        raise InvalidOption(
            f"no method holds {rows:,} rows of {bits} bits in {memory_bytes:,} bytes of memory: "
            f"the least is {least.memory_bytes:,} bytes, by {least.method}; give that, or split "
            "the rows over machines",
            option="memory", found=memory_bytes, expected=least.memory_bytes,
        )
    best = max(fitting, key=lambda one: one.queries_s)
    return [replace(one, chosen=one is best) for one in found]


def _check_size(rows: object, bits: object) -> None:
    if not is_int(rows) or not 1 <= rows <= MOST_ROWS:
        raise InvalidOption(
            f"rows={rows!r}: give a whole number from 1 to 2^48", option="rows", found=rows
        )
    if not is_int(bits) or bits % 64 or not 64 <= bits <= 4096:
        raise InvalidOption(
            f"bits={bits!r}: give a multiple of 64 from 64 to 4096", option="bits", found=bits
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    rows: int
    h: int
    bits: int
    memory_bytes: int | None
    machine: Machine

    @property
    def words(self) -> int:
        return self.bits // 64

    @property
    def segments(self) -> int:
        """A segment holds so many rows at most that several are needed."""
        return -(-self.rows // MAX_ROWS)

    @property
    def segment_rows(self) -> int:
        return -(-self.rows // self.segments)

    def forecast(
        self, method: str, recall: float, widths: Sequence[int], flips: int, segment_ns: float,
        batches: dict[int, float], directories: Sequence[int],
    ) -> Forecast:
        """`segment_ns` is a query's time in one segment, `directories` the widths it has."""
        tables = max(1, len(directories))
        memory = self.segments * sum(4 << width for width in directories)
        memory += tables * self.rows * self.bits // 8
        disk = memory + 8 * self.rows
        per_call_ns = CALL_NS + self.segments * SEGMENT_NS
        query_ns = self.segments * segment_ns + per_call_ns / ONLINE_QUERIES
        return Forecast(
            method, recall, tables, (min(widths, default=0), max(widths, default=0)), flips,
            disk / self.rows, disk, memory,
            self.memory_bytes is None or memory <= self.memory_bytes, 1e9 / query_ns, batches,
        )

    def batches(self, cpu_s: dict[int, float]) -> dict[int, float]:
        """(18): the file is read while the last part of it is computed on."""
        read = disk_s(self.machine, self.rows, self.bits)
        return {m: rate(m, read, seconds) for m, seconds in cpu_s.items()}


def _psm(asked: _Asked, recall: float) -> Iterator[Forecast]:
    expected = _expected(asked.bits, asked.h)
    for share in sorted({recall, 1.0}):
        by_width = [
            _psm_under(asked, share, width, expected)
            for width in _widths(asked.segment_rows)
        ]
        fitting = [one for one in by_width if one.fits]
        yield (
            max(fitting, key=lambda one: one.queries_s) if fitting
            else min(by_width, key=lambda one: one.memory_bytes)
        )


def _widths(rows: int) -> range:
    widest = header_bits(rows)
    return range(widest, max(0, widest - NARROWEST) - 1, -1)


def _psm_under(asked: _Asked, recall: float, width: int, expected: Calibration) -> Forecast:
    machine, h, words = asked.machine, asked.h, asked.words
    flips = _flips(expected, width, h, recall)
    exact = flips == set_count(width, h)
    cpu_s = {}
    for m in BATCHES:
        t = header_bits(m)
        k = _flips(expected, t, h, recall)
        tau_ns = probing_ns(machine, m, t, k, ordered=False, h=h, words=words)
        cpu_s[m] = psm_batch_s(machine, k, m, asked.rows, tau_ns)
    return asked.forecast(
        psm.NAME, 1.0 if exact else recall, [width], flips,
        probing_ns(
            machine, asked.segment_rows, width, flips, ordered=not exact, h=h, words=words,
            queries=ONLINE_QUERIES,
        ),
        asked.batches(cpu_s), [width],
    )


def _flips(expected: Calibration, width: int, h: int, recall: float) -> int:
    every = set_count(width, h)
    return every if recall == 1 else min(every, expected.flips(width, h, recall))


def _expected(bits: int, h: int) -> Calibration:
    weights = np.random.default_rng(0).normal(size=(SAMPLE_ROWS, bits)).astype(np.float16)
    none = NearPairs(
        h, np.empty(0, np.int64), np.empty((0, bits // 64), np.uint64), weights[:0]
    )
    return Calibration(from_random_pairs(weights, distance=h), none, weights, 0, True)


def _designs(asked: _Asked) -> Iterator[Forecast]:
    for design in designs_for(asked.h, asked.bits):
        widths = _directories(design, asked.segment_rows)
        looked_up = bphs.looked_up(design, asked.h, widths)
        cpu_s = {}
        for m in BATCHES:
            tables = bphs.looked_up(design, asked.h, _directories(design, m))
            tau_ns = permuted_ns(asked.machine, m, tables, h=asked.h, words=asked.words)
            cpu_s[m] = bphs_batch_s(asked.machine, design.tables, m, asked.rows, tau_ns)
        yield asked.forecast(
            design.structure, 1.0, [width for _, width in looked_up],
            max(probes for probes, _ in looked_up) - 1,
            permuted_ns(
                asked.machine, asked.segment_rows, looked_up, h=asked.h, words=asked.words,
                queries=ONLINE_QUERIES,
            ),
            asked.batches(cpu_s), widths,
        )


def _directories(design: BlockDesign, rows: int) -> tuple[int, ...]:
    """Widths of the directories that a design's tables get; table 0's knows no design."""
    widest = header_bits(rows)
    return (widest, *(min(widest, width) for width in design.header_bits[1:]))


def _scan(asked: _Asked) -> Forecast:
    machine, rows = asked.machine, asked.rows
    query_ns = scanning_ns(machine, rows, asked.words, ONLINE_QUERIES, asked.h)
    batches = asked.batches({m: m * query_ns * 1e-9 for m in BATCHES})
    return asked.forecast(scan.NAME, 1.0, [], 0, query_ns / asked.segments, batches, [])

