"""How each table is searched for the nearest documents: compared whole, or by its slice lists.

    table        scan, or issl if it has lists                   the cheaper, by the model
    promise      exact, or what is looked at and what was measured of it

A search by slice lists is approximate, and its recall is not known beforehand: a plan with a fixed
max_error says so, and one with a recall to reach was measured on rows of the index
(`query.top_recall`). Planning itself reads no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simindex.errors import InvalidOption
from simindex.methods.base import TopTablePlan
from simindex.planning import registry
from simindex.planning.machine import Machine
from simindex.planning.method import TopConditions
from simindex.planning.planner import Surveys
from simindex.planning.top_question import TopQuestion
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class Measured:
    """What rows of the index found of their own nearest documents; see `top_recall`."""

    max_error: int
    rerank: int | None
    """Rows of a segment that are compared; None for the usual ones."""
    recall: float
    """Mean share of the true nearest documents that was found."""
    low: float
    """Of which it is certain by 95%, one-sided."""
    rows: int
    """Rows asked."""


@dataclass(frozen=True, slots=True)
class TopPlan:
    """How every table of a snapshot is searched in one call, and what that promises."""

    tables: tuple[TopTablePlan, ...]
    guarantee: str
    method: str
    exact: bool
    max_error: int | None
    """None where no table is searched by slice lists, as `rerank`."""
    rerank: int | None
    """The most of all tables."""
    recall: float | None


def check_count(k: int, snapshot: Snapshot) -> None:
    """Refuses more documents than there are rows with InvalidOption."""
    rows = snapshot.live_rows
    if k <= rows:
        return
    raise InvalidOption(
        f"k={k} is more than the index holds, {rows:,} rows"
        + (f": give at most {rows}" if rows else ": append some first"),
        option="k", found=k, expected=rows,
    )


def plan(
    tables: Sequence[Table],
    question: TopQuestion,
    *,
    max_error: int,
    rerank: int | None,
    queries: int,
    machine: Machine,
    surveys: Surveys | None = None,
    measured: Measured | None = None,
) -> TopPlan:
    """A plan for each table, with a max_error that is known by now.

    `surveys` is what the methods found in each table at this max_error.
    """
    asked = TopConditions(question.k, max_error, rerank, queries, machine)
    surveys = surveys or {}
    plans = [
        _plan_table(
            table, question.method, asked,
            {name: found[number] for name, found in surveys.items()},
        )
        for number, table in enumerate(tables)
    ]
    compared = max((one.rerank for one in plans), default=0)
    methods = "+".join(sorted({one.method for one in plans})) or "none"
    listed = any(not registry.top_of(one.method).exact for one in plans)
    exact = all(one.exact for one in plans)
    guarantee, recall = "exact", 1.0 if exact else None
    if not exact:
        guarantee = _guarantee(question, max_error, compared, measured)
        recall = None if measured is None else measured.recall
    return TopPlan(
        tuple(plans), guarantee, methods, exact, max_error if listed else None,
        compared if listed else None, recall,
    )


def scanned(tables: Sequence[Table], *, queries: int, machine: Machine) -> TopPlan:
    """All rows of all tables are compared."""
    question = TopQuestion(1, 0, None, registry.ANY_TABLE.name, None)
    return plan(tables, question, max_error=0, rerank=None, queries=queries, machine=machine)


def _guarantee(
    question: TopQuestion, max_error: int, rerank: int, measured: Measured | None
) -> str:
    looked = f"max_error {max_error}, at most {rerank:,} rows of a segment compared"
    if measured is None:
        return f"recall below 1 and not measured: {looked}"
    return (
        f"recall {measured.recall:.4f} (at least {measured.low:.4f}, by 95%) of the {question.k} "
        f"nearest, measured on {measured.rows:,} rows of the index, {question.recall:g} asked: "
        f"{looked}"
    )


def _plan_table(
    table: Table, method: str, asked: TopConditions, found: Mapping[str, Any]
) -> TopTablePlan:
    """The cheapest of those open, or what is asked for; and what the next would take."""
    open_to: dict[str, TopTablePlan] = {}
    for name, row in registry.METHODS.items():
        # What is exact answers also for tables that have not what is asked for.
        if row.top is not None and (method in ("auto", name) or row.top.exact):
            one = row.top.plan(table, replace(asked, found=found.get(name)))
            if one is not None:
                open_to[name] = one
    if method in open_to and registry.top_of(method).exact:
        return open_to[method]
    ordered = sorted(
        open_to, key=lambda name: (name != method, open_to[name].nanoseconds,
                                   not registry.top_of(name).exact)
    )
    if len(ordered) == 1:
        return open_to[ordered[0]]
    other = ordered[1]
    return replace(
        open_to[ordered[0]], other=other, other_nanoseconds=open_to[other].nanoseconds
    )
