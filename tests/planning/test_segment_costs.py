"""What a compaction is predicted to bring, from sizes alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from simindex.bits.design import BlockDesign
from simindex.planning.forecast import Imagined
from simindex.planning.machine import USUAL
from simindex.planning.question import Question
from simindex.planning.segment_costs import compaction
from simindex.records.reports import Compaction
from simindex.storage.tables.record import MAX_ROWS

DESIGN = BlockDesign.parse("bphs:G=4,g=1", 64)


def found(
    sizes: Sequence[int], rows: int | None = None, *, h: int = 3,
    designs: tuple[BlockDesign, ...] = (DESIGN,),
) -> Compaction | None:
    tables = [Imagined(size, 64, designs).table for size in sizes]
    return compaction(
        tables, sum(sizes) if rows is None else rows, Question(h=h), designs=designs,
        listed=[None] * len(sizes), machine=USUAL,
    )


def told(sizes: Sequence[int], **named: object) -> Compaction:
    one = found(sizes, **named)  # type: ignore[arg-type]
    assert one is not None
    return one


def test_one_segment_has_nothing_to_gain() -> None:
    assert found([1_000_000]) is None
    assert found([]) is None
    assert found([MAX_ROWS, MAX_ROWS]) is None, "one segment cannot number so many rows"


def test_more_segments_cost_more() -> None:
    few, many = told([10_000_000] * 3), told([3_750_000] * 8)
    assert (few.segments, few.segments_after, many.segments) == (3, 1, 8)
    assert 1 < few.query_time_ratio < many.query_time_ratio
    assert 1 > few.batch_rate_ratio > many.batch_rate_ratio


def test_small_segments_cost_less_than_large_ones() -> None:
    small, large = told([10_000_000, 10_000], designs=()), told([5_000_000] * 2, designs=())
    assert 1 < small.query_time_ratio < large.query_time_ratio


def test_deleted_rows_are_not_searched_after_a_compaction() -> None:
    full, half = told([1_000_000] * 2, designs=()), told([1_000_000] * 2, rows=1, designs=())
    assert half.query_time_ratio > full.query_time_ratio
    assert told([10] * 2, rows=0).query_time_ratio > 1


@pytest.mark.parametrize("h", [3, 9, 40])
def test_tables_that_are_not_exact_for_the_radius_are_not_used(h: int) -> None:
    one = told([1_000_000] * 4, h=h)
    assert one.query_time_ratio >= 1 >= one.batch_rate_ratio
