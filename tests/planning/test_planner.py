"""The plan of a table is the cheapest that keeps the promise, and an exact one where it must be."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sized_rows import Rows

from simindex.bits import vosh
from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.methods.base import QueryPlan, TablePlan, TopTablePlan
from simindex.planning import conditions, permuted_plans, planner, question, registry
from simindex.planning.question import Question
from simindex.storage.tables.sorted_rows import SortedRows, header_bits
from simindex.storage.tables.table import Table


class Learned:
    """A calibration of which only the number of flips is known."""

    source = "nothing"

    def promise(self, h: int, recall: float) -> str:
        return f"recall {recall:g} within {h}"
    volatility = None

    def __init__(self, flips: Any) -> None:
        self.flips = flips


DESIGNS = [
    BlockDesign.parse(name)
    for name in ("bphs:G=5,g=2", "bphs:nested=4x4", "bphs:G=2,g=1,r=1", "bphs:G=9,g=1")
]


def learned(flips: Any) -> Any:
    return None if flips is None else Learned(flips)


def plan(
    rows: int, *, h: int = 3, recall: float = 1.0, method: str = "auto", queries: int = 1,
    flips: Any = None, words: int = 1, designs: Sequence[BlockDesign] = (),
) -> Any:
    table: Any = Rows(rows, words, designs)
    (found,) = planner.plan(
        [table], Question(h=h, recall=recall, method=method), queries=queries,
        calibration=learned(flips), designs=designs,
    ).tables
    return found


ROWS = st.sampled_from([0, 1, 15, 16, 1000, 10**5, 10**7, 2**31])


@settings(max_examples=200)
@given(
    rows=ROWS, h=st.integers(0, 64), recall=st.sampled_from([0.5, 0.9, 1.0]),
    method=st.sampled_from(registry.names()), queries=st.sampled_from([1, 1000]),
    k=st.one_of(st.none(), st.integers(0, 5000)), words=st.sampled_from([1, 16]),
)
def test_plan_keeps_the_promise(
    rows: int, h: int, recall: float, method: str, queries: int, k: int | None, words: int
) -> None:
    flips = None if k is None else lambda bits, h, recall: k
    found = plan(
        rows, h=h, recall=recall, method=method, queries=queries, flips=flips, words=words
    )
    assert found.method not in ("bphs", "issl")  # it has no tables or lists
    assert method in ("auto", "bphs", "issl") or found.method == method
    assert 0 <= found.header_bits <= header_bits(rows)
    assert found.nanoseconds >= 0
    every = vosh.set_count(found.header_bits, h)
    if found.method == "psm":
        assert found.exact == (found.flips == every)
        assert found.flips <= every
    lossy = registry.METHODS[found.method].lossy and method not in ("bphs", "issl")
    if recall == 1 or flips is None or not lossy:
        assert found.exact
    elif not found.exact:
        assert found.flips == k


@given(rows=ROWS, h=st.integers(0, 8), queries=st.sampled_from([1, 1000]))
def test_auto_is_no_dearer_than_either_method(rows: int, h: int, queries: int) -> None:
    def flips(header_bits: int, h: int, recall: float) -> int:
        return header_bits * h

    designs = [d for d in DESIGNS if h <= d.exact_for]
    costs = {
        method: plan(
            rows, h=h, recall=0.9, method=method, queries=queries, flips=flips, designs=designs
        ).nanoseconds
        for method in registry.names()
    }
    assert costs["auto"] <= min(costs.values())


def test_recall_lets_a_large_table_be_probed_with_few_flips() -> None:
    exact = plan(10**8)
    some = plan(10**8, recall=0.9, flips=lambda bits, h, recall: 30)
    assert some.method == "psm"
    assert some.flips == 30
    assert some.nanoseconds < exact.nanoseconds / 4


def test_wide_radius_is_scanned_and_a_tight_one_probed() -> None:
    assert plan(10**6, h=30).method == "scan"
    assert plan(10**6, h=0).method == "psm"
    assert plan(10**6, h=3).method == "psm"


def test_each_table_has_its_own_plan() -> None:
    tables: Any = [Rows(10), Rows(10**8)]
    found = planner.plan(tables, Question(3), queries=1).tables
    assert [p.header_bits > 10 for p in found] == [False, True]
    none = planner.plan([], Question(3), queries=1)
    assert none.tables == ()


def test_exact_recall_uses_permuted_tables_where_they_are_cheaper() -> None:
    for rows, design in ((10**7, "bphs:G=5,g=2"), (10**7, "bphs:G=2,g=1,r=1")):
        found = plan(rows, designs=[BlockDesign.parse(design)])
        assert (found.method, found.exact) == (design, True)
        assert found.nanoseconds < plan(rows).nanoseconds / 4
    assert plan(100, designs=[BlockDesign.parse("bphs:G=5,g=2")]).method == "scan"


def test_the_cheapest_design_is_taken() -> None:
    both = [BlockDesign.parse(name) for name in ("bphs:G=5,g=2", "bphs:G=4,g=1")]
    assert plan(10**8, method="bphs", designs=both).method == "bphs:G=5,g=2"
    assert plan(10**4, method="bphs", designs=both).method == "bphs:G=4,g=1"


def test_designs_are_asked_for_by_name_and_radius() -> None:
    def names(method: str, h: int) -> list[str]:
        return [d.structure for d in permuted_plans.asked_designs(method, h, DESIGNS)]

    assert names("bphs", 3) == names("auto", 3) == [d.structure for d in DESIGNS]
    assert names("auto", 8) == names("bphs", 8) == ["bphs:G=9,g=1"]
    assert names("bphs:nested=4x4", 2) == ["bphs:nested=4x4"]
    assert names("auto", 9) == names("psm", 3) == names("scan", 3) == []
    for method in ("bphs", "bphs:G=5,g=2"):
        with pytest.raises(InvalidOption, match="use bphs:") as caught:
            permuted_plans.asked_designs(method, 9, DESIGNS)
        assert caught.value.data["designs"]
    with pytest.raises(InvalidOption, match="compact --structures"):
        permuted_plans.asked_designs("bphs:G=7,g=1", 3, DESIGNS)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("h", -1), ("h", 65), ("h", 2.0), ("h", True), ("h", None), ("h", "3"),
        ("recall", 0), ("recall", -0.1), ("recall", 1.0001), ("recall", float("nan")),
        ("recall", float("inf")), ("recall", True), ("recall", "0.9"),
        ("method", "PSM"), ("method", None), ("method", ["psm"]), ("method", ""),
    ],
)
def test_options_out_of_range_are_named(option: str, value: object) -> None:
    options: dict[str, Any] = {"h": 3, "recall": 0.9, "method": "auto", "bits": 64, option: value}
    with pytest.raises(InvalidOption, match=option) as caught:
        question.check_options(**options)
    assert caught.value.data["option"] == option


def test_options_at_their_limits_are_taken() -> None:
    for h in (0, 64):
        for recall in (1, 1.0, 1e-9):
            for method in registry.names():
                question.check_options(h=h, recall=recall, method=method, bits=64)


def test_planning_knows_tables_and_no_snapshot() -> None:
    """What is read of segments is read before, by `query.surveys` and `query.learning`."""
    folder = Path(planner.__file__).parent
    for file in folder.glob("*.py"):
        for name in ("Snapshot", "Segment"):
            assert not re.search(rf"import .*\b{name}\b", file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize(
    "kind",
    [
        conditions.Carried, conditions.Conditions, conditions.TopConditions, question.Question,
        question.TopQuestion, planner.Measured, planner.TopPlan, TablePlan, QueryPlan, TopTablePlan,
    ],
)
def test_plans_and_what_they_rest_on_are_data(kind: Any) -> None:
    """No field is a function that planning or running would call."""
    calls = [one.name for one in dataclasses.fields(kind) if "Callable" in str(one.type)]
    assert calls == []


def test_stand_in_has_what_a_plan_looks_at() -> None:
    """So that these tests mean real tables."""
    found = {*Table.__slots__, *SortedRows.__slots__}
    assert {"fingerprints", "header_bits", "slices", "structures"} <= found
