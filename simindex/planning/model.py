"""What an index would take by each method, from sizes alone, by the equations of [PSM] section 6.

    (16) - (18)  disk_s, bphs_batch_s, rate    batches of m queries against a file of n rows
    (23)         psm_batch_s                   the same by PSM

These are the papers' forms. What the engine's own kernels take, which prefetch and compare eight
rows at once, stands in `costs`: the planner goes by that, and a forecast by these equations with
its times. The other equations of the section stand in `tools/reproduce/model.py`.

The papers' letters: b bits of a fingerprint, k flips, m = |Q|, T tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.volatility import from_random_pairs
from simindex.bits.vosh import set_count
from simindex.methods import bphs, psm, scan
from simindex.methods.base import reaches
from simindex.planning.calibration import Calibration, NearPairs
from simindex.planning.candidates import narrower
from simindex.planning.costs import CALL_NS, SEGMENT_NS, permuted_ns, probing_ns, scanning_ns
from simindex.planning.machine import Machine
from simindex.storage.tables.record import MAX_ROWS
from simindex.storage.tables.sortedrows import header_bits

BATCHES = (10_000, 100_000, 1_000_000, 10_000_000)
"""Sizes m of the batches whose rate is predicted."""

ONLINE_QUERIES = 1024
"""Queries of a call, online."""

SAMPLE_ROWS = 128


def disk_s(machine: Machine, n: int, b: int) -> float:
    """Seconds to read the file of n rows, n b / (8 D). [PSM] (16)."""
    return n * b / (8 * machine.disk_bytes_s)


def bphs_batch_s(machine: Machine, tables: int, m: int, n: int, latency_ns: float) -> float:
    """Seconds of the processor for a batch: T m (delta P + log2 m) + n tau(log m). [PSM] (17).

    T tables are built of the batch, and every stored row looked up in them, in `latency_ns` =
    tau(log m). The paper's log2 m is taken as delta S log2 m: its unit is else no time.
    """
    built = tables * m * (machine.delta_p_ns + machine.delta_s_ns * log2(m))
    return (built + n * latency_ns) * 1e-9


def rate(m: int, disk_seconds: float, cpu_seconds: float) -> float:
    """Queries a second, reading and computing at the same time: m / max(...). [PSM] (18)."""
    return m / max(disk_seconds, cpu_seconds)


def psm_batch_s(machine: Machine, k: int, m: int, n: int, latency_ns: float) -> float:
    """m delta V log2 k + n tau'(log m) + m delta S log2 m, in seconds. [PSM] (23).

    The file is read in chunks of m rows, in each of which every query is looked up in `latency_ns`
    = tau'(log m).
    """
    made = m * machine.delta_v_ns * (log2(k) if k > 1 else 0.0)
    return (made + n * latency_ns + m * machine.delta_s_ns * log2(m)) * 1e-9


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
class Sizes:
    """Of an index that there may be, and what is asked of it."""

    rows: int
    h: int
    recall: float
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


def probed(asked: Sizes) -> Iterator[Forecast]:
    """Forecasts of PSM: at the recall asked for, and exact."""
    expected = _expected(asked.bits, asked.h)
    for share in sorted({asked.recall, 1.0}):
        by_width = [
            _probed_under(asked, share, width, expected)
            for width in narrower(header_bits(asked.segment_rows))
        ]
        fitting = [one for one in by_width if one.fits]
        yield (
            max(fitting, key=lambda one: one.queries_s) if fitting
            else min(by_width, key=lambda one: one.memory_bytes)
        )


def _probed_under(asked: Sizes, recall: float, width: int, expected: Calibration) -> Forecast:
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
            swept=reaches(
                ONLINE_QUERIES,
                psm.pass_from(asked.segment_rows, words, width, flips, exact=exact),
            ),
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


def permuted(asked: Sizes) -> Iterator[Forecast]:
    """Forecasts of the block designs that are exact."""
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
                swept=reaches(
                    ONLINE_QUERIES,
                    bphs.sweep_queries(asked.segment_rows, asked.words, looked_up),
                ),
            ),
            asked.batches(cpu_s), widths,
        )


def _directories(design: BlockDesign, rows: int) -> tuple[int, ...]:
    """Widths of the directories that a design's tables get; table 0's knows no design."""
    widest = header_bits(rows)
    return (widest, *(min(widest, width) for width in design.header_bits[1:]))


def scanned(asked: Sizes) -> Iterator[Forecast]:
    """The forecast of a scan."""
    query_ns = scanning_ns(asked.machine, asked.rows, asked.words, ONLINE_QUERIES, asked.h)
    batches = asked.batches({m: m * query_ns * 1e-9 for m in BATCHES})
    yield asked.forecast(scan.NAME, 1.0, [], 0, query_ns / asked.segments, batches, [])
