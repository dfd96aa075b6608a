"""What a kernel needs to tell whether any row of a snapshot is within h of one query.

It is made of a plan once, and used for many queries, which come one at a time. They have no plan to
follow and no columns of matches to make. A query that is near a row is then searched for once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simindex._kernels import _native
from simindex.planning import registry

if TYPE_CHECKING:
    from simindex.methods.base import QueryPlan
    from simindex.planning.question import Question
    from simindex.storage.snapshot import Snapshot


def passages(snapshot: Snapshot, plan: QueryPlan, question: Question) -> _native.Passages | None:
    """The ways of a plan for one query; deleted rows are met on them, too.

    None where the plan is not exact, or a table has no such way. Raises CorruptFile where what a
    plan looks into cannot be opened.
    """
    if not plan.exact or not question.stops_early or plan.stream is not None:
        return None
    found = _native.Passages(snapshot.options.words, question.h)
    for table, table_plan in zip(snapshot.tables, plan.tables, strict=True):
        method = registry.of(table_plan.method)
        if method.passage is None or (method.whole is not None and table_plan.takes_a_pass(1)):
            return None
        if len(table) and not method.passage(table, table_plan, question.h, found):
            return None
    return found
