"""What an index would take and reach, before there is one, from sizes alone.

    rows, h, recall, memory -> psm | psm exact | block designs | scan -> bytes, queries a second

A forecast has plans made for tables that have the size of the rows and none of their bytes, by the
planner that plans real calls. So it predicts what the engine would run, which differs with the size
of a batch: probes on their own, a sweep, or tables over the queries.

A forecast is of one thread. Memory is what a search must have at hand: fingerprints of all tables,
and header directories. Ids are on disk next to them, and are read for matches only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import comb

import numpy as np

from simindex.arrays import F64
from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.volatility import from_near_pairs
from simindex.checks import is_int
from simindex.errors import InvalidOption
from simindex.methods import issl, psm
from simindex.methods.base import TablePlan
from simindex.options import SLICE_LISTS, IndexOptions
from simindex.planning import cold_calls, registry
from simindex.planning.calibration import Calibration, NearPairs
from simindex.planning.cold_calls import ID_BYTES
from simindex.planning.costs import CALL_NS, SEGMENT_NS, issl_ns, top_scanning_ns
from simindex.planning.machine import Machine
from simindex.planning.planner import plan
from simindex.planning.question import Question, check_options
from simindex.simhash.radius import raw_radius
from simindex.storage.tables.permuted import PermutedTables, header_widths
from simindex.storage.tables.record import MAX_ROWS, StructureRecord
from simindex.storage.tables.slice_lists import WIDE_BITS, SliceDesign
from simindex.storage.tables.sorted_rows import header_bits
from simindex.storage.tables.table import Table
from simindex.values import dataclass

MOST_ROWS = 1 << 48

BATCHES = (10_000, 100_000, 1_000_000, 10_000_000)
"""Sizes m of the batches whose rate is predicted."""

ONLINE_QUERIES = 1024
"""Queries of a call, online."""

TEXTS = 1000
"""Near-duplicates of the index from which it is taken to have learned how bits flip."""

CHANGE_LOG_MEAN, CHANGE_LOG_DEVIATION = float(np.log(0.09)), 1.3
"""How far a revision of a real page moves its weights: by Laplace noise, the scale of which is
log-normal, in units of the root mean square of the weights."""

TRIALS = 64


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an index with one structure takes and reaches."""

    method: str
    """`"psm"`, the sorted rows alone; the name of a block design that is added; or `"scan"`."""
    recall: float
    """Expected share of the matches; 1 is exact."""
    tables: int
    """T."""
    header_bits: tuple[int, int]
    """Narrowest and widest header looked up online, t; zeros for a scan."""
    flips: int
    """k: headers looked up in a table in addition to the query's own; the most of all tables."""
    disk_bytes_per_row: float
    """With ids and header directories."""
    disk_bytes: int
    memory_bytes: int
    fits: bool
    queries_s: float
    """Online: calls of some queries, against tables in memory."""
    batch_queries_s: dict[int, float]
    """Batches of m queries, against tables in memory."""
    cold_queries_s: dict[int, float]
    """The same against files that are on the disk only, [PSM] (18)."""
    batch_methods: dict[int, str]
    """What answers them, as `QueryStats.method` has it."""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class SliceForecast:
    """What slice lists take in addition to the rows."""

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
    rows: int, *, bits: int, structure: str = SLICE_LISTS, machine: Machine | None = None
) -> SliceForecast | None:
    """What the slice lists of as few segments as possible take; None for narrow fingerprints.

    These have "issl" only if an index asks for it, because lists of 8 bits are long.
    """
    _check_size(rows, bits)
    if structure == SLICE_LISTS and bits < WIDE_BITS:
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
    h: int | None = None,
    recall: float = 1.0,
    bits: int = 64,
    memory_bytes: int | None = None,
    machine: Machine | None = None,
    calibration: Calibration | None = None,
) -> list[Forecast]:
    """Every structure that an index may have, for the promise and exactly; the fastest is marked.

    Parameters
    ----------
    h : int, optional
        By default 3 for each 64 bits.
    recall : float
        Below 1, queries are taken to have weights, and the index to have learned how bits flip from
        revisions of pages. One that knows no near-duplicates takes more flips.
    memory_bytes : int, optional
        The most that tables and directories may take.
    machine : Machine, optional
        By default the usual constants.
    calibration : Calibration, optional
        How bits flip, if it is known better.

    Raises
    ------
    InvalidOption
        If an option is out of range, or nothing fits the memory; says the least that would do.
    """
    found = [
        _of_structure(one, memory_bytes)
        for one in outlines(
            rows, h=h, recall=recall, bits=bits, machine=machine, calibration=calibration
        )
    ]
    fitting = [one for one in found if one.fits]
    if not fitting:
        least = min(found, key=lambda one: one.memory_bytes)
        raise InvalidOption(
            f"no method fits {rows:,} rows of {bits} bits into {memory_bytes:,} bytes of memory; "
            f"comparing every row needs the least, {least.memory_bytes:,} bytes",
            remedy="give at least that, or divide the rows among machines", option="memory",
            found=memory_bytes, expected=least.memory_bytes,
        )
    best = max(fitting, key=lambda one: one.queries_s)
    return [replace(one, chosen=one is best) for one in found]


def _structures(
    h: int, recall: float, bits: int
) -> Iterator[tuple[str, BlockDesign | None, float]]:
    """(method asked for, design that the index has, recall) of each line of a forecast."""
    for share in sorted({recall, 1.0}):
        yield "auto", None, share
    for design in sorted({*designs_for(h, bits), *_usual_designs(h, bits)}, key=_by_size):
        yield "auto", design, 1.0
    yield registry.ANY_TABLE.name, None, 1.0


def _usual_designs(h: int, bits: int) -> list[BlockDesign]:
    """Those of a new index that are exact for h."""
    names = [name for name in IndexOptions(bits=bits).structures if registry.names_design(name)]
    designs = [BlockDesign.parse(name, bits) for name in names]
    return [design for design in designs if h <= design.exact_for]


def _by_size(design: BlockDesign) -> tuple[int, str]:
    return design.tables, design.structure


@dataclass(frozen=True, slots=True)
class Imagined:
    """A segment of an index that there is not: its plans are those of a real one of its size."""

    rows: int
    bits: int = 64
    designs: tuple[BlockDesign, ...] = ()
    """Whose permuted tables it has."""

    @property
    def table(self) -> Table:
        """Has the size of the rows and none of their bytes: each is the same zero."""
        zero = np.zeros(1, np.uint64)
        table = Table(
            "imagined", np.broadcast_to(zero, (self.rows, self.bits // 64)),
            np.broadcast_to(zero, self.rows), None, horizon=0, header_bits=header_bits(self.rows),
        )
        for design in self.designs:
            widths = header_widths(self.rows, design)
            record = StructureRecord(design.structure, "", 0, 0, 1, widths)
            tables = PermutedTables(record, design, None, lambda number: None)
            table.structures = {**table.structures, design.structure: tables}
        return table

    def plan(
        self, question: Question, queries: int, machine: Machine, calibration: Calibration | None
    ) -> TablePlan:
        """How a call of this many queries is answered, and what it takes.

        Calls are planned by their size rounded down to a power of two; the cost is of the size.
        """
        sizes = 1 << queries.bit_length() >> 1, queries
        plans = {
            size: plan(
                [self.table], question, queries=size, calibration=calibration,
                designs=self.designs, machine=machine,
            ).tables[0]
            for size in set(sizes)
        }
        rounded, found = (plans[size] for size in sizes)
        same = (rounded.method, rounded.widths) == (found.method, found.widths)
        return found if same else rounded


@dataclass(frozen=True, slots=True)
class Outline:
    """An index that there is not yet: its sizes, and what its calls take."""

    rows: int
    each: Imagined
    """Each of its segments."""
    question: Question
    machine: Machine
    calibration: Calibration | None

    @property
    def segments(self) -> int:
        """As few as possible."""
        return -(-self.rows // self.each.rows)

    @property
    def design(self) -> BlockDesign | None:
        """Of its permuted tables."""
        return next(iter(self.each.designs), None)

    @property
    def method(self) -> str:
        """As `Forecast.method` has it."""
        name = psm.NAME if self.question.method == "auto" else self.question.method
        return name if self.design is None else self.design.structure

    @property
    def memory_bytes(self) -> int:
        """What a search must have at hand."""
        return self.segments * registry.of(self.method).held_bytes([self.each.table], self.design)

    @property
    def disk_bytes(self) -> int:
        """With ids."""
        return self.memory_bytes + ID_BYTES * self.rows

    def planned(self, queries: int) -> TablePlan:
        """How a call is answered in each segment."""
        return self.each.plan(self.question, queries, self.machine, self.calibration)

    def processor_s(self, plan: TablePlan, queries: int) -> float:
        """Of a call that is answered so, on one thread."""
        return (CALL_NS + self.segments * (SEGMENT_NS + queries * plan.nanoseconds)) * 1e-9

    def cold_call(self, plan: TablePlan, queries: int) -> cold_calls.Call:
        """A call whose files are on the disk only."""
        segment_s = self.processor_s(plan, queries) / self.segments
        words = self.each.bits // 64
        each = cold_calls.cold_call(self.each.rows, words, plan, queries, segment_s)
        return each.times(self.segments)


def outlines(
    rows: int,
    *,
    h: int | None = None,
    recall: float = 1.0,
    bits: int = 64,
    machine: Machine | None = None,
    calibration: Calibration | None = None,
) -> list[Outline]:
    """An index of each structure. Parameters and errors are of `forecast`."""
    _check_size(rows, bits)
    h = raw_radius(bits) if h is None else h
    recall = check_options(h=h, recall=recall, method="auto", bits=bits)
    if recall < 1 and calibration is None:
        calibration = usual_calibration(bits, h)
    segments = -(-rows // MAX_ROWS)
    return [
        Outline(
            rows, Imagined(-(-rows // segments), bits, () if design is None else (design,)),
            Question(h=h, recall=share, method=method), machine or Machine(),
            calibration if share < 1 else None,
        )
        for method, design, share in _structures(h, recall, bits)
    ]


def _of_structure(one: Outline, memory_bytes: int | None) -> Forecast:
    """Of an index each of whose segments is of one kind."""
    memory, disk, design = one.memory_bytes, one.disk_bytes, one.design
    online, batches = one.planned(ONLINE_QUERIES), {m: one.planned(m) for m in BATCHES}
    return Forecast(
        one.method, 1.0 if online.exact else one.question.recall,
        1 if design is None else design.tables,
        (min(online.widths, default=0), max(online.widths, default=0)), online.flips,
        disk / one.rows, disk, memory, memory_bytes is None or memory <= memory_bytes,
        ONLINE_QUERIES / one.processor_s(online, ONLINE_QUERIES),
        {m: m / one.processor_s(plan, m) for m, plan in batches.items()},
        {m: m / one.cold_call(plan, m).seconds(one.machine) for m, plan in batches.items()},
        {m: plan.method for m, plan in batches.items()},
    )


@lru_cache(maxsize=16)
def usual_calibration(bits: int, h: int) -> Calibration:
    """What an index has learned that holds revisions of real pages."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(TEXTS, bits))
    flipped = np.zeros(weights.shape, np.bool_)
    pending = np.arange(TEXTS)
    for _ in range(TRIALS):
        change = _change(rng, len(pending), bits)
        apart = (weights[pending] + change >= 0) != (weights[pending] >= 0)
        near = (apart.sum(axis=1) >= 1) & (apart.sum(axis=1) <= h)
        flipped[pending[near]] = apart[near]
        pending = pending[~near]
    kept = np.setdiff1d(np.arange(TEXTS), pending)
    sample = weights.astype(np.float16)
    differing = np.packbits(flipped[kept], axis=1).view(">u8").astype(np.uint64)
    pairs = NearPairs(h, np.arange(len(kept)), differing, sample[kept])
    return Calibration(from_near_pairs(sample[kept], flipped[kept]), pairs, sample, 0)


def _change(rng: np.random.Generator, texts: int, bits: int) -> F64:
    scale = np.exp(rng.normal(CHANGE_LOG_MEAN, CHANGE_LOG_DEVIATION, (texts, 1)))
    change: F64 = rng.laplace(size=(texts, bits)) * scale
    return change


def _check_size(rows: object, bits: object) -> None:
    if not is_int(rows) or not 1 <= rows <= MOST_ROWS:
        raise InvalidOption(
            f"rows={rows!r} is not valid", remedy="give a whole number from 1 to 2^48",
            option="rows", found=rows
        )
    if not is_int(bits) or bits % 64 or not 64 <= bits <= 4096:
        raise InvalidOption(
            f"bits={bits!r} is not valid",
            remedy="give a multiple of 64 from 64 to 4096", option="bits", found=bits,
        )
