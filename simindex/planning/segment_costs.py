"""What several segments cost: a search of them, compared with one of the same rows in one segment.

    sizes and structures of the segments  ->  their plans  ->  time of one query, of a large call
    the live rows, in one segment         ->  its plan     ->  the same

From sizes alone, and from how long slice lists are, by the planner that plans real calls: no row is
read. A list of one segment is as long as those of the same value in all others together.
"""

from __future__ import annotations

from collections.abc import Sequence

from simindex.bits.design import BlockDesign
from simindex.methods.issl import Counted
from simindex.planning.costs import CALL_NS, SEGMENT_NS, issl_within_ns
from simindex.planning.forecast import Imagined
from simindex.planning.machine import Machine
from simindex.planning.question import Question
from simindex.records.reports import Compaction
from simindex.storage.tables.record import MAX_ROWS
from simindex.storage.tables.table import Table
from simindex.values import dataclass

CALL_QUERIES = 100_000
"""Of a call whose rate is told."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """What decides the time of a query: a size with its tables, and slice lists if there are any.
    """

    imagined: Imagined
    listed: Counted | None = None
    slices: int = 0

    def query_ns(self, question: Question, queries: int, machine: Machine) -> float:
        """The time of one query of so many."""
        planned = 1 << queries.bit_length() >> 1  # as a call is
        usual = self.imagined.plan(question, planned, machine, None).nanoseconds
        if self.listed is None:
            return usual
        by_lists = issl_within_ns(
            machine, self.imagined.rows, *self.listed, slices=self.slices, h=question.h
        )
        return min(usual, by_lists)


def compaction(
    tables: Sequence[Table], rows: int, question: Question, *, designs: Sequence[BlockDesign],
    listed: Sequence[Counted | None], machine: Machine,
) -> Compaction | None:
    """What a full compaction would bring an exact question.

    Parameters
    ----------
    tables : sequence of Table
        Segments and pending runs as they are.
    rows : int
        Those that a compaction would leave.
    designs : sequence of BlockDesign
        Of the permuted tables that it would build.
    listed : sequence
        For each table, how many slice lists a query looks into, and rows in them; None without
        lists. Those that have lists have them alike.

    Returns
    -------
    Compaction or None
        None where a compaction would leave as many segments.
    """
    least = max(1, -(-rows // MAX_ROWS))
    if len(tables) <= least:
        return None
    bits = 64 * tables[0].fingerprints.shape[1]

    def segment(
        size: int, found: Sequence[BlockDesign], counted: Counted | None, slices: int
    ) -> _Segment:
        exact = tuple(one for one in found if question.h <= one.exact_for)
        return _Segment(Imagined(size, bits, exact), counted, slices)

    now = [
        segment(len(table), [one.design for one in table.structures.values()], counted,
                0 if table.slices is None else table.slices.slices)
        for table, counted in zip(tables, listed, strict=True) if len(table)
    ]
    size = -(-rows // least)
    sliced = [(one, one.listed) for one in now if one.listed is not None]
    together, slices = None, 0
    if sliced:
        share = size / sum(one.imagined.rows for one, _ in sliced)
        lists = max(lists for _, (lists, _) in sliced)
        together = lists, share * sum(counted for _, (_, counted) in sliced)
        slices = sliced[0][0].slices
    then = [segment(size, designs, together, slices)] * least if rows else []

    def call_ns(segments: Sequence[_Segment], queries: int) -> float:
        query_ns = {one: one.query_ns(question, queries, machine) for one in set(segments)}
        return CALL_NS + sum(SEGMENT_NS + queries * query_ns[one] for one in segments)

    # A plan takes its table to be alone in the caches, so small ones may seem cheaper than one.
    return Compaction(
        len(tables), least, max(1.0, call_ns(now, 1) / call_ns(then, 1)),
        min(1.0, call_ns(then, CALL_QUERIES) / call_ns(now, CALL_QUERIES)),
    )
