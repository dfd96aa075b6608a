"""Where headers are crowded, plans look into the tables whose headers are not, and stay exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex.bits.design import BlockDesign
from simindex.methods import crowding
from simindex.planning import permuted_plans, table_plans
from simindex.planning.conditions import Conditions
from simindex.storage.tables.permuted import permuted_rows
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import sort_table

ROWS = 30_000


def sharing(rng: np.random.Generator, bits: int, rows: int = ROWS) -> oracle.U64:
    """Rows that share their first bits, the rest uniform."""
    made = oracle.uniform(rng, rows)
    shared = np.uint64(((1 << bits) - 1) << (64 - bits)) if bits else np.uint64(0)
    return (made & ~shared) | (np.uint64(0xABCDEF0123456789) & shared)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 99), bits=st.integers(8, 30), header_bits=st.integers(4, 12),
    narrower=st.integers(0, 3),
)
@pytest.mark.slow
def test_rows_near_are_those_that_the_directory_leads_to(
    seed: int, bits: int, header_bits: int, narrower: int
) -> None:
    """A mean over sampled rows, compared with all pairs of rows of the table."""
    rows = np.sort(sharing(np.random.default_rng(seed), bits)[:, 0])
    table = SortedRows(rows[:, None], header_bits=header_bits)
    near = crowding.rows_near(table, header_bits - narrower)
    headers = rows >> np.uint64(64 - header_bits + narrower)
    values, counts = np.unique(headers, return_counts=True)
    apart = np.bitwise_count(values[:, None] ^ values)
    assert near is not None
    for flips, found in enumerate(near):
        exact = (counts * ((apart <= flips) @ counts)).sum() / len(rows)
        assert found == pytest.approx(exact, rel=0.25)


def test_uniform_and_small_tables_are_not_crowded() -> None:
    rng = np.random.default_rng(1)
    for rows in (sharing(rng, 0), sharing(rng, 20, crowding.LEAST_ROWS - 1)):
        table = sort_table("", rows, np.arange(len(rows), dtype=np.uint64), None, horizon=0)
        assert crowding.survey(table, 3) is None


def test_only_crowded_tables_of_a_design_say_so() -> None:
    """Of 11 header bits all are shared in the first, and 8 in the second."""
    design = BlockDesign.parse("bphs:G=4,g=1")
    rows = sharing(np.random.default_rng(2), 24)
    near = [
        crowding.rows_near(SortedRows(permuted_rows(rows, design, number), header_bits=11), 11)
        for number in range(4)
    ]
    assert near[0] is not None and near[0][0] == ROWS
    assert near[1] is not None and near[1][0] == pytest.approx(ROWS / 8, rel=0.2)
    assert near[2] is near[3] is None


@pytest.fixture(scope="module", params=[0, 24, 40])
def index(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> simindex.Index:
    path = tmp_path_factory.mktemp("crowded") / "pages.sim"
    rows = sharing(np.random.default_rng(3), request.param)
    rows[: ROWS // 10] = rows[0]  # equal rows are found again as many
    options = simindex.IndexOptions(batch_rows=4096)
    with simindex.open(path, "c", options=options) as index:
        index.append(rows, ids=np.arange(ROWS, dtype=np.uint64))
        index.commit()
        index.compact(full=True)
    reader = simindex.open(path)
    request.addfinalizer(reader.close)
    return reader


@pytest.mark.parametrize("h", [0, 3, 7, 11])
@pytest.mark.parametrize("queries", [1, 700])
@pytest.mark.slow
def test_answers_are_those_of_a_scan(index: simindex.Index, h: int, queries: int) -> None:
    rng = np.random.default_rng(h)
    rows = next(iter(index.rows())).fingerprints
    asked = oracle.flip(
        rng, rows[rng.integers(1, ROWS, queries)].reshape(-1, 1), rng.integers(0, 5, queries)
    )
    found = index.query(asked, h=h, method="bphs")
    expected = index.query(asked, h=h, method="scan")
    assert len(expected) >= (h >= 4) * queries
    for column in ("query", "id", "distance"):
        assert np.array_equal(getattr(found, column), getattr(expected, column))
    first = index.query(asked, h=h, method="bphs", first=True)
    assert np.array_equal(first.query, np.unique(expected.query))


def test_a_crowded_table_is_left_out(tmp_path: Path) -> None:
    """Without that, a query is compared with all rows of table 0."""
    rng = np.random.default_rng(4)
    rows = sharing(rng, 24, 200_000)
    with simindex.open(tmp_path / "pages.sim", "c") as index:
        index.append(rows)
        index.commit()
        (told,) = index.explain(rows[:500], h=3).segments
        for many in (1, 500):
            stats = index.query(rows[:many], h=3).stats
            assert stats.exact and stats.rows_compared < 2000 * many
    assert told.method.startswith("bphs")
    assert told.rows_compared == pytest.approx(told.expected_rows, rel=0.2)
    assert len(told.header_bits) == 2


@pytest.mark.parametrize("bits", [0, 24])
def test_tables_over_queries_are_costed_by_the_crowd(bits: int) -> None:
    """Each of its rows would be compared with every query in the first of them."""
    rows = sharing(np.random.default_rng(5), bits, 200_000)
    table = sort_table("", rows, np.arange(len(rows), dtype=np.uint64), None, horizon=0)
    found = crowding.survey(table, 3)
    asked = Conditions(3, 1 << 16, found=found)
    (plan,) = permuted_plans.over_queries(table, asked)
    (scanned,) = table_plans.scans(table, asked)
    assert (plan.nanoseconds > scanned.nanoseconds / 10) == (bits > 0)
