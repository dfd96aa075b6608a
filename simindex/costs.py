"""What a search takes with the engine's own kernels, in nanoseconds a query on one thread.

    PSM     QUERY + k FLIP + (k + 1) look-up                  as [PSM] (19)
    BPHS    sum over tables of PERMUTED + p look-up           as [PSM] (9), p probes of a table
    scan    rows * SCANNED                                   and ANSWERED of them all
    look-up     PROBE(bytes) + rows / 2^t * ROW(bytes)
    if swept    SCATTERED + look-up in cache, and rows * STREAMED / queries

Where this leaves the papers' form (`model`): look-ups go by header directory, not by search; many
are in flight at once, so that one costs what the memory can deliver, not how long it takes to
answer, and that depends on where the table fits (`Machine.levels`, interpolated); a row is an
eighth of a compare; and a large batch over a large table is swept. The constants are a `Machine`'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import log2

from simindex.methods import psm
from simindex.methods.base import TablePlan
from simindex.methods.bphs import sweep_probes
from simindex.model import Machine
from simindex.simhash.vosh import MAX_NETWORKED_FLIPS

CALL_NS = 5_000.0
"""A call, whatever it asks: looking for new commits, planning, making the matches."""

SEGMENT_NS = 4_000.0
"""And each segment in it: a kernel is called, and hands its arrays over."""

ANSWERED_NS = 30.0
"""Putting a query's matches in order, where about every other query has one."""

SHARED_QUERIES = 16
"""From so many queries in a call on, a slab of a scan serves many."""


def look_up_ns(machine: Machine, table_bytes: float) -> tuple[float, float]:
    """(ns of a probe, ns of one row under its header) in a table of so many bytes."""
    levels = machine.levels
    at = bisect_left([level[0] for level in levels], table_bytes)
    if at == 0:
        return levels[0][1:]
    if at == len(levels):
        return levels[-1][1:]
    (low, probe, row), (high, probe_above, row_above) = levels[at - 1], levels[at]
    share = log2(table_bytes / low) / log2(high / low)
    return probe + share * (probe_above - probe), row + share * (row_above - row)


def table_bytes(rows: int, words: int, directory_bits: int) -> int:
    """Memory of a table and its header directory."""
    return 8 * words * rows + (4 << directory_bits)


def probing_ns(
    machine: Machine,
    rows: int,
    header_bits: int,
    flips: int,
    *,
    ordered: bool,
    words: int = 1,
    queries: int = 1,
) -> float:
    """Time of one query that looks under `flips` + 1 headers; `ordered` adds making the VOSH."""
    vosh = 0.0
    if ordered:
        networked = flips <= MAX_NETWORKED_FLIPS
        vosh = machine.query_ns + flips * (machine.flip_ns if networked else machine.flip_heap_ns)
    plan = TablePlan("psm", header_bits, flips, not ordered, 0.0)
    swept = queries >= psm.SWEPT_QUERIES and psm.is_swept(rows, words, plan, queries, False)
    return ANSWERED_NS + vosh + _looked_up_ns(
        machine, rows, words, header_bits, flips + 1, swept, queries
    )


def permuted_ns(
    machine: Machine,
    rows: int,
    tables: Sequence[tuple[int, int]],
    *,
    words: int = 1,
    queries: int = 1,
) -> float:
    """Time of one query that makes (probes, header bits) in each of a design's tables."""
    enough = sweep_probes(rows, words, False)
    return ANSWERED_NS + sum(
        machine.table_ns + _looked_up_ns(
            machine, rows, words, header_bits, probes,
            bool(enough) and queries * probes >= enough, queries,
        )
        for probes, header_bits in tables
    )


def _looked_up_ns(
    machine: Machine,
    rows: int,
    words: int,
    header_bits: int,
    probes: int,
    swept: bool,
    queries: int,
) -> float:
    bucket = rows / (1 << header_bits)
    probe, row = look_up_ns(machine, table_bytes(rows, words, header_bits))
    alone = probes * (probe + bucket * row * words)
    if not swept:
        return alone
    probe, row = machine.levels[0][1:]
    return probes * (machine.scattered_ns + probe + bucket * row) + (
        rows * machine.streamed_ns / queries
    )


def scanning_ns(machine: Machine, rows: int, words: int, queries: int) -> float:
    """Time of one query that is compared with every row."""
    row = machine.scanned_ns
    if queries < SHARED_QUERIES:
        # A query alone waits for memory, unless the table is near the processor.
        _, from_level = look_up_ns(machine, 8 * words * rows)
        row = max(row, min(machine.scanned_alone_ns, from_level))
    return ANSWERED_NS + rows * words * row
