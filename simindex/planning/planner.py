"""Chooses how each table is searched: the cheapest way that keeps the promise.

A plan is data: making one reads no row and runs no search. What was measured before (how bits flip,
what a method's `survey` found, what a step takes on this machine) is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.methods.base import QueryPlan, TablePlan
from simindex.planning import registry
from simindex.planning.calibration import Calibration
from simindex.planning.candidates import exact_plan
from simindex.planning.machine import USUAL, Machine
from simindex.planning.method import Conditions, Method
from simindex.planning.question import Question
from simindex.storage.tables.table import Table

Surveys = Mapping[str, Sequence[Any]]
"""What the `survey` of a method found in each table, by its name."""


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
            f"memory={memory} does not hold what method={question.method!r} needs: the least is "
            f"{min(least.values())} bytes" + ("" if general else ', or use method="auto"'),
            option="memory", found=memory, expected=min(least.values()),
        )
    fitting = tuple(row for row in methods if least[row.name] <= memory)
    return fitting, [design for design in designs if held[design] <= memory]


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
    """A plan for each table.

    Parameters
    ----------
    designs : sequence of BlockDesign
        Those that may be used; a table that has none of them is searched exactly without.
    calibration : Calibration, or None
        Says how many flips a recall takes; None where the queries have no weights, so that only
        exact plans remain.
    machine : Machine
        Its constants say which way is the cheapest.
    methods : sequence of Method, optional
        Those that may be used; by default all that the question allows.
    surveys : mapping, optional
        What the methods' surveys found in the tables.
    """
    if methods is None:
        methods = registry.asked(question.method)
    asked = Conditions(
        question.h, queries, question.recall, question.method,
        None if calibration is None else calibration.flips, designs, machine,
    )
    surveys = surveys or {}
    plans = [
        _plan_table(
            table, asked, methods, {name: found[number] for name, found in surveys.items()}
        )
        for number, table in enumerate(tables)
    ]
    guarantee = "exact"
    if calibration is not None and not all(plan.exact for plan in plans):
        guarantee = f"expected recall >= {question.recall:g}, learned from {calibration.source}"
    elif question.recall < 1 and calibration is None and any(row.lossy for row in methods):
        guarantee = "exact, since the queries have no weights"
    if calibration is None:
        return QueryPlan.of(plans, guarantee)
    return QueryPlan.of(plans, guarantee, calibration.volatility, calibration.source)


def _plan_table(
    table: Table, asked: Conditions, methods: Sequence[Method], found: Mapping[str, Any]
) -> TablePlan:
    candidates: list[TablePlan] = []
    for row in methods:
        given = replace(asked, found=found[row.name]) if row.name in found else asked
        candidates += row.plans(table, given)
    if not candidates:  # a table without what the method takes
        return exact_plan(table, h=asked.h, queries=asked.queries, machine=asked.machine)
    return min(candidates, key=lambda candidate: candidate.nanoseconds)
