"""What a search costs, in nanoseconds a query on one thread, and so which search to choose.

    PSM    (k + 1) (PROBE + rows / 2^t * ROW) + VOSH of k          as [PSM] (19), lookups prefetched
    BPHS   sum over tables of p (PROBE + rows / 2^t * ROW) + PERMUTED     p probes of a table
    scan   rows * SCANNED

The constants are fits to measurements of the kernels at 10 M rows (docs/performance.md names the
machine): 184, 240 and 302 ns for k = 7, 10, 14 with 9.5 rows under a header, 347 and 540 ns for
k = 10 with 19 and 38 rows. Only their ratios matter, and they change little between machines.
"""

from __future__ import annotations

from collections.abc import Sequence

from simindex.simhash.vosh import MAX_NETWORKED_FLIPS

PROBE_NS = 8.0
"""One random header and the first of its rows, many in flight: [PSM]'s delta R."""

ROW_NS = 0.95
"""One more row under a header, delta L: an eighth of a cache line from memory."""

SCANNED_NS = 0.1
"""One row of a scan, when many queries share its slab."""

SCANNED_ALONE_NS = 0.43
"""One row of a scan for a single query: memory bandwidth."""

QUERY_NS = 30.0
"""Reading a query's weights and sorting its header bits."""

FLIP_NS = 3.0
"""One flip set in VOSH order, delta V, by sorting networks."""

FLIP_HEAP_NS = 70.0
"""One flip set in VOSH order by heap, for many flips."""

PERMUTED_NS = 5.0
"""Permuting a query for one table."""


def probing_ns(rows: int, header_bits: int, flips: int, *, ordered: bool) -> float:
    """Time of one query that looks under `flips` + 1 headers; `ordered` adds making the VOSH."""
    bucket = rows / (1 << header_bits)
    vosh = 0.0
    if ordered:
        networked = flips <= MAX_NETWORKED_FLIPS
        vosh = QUERY_NS + flips * (FLIP_NS if networked else FLIP_HEAP_NS)
    return (flips + 1) * (PROBE_NS + bucket * ROW_NS) + vosh


def permuted_ns(rows: int, tables: Sequence[tuple[int, int]]) -> float:
    """Time of one query that makes (probes, header bits) in each of a design's tables."""
    return sum(
        probes * (PROBE_NS + rows / (1 << header_bits) * ROW_NS) + PERMUTED_NS
        for probes, header_bits in tables
    )


def scanning_ns(rows: int, words: int, queries: int) -> float:
    """Time of one query that is compared with every row."""
    return rows * words * (SCANNED_NS if queries >= 16 else SCANNED_ALONE_NS)
