"""How each table is searched for the nearest documents: compared whole, or by its slice lists.

    table        scan, or issl if it has lists                   the cheaper, by the model
    promise      exact, or what is looked at and what was measured of it

A search by slice lists is approximate, and its recall is not known beforehand: a plan with a fixed
max_error says so, and one with a recall to reach was measured on rows of the index
(`query.top_recall`). Planning itself reads no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from simindex.errors import InvalidOption
from simindex.methods import issl
from simindex.planning.costs import issl_ns, top_scanning_ns
from simindex.planning.machine import Machine
from simindex.planning.planner import Counted
from simindex.planning.top_question import TopQuestion
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class TopTablePlan:
    """How one table is searched."""

    method: str
    """`"scan"` or `"issl"`."""
    exact: bool
    nanoseconds: float
    """Expected time of one query, by the model."""
    rerank: int = 0
    """Rows compared of a query, at most, where slice lists are searched."""
    max_error: int = 0
    """Bits in which a slice may differ from the query's there."""
    lists: float = 0.0
    """Slice lists that a query looks into, as counted."""
    compared: float = 0.0
    """Rows that a query is compared with."""
    scored: float = 0.0
    """Rows in these lists together."""
    other: str | None = None
    """The other way that was open, if one was."""
    other_nanoseconds: float = 0.0


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


def check_lists(snapshot: Snapshot) -> None:
    """Refuses an index whose segments are not all listed with InvalidOption."""
    without = [segment.name for segment in snapshot.segments if segment.slices is None]
    if not without and (snapshot.segments or snapshot.slices is not None):
        return
    found = "the index has none"
    if 0 < len(without) < len(snapshot.segments):
        found = f"{len(without)} of {len(snapshot.segments)} segments have none"
    raise InvalidOption(
        f'method="issl" needs slice lists, and {found}: add "issl" to the structures with '
        '`simindex compact --structures` or Index.compact(structures=...), or use method="auto"',
        option="method", found="issl", segments=tuple(without),
    )


def plan(
    tables: Sequence[Table],
    question: TopQuestion,
    *,
    max_error: int,
    rerank: int | None,
    queries: int,
    machine: Machine,
    lists: Sequence[Counted | None] | None = None,
    measured: Measured | None = None,
) -> TopPlan:
    """A plan for each table, with a max_error that is known by now.

    `lists` is what was counted of each table's slice lists at this max_error.
    """
    plans = [
        _plan_table(
            table, question, None if lists is None else lists[number], max_error=max_error,
            rerank=rerank, queries=queries, machine=machine,
        )
        for number, table in enumerate(tables)
    ]
    compared = max((one.rerank for one in plans), default=0)
    methods = "+".join(sorted({one.method for one in plans})) or "none"
    listed = any(one.method == "issl" for one in plans)
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
    question = TopQuestion(1, 0, None, "scan", None)
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
    table: Table, question: TopQuestion, counted: Counted | None, *, max_error: int,
    rerank: int | None, queries: int, machine: Machine,
) -> TopTablePlan:
    rows, words = table.fingerprints.shape
    scan_ns = top_scanning_ns(machine, rows, words, queries)
    scan = TopTablePlan("scan", True, scan_ns, compared=rows)
    slices = table.slices
    if question.method == "scan" or slices is None or counted is None or rows == 0:
        return scan
    if rerank is None:
        rerank = issl.default_rerank(
            rows, question.k, max_error, width=slices.width, slices=slices.slices
        )
    rerank = min(rerank, rows)
    lists, scored = counted
    cost = issl_ns(machine, rows, words, lists, scored, rerank)
    if question.method == "auto" and scan_ns <= cost:
        return replace(scan, other="issl", other_nanoseconds=cost)
    return TopTablePlan(
        "issl", rerank >= rows, cost, rerank, max_error, lists, rerank, scored, "scan", scan_ns
    )
