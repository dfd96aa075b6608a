"""Chooses how each table is searched: the cheapest way that keeps the promise.

    a question            any way of the methods asked for          exact, or an expected recall
    the nearest           compared whole, or by slice lists         exact, or what is looked at

A plan is data: making one reads no row and runs no search. What was measured before (how bits flip,
what a method's `survey` found, what a step takes on this machine, which `max_error` reaches a
recall) is given. `limited` plans calls that may take so much memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simindex.errors import InvalidOption
from simindex.methods.base import QueryPlan, TablePlan, TopTablePlan
from simindex.planning import registry
from simindex.planning.conditions import Conditions, TopConditions
from simindex.planning.machine import USUAL, Machine
from simindex.planning.question import Question, TopQuestion
from simindex.planning.table_plans import exact_plan, narrower
from simindex.storage.tables.table import Table
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.bits.design import BlockDesign
    from simindex.planning.calibration import Calibration
    from simindex.planning.registry import Method, Surveys

# -- rows within h ---------------------------------------------------------------------------------


Facts = Table | tuple[int, ...]

Known = dict[Facts, TablePlan]


def within_memory(
    tables: Sequence[Table], question: Question, designs: Sequence[BlockDesign]
) -> tuple[tuple[Method, ...], list[BlockDesign]]:
    """The methods and designs whose tables and directories fit into `question.memory`.

    Raises
    ------
    InvalidOption
        If nothing fits, or not what is asked for; says the least that would do.
    """
    memory, methods = question.memory, registry.asked(question.method)
    if memory is None:
        return methods, list(designs)
    held = {d: registry.of(d.structure).held_bytes(tables, d) for d in designs}
    least = {row.name: row.held_bytes(tables, None) for row in methods}
    if question.method != "auto" and held:
        least = {methods[0].name: min(held.values())}
    if memory < min(least.values()):
        general = registry.ANY_TABLE.name in least
        raise InvalidOption(
            f"memory={memory} is too little for method={question.method!r}, which needs at least "
            f"{min(least.values())} bytes",
            remedy="give at least that" + ("" if general else ', or use method="auto"'),
            option="memory", found=memory, expected=min(least.values()),
        )
    fitting = tuple(row for row in methods if least[row.name] <= memory)
    return fitting, [design for design in designs if held[design] <= memory]


def facts_of(table: Table, found: Mapping[str, Any]) -> Facts:
    """What a plan of a table depends on: its size, or the very table where it has structures or
    surveys found something in it."""
    if table.structures or table.slices is not None:
        return table
    if any(one is not None for one in found.values()):
        return table
    return (*table.fingerprints.shape, table.header_bits)


def plan(
    tables: Sequence[Table],
    question: Question,
    *,
    queries: int,
    calibration: Calibration | None = None,
    designs: Sequence[BlockDesign] = (),
    machine: Machine = USUAL,
    methods: Sequence[Method] | None = None,
    surveys: Surveys | None = None,
) -> QueryPlan:
    """A plan for each table; `plan_tables`, then `combined`."""
    if methods is None:
        methods = registry.asked(question.method)
    plans = plan_tables(
        tables, question, queries=queries, calibration=calibration, designs=designs,
        machine=machine, methods=methods, surveys=surveys,
    )
    return combined(plans, question, calibration, methods)


def plan_tables(
    tables: Sequence[Table],
    question: Question,
    *,
    queries: int,
    calibration: Calibration | None,
    designs: Sequence[BlockDesign],
    machine: Machine,
    methods: Sequence[Method],
    surveys: Surveys | None,
    known: Known | None = None,
) -> list[TablePlan]:
    """A plan for each table, whatever the others are.

    Parameters
    ----------
    designs : sequence of BlockDesign
        Those that may be used; a table that has none of them is searched exactly without.
    calibration : Calibration, or None
        Says how many flips a recall takes; None where the queries have no weights, so that only
        exact plans remain.
    machine : Machine
        Its constants say which way is the cheapest.
    methods : sequence of Method
        Those that may be used.
    surveys : mapping, or None
        What the methods' surveys found in the tables.
    known : dict, optional
        Plans that were made before from the same arguments; the new ones are added.
    """
    flips = None
    if calibration is not None and question.recall < 1:
        flips = {
            width: calibration.flips(width, question.h, question.recall)
            for table in tables for width in narrower(table.header_bits)
        }
    asked = Conditions(
        question.h, queries, question.method, question.first, flips=flips, recall=question.recall,
        each=None if flips is None or question.similar is None else calibration,
        designs=designs, machine=machine,
    )
    known = {} if known is None else known
    plans = []
    for number, table in enumerate(tables):
        found = _found_in(number, surveys)
        facts = facts_of(table, found)
        if facts not in known:
            known[facts] = _plan_table(table, asked, methods, found)
        known[table] = known[facts]
        plans.append(known[facts])
    return plans


def combined(
    plans: Sequence[TablePlan],
    question: Question,
    calibration: Calibration | None,
    methods: Sequence[Method],
) -> QueryPlan:
    """The plan of a call, of those of all tables, with what it promises."""
    guarantee = "exact"
    if calibration is not None and not all(plan.exact for plan in plans):
        guarantee = calibration.promise(question.h, question.recall)
    elif question.recall < 1 and calibration is None and any(row.lossy for row in methods):
        guarantee = "exact, since the queries have no weights"
    if calibration is None:
        return QueryPlan.of(plans, guarantee)
    return QueryPlan.of(plans, guarantee, calibration.volatility, calibration.source)


def _found_in(number: int, surveys: Surveys | None) -> dict[str, Any]:
    """What surveys found in one of the tables, by the method's name."""
    return {name: found[number] for name, found in (surveys or {}).items()}


def _plan_table(
    table: Table, asked: Conditions, methods: Sequence[Method], found: Mapping[str, Any]
) -> TablePlan:
    candidates: list[TablePlan] = []
    for row in methods:
        given = replace(asked, found=found[row.name]) if row.name in found else asked
        candidates += row.plans(table, given)
    if not candidates:  # a table without what the method takes
        return exact_plan(table, asked)
    return min(candidates, key=lambda candidate: candidate.nanoseconds)


# -- nearest documents -----------------------------------------------------------------------------


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


def check_count(k: int, rows: int) -> None:
    """Refuses more documents than there are rows with InvalidOption."""
    if k <= rows:
        return
    raise InvalidOption(
        f"k={k} is more than the {rows:,} rows of the index",
        remedy=f"give at most {rows}" if rows else "append rows first", option="k",
        found=k, expected=rows,
    )


def plan_top(
    tables: Sequence[Table],
    question: TopQuestion,
    *,
    queries: int,
    machine: Machine,
    surveys: Surveys | None = None,
    measured: Measured | None = None,
) -> TopPlan:
    """A plan for each table, for a question whose max_error is known by now.

    A search by slice lists is approximate, and its recall is not known beforehand: a plan with a
    fixed max_error says so, and one with a recall to reach was `measured` on rows of the index.
    `surveys` is what the methods found in each table at this max_error.
    """
    assert question.max_error is not None
    asked = TopConditions(question.k, question.max_error, question.rerank, queries, machine)
    plans = [
        _plan_top_table(table, question.method, asked, _found_in(number, surveys))
        for number, table in enumerate(tables)
    ]
    compared = max((one.rerank for one in plans), default=0)
    methods = "+".join(sorted({one.method for one in plans})) or "none"
    listed = any(not registry.top_of(one.method).exact for one in plans)
    exact = all(one.exact for one in plans)
    guarantee, recall = "exact", 1.0 if exact else None
    if not exact:
        guarantee = _guarantee(question, compared, measured)
        recall = None if measured is None else measured.recall
    return TopPlan(
        tuple(plans), guarantee, methods, exact, question.max_error if listed else None,
        compared if listed else None, recall,
    )


def scan_top(tables: Sequence[Table], *, queries: int, machine: Machine) -> TopPlan:
    """All rows of all tables are compared."""
    question = TopQuestion(1, 0, None, registry.ANY_TABLE.name, None)
    return plan_top(tables, question, queries=queries, machine=machine)


def _guarantee(question: TopQuestion, rerank: int, measured: Measured | None) -> str:
    looked = f"max_error {question.max_error}, at most {rerank:,} rows of a segment compared"
    if measured is None:
        return f"recall below 1 and not measured: {looked}"
    return (
        f"recall {measured.recall:.4f} (at least {measured.low:.4f}, by 95%) of the {question.k} "
        f"nearest, measured on {measured.rows:,} rows of the index, {question.recall:g} asked: "
        f"{looked}"
    )


def _plan_top_table(
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
