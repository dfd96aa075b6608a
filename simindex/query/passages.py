"""What a kernel needs to tell which row of a snapshot is nearest to one query.

It is made of a plan once, and used for many queries, which come one at a time. They have no plan to
follow and no columns of matches to make. Deleted rows are found, too: `Ways.match` then leaves the
query to a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simindex._kernels import _native
from simindex.planning import registry
from simindex.records.matches import Match
from simindex.storage.files.checksums import verified

if TYPE_CHECKING:
    from simindex.methods.base import QueryPlan
    from simindex.planning.question import Question
    from simindex.storage.snapshot import Snapshot
    from simindex.storage.tables.table import Table


class Ways(NamedTuple):
    """Through the tables of a snapshot that have rows."""

    passages: _native.Passages
    tables: tuple[Table, ...]
    """In the order of the passages."""

    def match(self, snapshot: Snapshot, number: int, row: int, distance: int) -> Match | None:
        """A row of one of the tables as a match; None if it is deleted.

        Raises CorruptFile if its id or its key is damaged.
        """
        table = self.tables[number]
        ids = verified(table.ids[row : row + 1])
        tombstones = snapshot.tombstones
        if tombstones.concerns(table) and tombstones.dead(table, ids, np.array([row]))[0]:
            return None
        heap = table.keys
        key = None if heap is None else heap.one(row, snapshot.options.key_kind)
        return Match(0, int(ids[0]), key, distance)


def ways(snapshot: Snapshot, plan: QueryPlan, question: Question) -> Ways | None:
    """Those of a plan for one query.

    None where the plan is not exact, or a table has no such way. Raises CorruptFile where what a
    plan looks into cannot be opened.
    """
    if not plan.exact or not question.stops_early or plan.stream is not None:
        return None
    found, tables = _native.Passages(snapshot.options.words, question.h), []
    for table, table_plan in zip(snapshot.tables, plan.tables, strict=True):
        method = registry.of(table_plan.method)
        if method.passage is None or (method.whole is not None and table_plan.takes_a_pass(1)):
            return None
        if len(table):
            if not method.passage(table, table_plan, question.h, found):
                return None
            tables.append(table)
    return Ways(found, tuple(tables))
