"""What several segments cost: a search of them, compared with one of the same rows in one segment.

    sizes and structures of the segments  ->  their plans  ->  time of one query, of a large call
    the live rows, in one segment         ->  its plan     ->  the same

From sizes alone, by the planner that plans real calls: no row is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simindex.bits.design import BlockDesign
from simindex.planning.costs import CALL_NS, SEGMENT_NS
from simindex.planning.forecast import Imagined
from simindex.planning.machine import Machine
from simindex.planning.question import Question
from simindex.records.reports import Compaction
from simindex.storage.tables.record import MAX_ROWS
from simindex.storage.tables.table import Table

CALL_QUERIES = 100_000
"""Of a call whose rate is told."""


def compaction(
    tables: Sequence[Table], rows: int, question: Question, *, designs: Sequence[BlockDesign],
    machine: Machine,
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

    Returns
    -------
    Compaction or None
        None where a compaction would leave as many segments, or segments have slice lists, whose
        cost does not follow from their sizes.
    """
    least = max(1, -(-rows // MAX_ROWS))
    if len(tables) <= least or any(table.slices is not None for table in tables):
        return None
    bits = 64 * tables[0].fingerprints.shape[1]

    def imagined(size: int, found: Iterable[BlockDesign]) -> Imagined:
        return Imagined(size, bits, tuple(one for one in found if question.h <= one.exact_for))

    now = [
        imagined(len(table), (one.design for one in table.structures.values()))
        for table in tables if len(table)
    ]
    then = [imagined(-(-rows // least), designs)] * least if rows else []

    def call_ns(segments: Sequence[Imagined], queries: int) -> float:
        planned = 1 << queries.bit_length() >> 1  # as a call is
        query_ns = {
            one: one.plan(question, planned, machine, None).nanoseconds for one in set(segments)
        }
        return CALL_NS + sum(SEGMENT_NS + queries * query_ns[one] for one in segments)

    # A plan takes its table to be alone in the caches, so small ones may seem cheaper than one.
    return Compaction(
        len(tables), least, max(1.0, call_ns(now, 1) / call_ns(then, 1)),
        min(1.0, call_ns(then, CALL_QUERIES) / call_ns(now, CALL_QUERIES)),
    )
