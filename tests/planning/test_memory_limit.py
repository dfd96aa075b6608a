"""What is left for matches of a call that may take so much memory."""

from __future__ import annotations

from typing import Any

import pytest
from sized_rows import Rows

from simindex.errors import InvalidOption
from simindex.planning import memory_limit, planner
from simindex.planning.machine import USUAL
from simindex.planning.question import Question


def within(
    limit: int, *, queries: int = 100_000, first: bool = False, taken: int = 0,
    method: str = "auto",
) -> Any:
    table: Any = Rows(10**7)
    asked = Question(h=3, memory_limit=limit, first=first, method=method)
    usual = planner.plan([table], memory_limit.without_limit(asked), queries=queries)
    return memory_limit.plan_within(
        [table], usual, asked, queries=queries, threads=1, machine=USUAL, match_bytes=80,
        taken=taken,
    )


def least(**options: Any) -> int:
    with pytest.raises(InvalidOption, match="which need at least") as caught:
        within(1 << 20, **options)
    return int(caught.value.data["expected"])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("taken", [0, 5_000_000])
def test_matches_have_a_part_of_every_limit(first: bool, taken: int) -> None:
    """What is left for them is in the plan, and no plan leaves less than the least."""
    smallest = least(first=first, taken=taken)
    room = memory_limit.HEADROOM_BYTES
    if first:
        room = max(room, memory_limit.FIRST_EACH * 100_000 * 80)
    assert within(smallest, first=first, taken=taken).room_bytes == room
    with pytest.raises(InvalidOption):
        within(smallest - 1, first=first, taken=taken)
    for times in (1.4, 2, 4, 100):
        limit = round(times * smallest)
        found = within(limit, first=first, taken=taken)
        assert room <= found.room_bytes < limit - taken
        if not first:
            assert found.room_bytes >= (limit - taken) // memory_limit.MATCH_SHARE


def test_a_call_for_first_matches_needs_room_for_its_queries() -> None:
    assert least(first=True) - least() == memory_limit.FIRST_EACH * 100_000 * 80 - (4 << 20)
    assert least(first=True, queries=1000) == least(queries=1000)
    assert least(taken=1000) == least() + 1000


def test_a_scan_is_advised_where_it_is_none_and_takes_less() -> None:
    with pytest.raises(InvalidOption) as caught:
        within(1 << 20)
    assert 'method="scan"' in caught.value.remedy
    with pytest.raises(InvalidOption) as caught:
        within(1 << 20, method="scan")
    assert "scan" not in caught.value.remedy


def test_a_small_limit_takes_a_pass_of_small_chunks() -> None:
    """Rather than many scans, for few queries each: those took 25 times as long."""
    for first in (False, True):
        smallest = within(least(first=first, queries=50_000), first=first, queries=50_000)
        assert smallest.tables[0].design, "tables over the queries"
        assert smallest.stream is not None
        assert smallest.stream.resident_bytes(1) < 1 << 20
        roomy = within(1 << 30, first=first, queries=50_000)
        assert roomy.stream is not None
        assert roomy.stream.resident_bytes(1) > 32 << 20, "reads ahead where there is memory"
