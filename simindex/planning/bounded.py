"""Plans for calls that may hold so much memory: tables are read past, not held.

    psm     the probes of all queries, partitioned; queries with weights, recall below 1
    bphs    permuted tables over the queries; exact
    scan    next to nothing, and slow

What a call holds beside its queries and its matches is that, a header directory, and the rows of a
chunk with what is read ahead of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simindex.errors import InvalidOption
from simindex.methods.base import QueryPlan, TablePlan
from simindex.methods.stream import Stream
from simindex.planning import registry
from simindex.planning.machine import Machine
from simindex.planning.method import Conditions
from simindex.planning.question import Question
from simindex.storage.tables.table import Table

MOST_TIMES = 8.0
"""A plan that fits is taken if it is expected to take so many times what the best one takes."""

HEADROOM_BYTES = 4 << 20
"""Of a call, for what it finds in a chunk and for the interpreter's own."""

Candidate = tuple[TablePlan, int]
"""A plan and the bytes it needs."""


def plan_within(
    tables: Sequence[Table],
    plans: QueryPlan,
    question: Question,
    *,
    queries: int,
    threads: int,
    machine: Machine,
) -> tuple[QueryPlan, Stream]:
    """The cheapest plans that hold `question.memory_limit` at most, and how tables are read.

    Parameters
    ----------
    plans : QueryPlan
        Those of a call without a limit. What they do by likely flips is done by the same ones: a
        limit changes no answer, but for which of several matches `first` takes.

    Raises
    ------
    InvalidOption
        If too little is allowed for a plan that is not MOST_TIMES slower than the best; says the
        least that works, and what a scan would take.
    """
    limit_bytes = question.memory_limit
    assert limit_bytes is not None
    asked = Conditions(question.h, queries, method=question.method, machine=machine)
    least = scanned = 0
    for chunk_bytes, window_bytes in ((8 << 20, 32 << 20), (1 << 20, 2 << 20)):
        stream = Stream(chunk_bytes, window_bytes, release=True, threads=threads)
        chosen, least = [], 0
        for table, plan in zip(tables, plans.tables, strict=True):
            candidates = list(_candidates(table, plan, asked, stream))
            scanned = HEADROOM_BYTES + stream.resident_bytes(table.fingerprints.shape[1])
            best = min(plan.nanoseconds for plan, _ in candidates)
            fair = [one for one in candidates if one[0].nanoseconds <= MOST_TIMES * best]
            fitting = [one for one in fair if one[1] <= limit_bytes]
            least = max(least, min(bytes_needed for _, bytes_needed in fair))
            if fitting:
                chosen.append(min(fitting, key=lambda one: one[0].nanoseconds))
        if len(chosen) == len(tables):
            best_plans = [plan for plan, _ in chosen]
            return QueryPlan.of(best_plans, plans.guarantee, plans.volatility), stream
    raise InvalidOption(
        f"memory_limit={limit_bytes} is too little for {queries:,} queries in a call: the least "
        f"that works is {least}; or ask fewer queries at a time, or compare them with every row, "
        f'method="scan", which takes {scanned}',
        option="memory_limit", found=limit_bytes, expected=least,
    )


def _candidates(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[Candidate]:
    # What is done by likely flips is done by the same ones, whatever else would be cheaper.
    lossy = () if usual.exact else (registry.of(usual.method),)
    for methods in (lossy, registry.asked(asked.method), (registry.ANY_TABLE,)):
        found = [
            (plan, HEADROOM_BYTES + needed)
            for row in methods if row.passes is not None
            for plan, needed in row.passes(table, usual, asked, stream)
        ]
        if found:
            return iter(found)
    return iter(())
