"""PSM: flips the likeliest header bits of a query and looks each result up. [PSM] sections 4-5.

The query's header, and then those k headers that a near-duplicate most likely has (in VOSH order),
are looked up in one sorted table; the rows under each are compared by exact distance. `first` is
PSMF, else PSMA. With all flip sets of at most h header bits it is exact.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, U64
from simindex.bits import vosh
from simindex.bits.volatility import STEP, Volatility
from simindex.methods.base import Found, TablePlan
from simindex.storage.tables.table import Table

NAME = "psm"
"""What a call asks for."""

SWEPT_ROWS = 1 << 20
"""Rows from which a sweep was measured faster than probes on their own: 8 MB of fingerprints."""

ROWS_PER_PROBE = 32
"""A sweep reads all rows once; it was measured faster with a probe for so many rows or fewer."""

SWEPT_FLIPS = 64
"""A sweep takes its flip sets from networks, which exist for small numbers of them."""

MAX_HEADER_BITS = 32
"""And of headers no wider."""

SWEPT_QUERIES = 4096
"""Fewer never bring the probes a sweep needs, so that a single query need not be asked about it."""


@lru_cache(maxsize=16)
def exhaustive_masks(header_bits: int, h: int) -> U64:
    """uint64 (1 + set_count,): the empty mask, then every flip set of at most h header bits."""
    masks = [np.zeros(1, np.uint64)]
    for size in range(1, min(h, header_bits) + 1):
        places = np.array(list(combinations(range(header_bits), size)), np.uint64)
        bits = np.uint64(1) << (np.uint64(63) - places)
        masks.append(np.bitwise_or.reduce(bits, axis=1))
    joined = np.concatenate(masks)
    joined.setflags(write=False)
    return joined


def pass_from(rows: int, words: int, plan: TablePlan) -> int | None:
    """From how many queries on the table is swept once, partition by partition; None for never.

    Figures (one thread, ns a query, k = 15 at 60 M rows and k = 10 at 10 M, probes on their own
    against a sweep): 1 M queries 680 and 330, 354 and 225; 256 k queries 605 and 470, 337 and 239;
    64 k queries 647 and 629, 369 and 269. Only 64-bit fingerprints were measured.
    """
    if words != 1 or rows < SWEPT_ROWS or not can_sweep(plan):
        return None
    return max(SWEPT_QUERIES, -(-rows // ((plan.flips + 1) * ROWS_PER_PROBE)))


def can_sweep(plan: TablePlan) -> bool:
    """Whether the plan's flip sets can be partitioned: they come from networks."""
    return (
        plan.method == NAME and not plan.exact and 0 < plan.flips <= SWEPT_FLIPS
        and 0 < plan.header_bits <= MAX_HEADER_BITS
    )


def search(
    table: Table,
    queries: U64,
    weights: F32 | None,
    plan: TablePlan,
    volatility: Volatility | None,
    *,
    h: int,
    first: bool,
) -> Found:
    """Rows of a table within h of each query, under the headers the plan reaches.

    Parameters
    ----------
    queries : uint64 (m, W)
    weights : float32 (m, b) or None
        Needed unless the plan is exact.
    """
    if plan.exact or weights is None or volatility is None:
        masks = exhaustive_masks(plan.header_bits, h)
        return Found(
            *_native.probe_checked(table.checked, plan.header_bits, queries, masks, h, first)
        )
    order = checked_order(volatility, weights.shape[1], plan.header_bits, h, plan.flips)
    return Found._make(_native.psm_checked(table.checked, order, queries, weights, first))


@lru_cache(maxsize=256)
def checked_order(
    volatility: Volatility, bits: int, header_bits: int, h: int, flips: int
) -> _native.CheckedVosh:
    """What the kernel needs to make the first `flips` flip sets of queries of `bits` weights."""
    order = vosh.plan(header_bits, h, flips)
    return _native.CheckedVosh(
        volatility.costs, STEP, bits, header_bits, h, flips, order.candidates, order.sort_network,
        order.select_network,
    )
