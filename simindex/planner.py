"""Chooses how each table is searched, from sizes alone; the cheapest way that keeps the promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simindex.calibration import Calibration, exact_plan
from simindex.errors import InvalidOption
from simindex.methods import psm
from simindex.methods.base import QueryPlan, TablePlan
from simindex.model import probing_ns, scanning_ns
from simindex.storage.table import Table

METHODS = ("auto", "psm", "scan")

NARROWEST = 10
"""How many bits narrower than a table's directory a header may be chosen."""


def check(*, h: object, recall: object, method: object, bits: int) -> None:
    """Refuses options out of range with InvalidOption."""
    if isinstance(h, bool) or not isinstance(h, int) or not 0 <= h <= bits:
        raise InvalidOption(
            f"h={h!r} is not a distance: give a whole number from 0 to {bits}", option="h", found=h
        )
    if isinstance(recall, bool) or not isinstance(recall, (int, float)) or not 0 < recall <= 1:
        raise InvalidOption(
            f"recall={recall!r} is not a share: give more than 0 and at most 1",
            option="recall", found=recall,
        )
    if method not in METHODS:
        raise InvalidOption(
            f"method={method!r} is unknown: give one of {', '.join(METHODS)}",
            option="method", found=method,
        )


def plan(
    tables: Sequence[Table],
    *,
    h: int,
    recall: float,
    method: str,
    queries: int,
    calibration: Calibration | None,
) -> QueryPlan:
    """A plan for each table.

    Parameters
    ----------
    calibration : Calibration, or None
        Says how many flips a recall takes; None where the queries have no weights, so that only
        exact plans remain.
    """
    flips = None if calibration is None else calibration.flips
    plans = [
        _plan_table(table, h=h, recall=recall, method=method, queries=queries, flips=flips)
        for table in tables
    ]
    guarantee = "exact"
    if calibration is not None and not all(plan.exact for plan in plans):
        guarantee = f"expected recall >= {recall:g}, learned from {calibration.source}"
    elif recall < 1 and calibration is None and method != "scan":
        guarantee = "exact, since the queries have no weights"
    return QueryPlan.of(plans, guarantee)


def _plan_table(
    table: Table,
    *,
    h: int,
    recall: float,
    method: str,
    queries: int,
    flips: Callable[[int, int, float], int] | None,
) -> TablePlan:
    rows, words = len(table), table.fingerprints.shape[1]
    scan = TablePlan("scan", 0, 0, True, scanning_ns(rows, words, queries))
    if method == "scan":
        return scan
    candidates = [] if method == "psm" else [exact_plan(table, h=h, queries=queries)]
    narrowest = max(0, table.header_bits - NARROWEST)
    for header_bits in range(table.header_bits, narrowest - 1, -1):
        every = psm.flip_sets(header_bits, h)
        k = every if recall == 1 or flips is None else min(every, flips(header_bits, h, recall))
        exact = k == every
        cost = probing_ns(rows, header_bits, k, ordered=not exact)
        candidates.append(TablePlan("psm", header_bits, k, exact, cost))
    return min(candidates, key=lambda candidate: candidate.nanoseconds)
