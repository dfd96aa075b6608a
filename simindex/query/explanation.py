"""What the plan of a call predicts, segment by segment, compared with what running it takes.

    plan        of a search within h: method, t, k, probes, rows compared and time, from sizes alone
    top plan    of a search for the nearest: method, lists, rows scored and compared, and time
    run         what was expected, counted, and the least time of some repetitions
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from simindex.arrays import F32, U64
from simindex.methods.base import Asked, QueryPlan, TablePlan, TopTablePlan, live
from simindex.planning import registry
from simindex.planning.costs import CALL_NS, SEGMENT_NS
from simindex.planning.planner import TopPlan
from simindex.planning.question import Question, TopQuestion
from simindex.query.search import search_by
from simindex.query.sketch_filter import promised
from simindex.records.reports import Compaction
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table
from simindex.values import dataclass

REPEATED = 3

Searched = TypeVar("Searched")


@dataclass(frozen=True, slots=True)
class SegmentExplanation:
    """How one segment, or pending run, is searched; counts and times are a query's, on average."""

    name: str
    rows: int
    method: str
    exact: bool
    header_bits: tuple[int, ...]
    """The width t that is looked up in each table. Empty for a scan and for slice lists."""
    flips: int
    """k: how many sets of flipped bits are looked up, the largest number of all tables."""
    expected_probes: float
    """Predicted look-ups of headers."""
    expected_rows: float
    """Predicted rows to compare, for a query like the stored rows."""
    expected_s: float
    """Predicted time, without the call around it."""
    probes: float
    """Measured look-ups of headers."""
    rows_compared: float
    """Measured rows compared."""
    seconds: float
    """The shortest of three repetitions of the search in this segment."""
    matches: float
    """Rows found. Deleted rows do not count, and repeated ids count repeatedly."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How `Index.query` answers a call, and why. `Index.explain` returns it."""

    queries: int
    """Number of queries."""
    h: int
    """The radius; the one for candidates, if a similarity was asked for."""
    recall: float
    method: str
    """The requested method."""
    guarantee: str
    """The guarantee of the answer, as in `QueryStats`."""
    exact: bool
    """Whether the answer is exact."""
    measured: bool
    """Whether the constants of this machine were measured (`tune`). If not, they are those of
    another machine."""
    expected_s: float
    """Predicted time of the whole call."""
    segments: tuple[SegmentExplanation, ...]
    """One entry for each segment and pending run."""
    flips_from: str | None = None
    """The basis of the number of flips, also if an exact plan is cheaper. None if it is not needed:
    the recall is 1, or the query has no weights."""
    compaction: Compaction | None = None
    """What `compact(full=True)` would bring exact queries within `h`, see `IndexStats`."""


def explain(
    snapshot: Snapshot,
    plan: QueryPlan,
    queries: U64,
    weights: F32 | None,
    question: Question,
    *,
    measured: bool,
    compaction: Compaction | None,
) -> Explanation:
    """Runs a plan on every table, one after the other, on one thread."""
    asked = Asked(queries, question.h, False, weights, plan.volatility)
    segments = tuple(
        _explain_table(snapshot, table, table_plan, asked)
        for table, table_plan in zip(snapshot.tables, plan.tables, strict=True)
    )
    expected_s = CALL_NS * 1e-9 + len(queries) * sum(one.expected_s for one in segments)
    guarantee, exact = promised(plan, question.similar)
    return Explanation(
        len(queries), question.h, question.recall, question.method, guarantee, exact, measured,
        expected_s, segments, plan.flips_from, compaction,
    )


@dataclass(frozen=True, slots=True)
class TopSegmentExplanation:
    """How one segment, or pending run, is searched; counts and times are a query's, on average."""

    name: str
    rows: int
    method: str
    exact: bool
    expected_s: float
    """Predicted time, without the call around it."""
    other: str | None
    """The other possible method. None if there was no choice."""
    other_s: float | None
    """Predicted time of the other method."""
    expected_lists: float
    """Predicted slice lists to read."""
    expected_scored: float
    """Predicted entries of these lists."""
    expected_rows: float
    """Predicted rows to compare."""
    lists: float
    """Measured slice lists read."""
    rows_compared: float
    """Measured rows compared."""
    seconds: float
    """The shortest of three repetitions of the search in this segment."""


@dataclass(frozen=True, slots=True)
class TopExplanation:
    """How `Index.top` answers a call, and why. `Index.explain_top` returns it."""

    queries: int
    """Number of queries."""
    k: int
    method: str
    """The requested method."""
    guarantee: str
    """The guarantee of the answer, as in `TopStats`."""
    exact: bool
    """Whether the answer is exact."""
    recall: float | None
    """The measured recall, see `TopStats.recall`."""
    max_error: int | None
    rerank: int | None
    measured: bool
    """Whether the constants of this machine were measured (`tune`). If not, they are those of
    another machine."""
    expected_s: float
    """Predicted time of the whole call."""
    segments: tuple[TopSegmentExplanation, ...]
    """One entry for each segment and pending run."""


def explain_top(
    snapshot: Snapshot, plan: TopPlan, question: TopQuestion, queries: U64, *, measured: bool
) -> TopExplanation:
    """Runs a plan for the nearest documents on every table, one after the other, on one thread."""
    segments = tuple(
        _explain_top_table(snapshot, table, one, question.k, queries)
        for table, one in zip(snapshot.tables, plan.tables, strict=True)
    )
    expected_s = CALL_NS * 1e-9 + len(queries) * sum(one.expected_s for one in segments)
    return TopExplanation(
        len(queries), question.k, question.method, plan.guarantee, plan.exact, plan.recall,
        plan.max_error, plan.rerank, measured, expected_s, segments,
    )


def _explain_top_table(
    snapshot: Snapshot, table: Table, one: TopTablePlan, k: int, queries: U64
) -> TopSegmentExplanation:
    rows, dead, method = len(table), snapshot.dead(table), registry.top_of(one.method)
    found, seconds = _timed(lambda: method.search(table, one, queries, min(k, rows), dead, 1))
    share = 1 / max(1, len(queries))
    call_s = SEGMENT_NS * share * 1e-9
    return TopSegmentExplanation(
        table.name, rows, one.method, one.exact, one.nanoseconds * 1e-9 + call_s, one.other,
        None if one.other is None else one.other_nanoseconds * 1e-9 + call_s, one.lists,
        one.scored, one.compared, found.lists * share, found.compared * share,
        seconds * share,
    )


def _explain_table(
    snapshot: Snapshot, table: Table, plan: TablePlan, asked: Asked
) -> SegmentExplanation:
    found, seconds = _timed(lambda: search_by(table, plan, asked))
    if snapshot.tombstones.concerns(table):
        found = live(table, found, snapshot.tombstones)
    share = 1 / max(1, len(asked.queries))
    return SegmentExplanation(
        table.name, len(table), plan.method, plan.exact, plan.widths, plan.flips, plan.probes,
        plan.compared, (plan.nanoseconds + SEGMENT_NS * share) * 1e-9,
        found.probes * share, found.compared * share, seconds * share,
        len(found.query) * share,
    )


def _timed(search: Callable[[], Searched]) -> tuple[Searched, float]:
    """What a search finds, and the least time of some repetitions."""
    times = []
    for _ in range(REPEATED):
        start = time.perf_counter()
        found = search()
        times.append(time.perf_counter() - start)
    return found, min(times)
