"""What a search costs, in nanoseconds a query on one thread, and so which search to choose.

    PSM    (k + 1) (PROBE + rows / 2^t * ROW) + VOSH of k          as [PSM] (19), lookups prefetched
    scan   rows * SCANNED

The constants were measured with `tools/bench.py` on the machine named in docs/performance.md; only
their ratios matter, and they change little between machines of one kind.
"""

from __future__ import annotations

PROBE_NS = 11.0
"""One random header and its rows' first cache lines, many in flight: [PSM]'s delta R."""

ROW_NS = 0.55
"""One more row under a header, delta L: an eighth of a cache line's transfer and a popcount."""

SCANNED_NS = 0.09
"""One row of a scan, when many queries share its slab."""

SCANNED_ALONE_NS = 0.5
"""One row of a scan for a single query: memory bandwidth."""

FLIP_NS = 5.0
"""One flip set in VOSH order, delta V, by sorting networks."""

FLIP_HEAP_NS = 60.0
"""One flip set in VOSH order by heap, for many flips."""

NETWORK_FLIPS = 64
"""Most flips for which the networks are used."""


def probing_ns(rows: int, header_bits: int, flips: int, *, ordered: bool) -> float:
    """Time of one query that looks under `flips` + 1 headers; `ordered` adds making the VOSH."""
    bucket = rows / (1 << header_bits)
    vosh = 0.0
    if ordered:
        vosh = flips * (FLIP_NS if flips <= NETWORK_FLIPS else FLIP_HEAP_NS)
    return (flips + 1) * (PROBE_NS + bucket * ROW_NS) + vosh


def scanning_ns(rows: int, words: int, queries: int) -> float:
    """Time of one query that is compared with every row."""
    return rows * words * (SCANNED_NS if queries >= 16 else SCANNED_ALONE_NS)
