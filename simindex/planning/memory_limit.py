"""Plans of a call that may take so much memory: the cheapest ways that read past the tables.

A plan needs memory for its structures over the queries, a header directory, and the rows of a chunk
with what is read ahead of it. Matches get the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simindex.errors import InvalidOption
from simindex.methods.base import QueryPlan, TablePlan
from simindex.methods.stream import Stream
from simindex.planning import registry
from simindex.planning.conditions import Conditions
from simindex.planning.machine import Machine
from simindex.planning.question import Question
from simindex.storage.tables.table import Table

MOST_TIMES = 8.0
"""A plan that fits a limit is taken if it is expected to take this many times what the best one
takes."""

HEADROOM_BYTES = 4 << 20
"""Of a call within a limit, for what it finds in a chunk and for the interpreter's own: the least
that is left for matches."""

MATCH_SHARE = 4
"""One part in so many of a limit is left for matches, if a plan fits into the rest."""

FIRST_EACH = 2
"""Matches of a query that a call for the first ones has room for, one of them in the answer."""


def without_limit(question: Question) -> Question:
    """The question whose plans `plan_within` begins with.

    They matter where something is found by likely flips. Where no method asked for does that, they
    are those that need nothing but the rows.
    """
    usual = replace(question, memory=None, memory_limit=None)
    if any(row.lossy for row in registry.asked(question.method)):
        return usual
    return replace(usual, method=registry.ANY_TABLE.name, recall=1.0)


def plan_within(
    tables: Sequence[Table],
    plans: QueryPlan,
    question: Question,
    *,
    queries: int,
    threads: int,
    machine: Machine,
    match_bytes: int,
    taken: int = 0,
) -> QueryPlan:
    """The cheapest plans that hold `question.memory_limit` at most; they say how tables are read.

    `QueryPlan.room_bytes` is left for matches: a part in MATCH_SHARE of the limit, or less if no
    plan leaves so much. With `first` it is what the answer takes, FIRST_EACH matches of
    `match_bytes` a query. The caller has `taken` bytes of the limit for what it holds. One thread
    searches where more need too much.

    Parameters
    ----------
    plans : QueryPlan
        Those of the question `without_limit`. What they do by likely flips is done by the same
        ones: a limit changes no answer, except for which of several matches `first` takes.

    Raises
    ------
    InvalidOption
        If too little is allowed for a plan that is not MOST_TIMES slower than the best; says the
        least that works, and what a scan would take.
    """
    assert question.memory_limit is not None
    limit_bytes = question.memory_limit - taken
    asked = Conditions(question.h, queries, question.method, question.first, machine=machine)
    least_room = HEADROOM_BYTES
    if question.first:
        least_room = max(least_room, FIRST_EACH * queries * match_bytes)
    usual_room = max(least_room, 0 if question.first else limit_bytes // MATCH_SHARE)
    ways = [
        (Stream(chunk_bytes, window_bytes, release=True, threads=workers), room_bytes)
        for workers in sorted({threads, 1}, reverse=True)
        for chunk_bytes, window_bytes, room_bytes in (
            (8 << 20, 32 << 20, usual_room), (1 << 20, 2 << 20, usual_room),
            (1 << 20, 2 << 20, least_room), (1 << 18, 0, least_room),
        )
    ]
    least = scanned = 0
    for stream, room_bytes in ways:
        chosen, least = [], 0
        for table, plan in zip(tables, plans.tables, strict=True):
            passes = _passes(table, plan, asked, stream)
            scanned = taken + least_room + stream.resident_bytes(table.fingerprints.shape[1])
            best = min(plan.nanoseconds for plan, _ in passes)
            fair = [one for one in passes if one[0].nanoseconds <= MOST_TIMES * best]
            fitting = [one for one in fair if one[1] + room_bytes <= limit_bytes]
            least = max(
                least, taken + least_room + min(bytes_needed for _, bytes_needed in fair)
            )
            if fitting:
                chosen.append(min(fitting, key=lambda one: one[0].nanoseconds))
        if len(chosen) == len(tables):
            planned = QueryPlan.of(
                [plan for plan, _ in chosen], plans.guarantee, plans.volatility, stream=stream
            )
            needed = max((bytes_needed for _, bytes_needed in chosen), default=0)
            return replace(planned, room_bytes=limit_bytes - needed)
    remedy = "give that, or ask fewer queries at a time"
    if question.method != "scan" and scanned < least:
        remedy += f', or compare them with every row, method="scan", which takes {scanned}'
    raise InvalidOption(
        f"memory_limit={question.memory_limit} is too little for {queries:,} queries in a call, "
        f"which need at least {least}",
        remedy=remedy, option="memory_limit", found=question.memory_limit, expected=least,
    )


def _passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> list[tuple[TablePlan, int]]:
    """Plans that read a table in chunks, and the bytes that each needs."""
    # What is done by likely flips is done by the same ones, whatever else would be cheaper.
    lossy = () if usual.exact else (registry.of(usual.method),)
    for methods in (lossy, registry.asked(asked.method), (registry.ANY_TABLE,)):
        found = [
            one for row in methods if row.passes is not None
            for one in row.passes(table, usual, asked, stream)
        ]
        if found:
            break
    return found
