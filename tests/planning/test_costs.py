"""The engine's own model: what it depends on, and how its terms add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.methods import issl, psm
from simindex.planning import costs, measurement
from simindex.planning.machine import Machine

STEPS = replace(
    Machine(),
    levels=(
        (1 << 10, ((8.0, 6.0), (16.0, 10.0))),
        (1 << 20, ((8.0, 24.0), (16.0, 36.0))),
    ),
    vosh=((2, 12.0), (4, 14.0)), heaped=((3, 50.0), (5, 70.0)), table_ns=20.0,
    swept=((8.0, 9.0), (16.0, 12.0)), bucketed=((32.0, 20.0), (64.0, 30.0)), streamed_ns=0.25,
    scanned_ns=0.1, scanned_far_ns=0.3, scanned_alone_ns=0.7,
)


FOUND = costs.ANSWERED_NS + costs.UNFORESEEN_NS


def test_look_ups_are_interpolated_between_levels_and_buckets() -> None:
    for size in (1, 1 << 10):
        assert costs.look_up_ns(STEPS, size, 8) == 6
        assert costs.look_up_ns(STEPS, size, 12) == 8
    assert costs.look_up_ns(STEPS, 1 << 15, 8) == 15
    for size in (1 << 20, 1 << 40):
        assert costs.look_up_ns(STEPS, size, 8) == costs.look_up_ns(STEPS, size, 0) == 24
        assert costs.look_up_ns(STEPS, size, 32) == 60


def test_probing_adds_up() -> None:
    """Four look-ups of 36 ns under 16 rows, in a table beyond the last level."""
    exact = costs.probing_ns(STEPS, 1 << 22, 18, 3, ordered=False, h=1)
    assert exact == pytest.approx(FOUND + 4 * 36)
    ordered = costs.probing_ns(STEPS, 1 << 22, 18, 3, ordered=True, queries=32)
    assert ordered == pytest.approx(exact + 13)
    heaped = costs.probing_ns(STEPS, 1 << 22, 16, 600, ordered=True, h=4)
    assert heaped == pytest.approx(FOUND + 600 * 60 + 601 * (36 + 48 * 1.5))
    wide = costs.probing_ns(STEPS, 1 << 22, 18, 600, ordered=True, h=8)
    counted = 601 * 16 * (0.3 - 0.1)
    assert wide == pytest.approx(FOUND + 600 * 70 + 601 * 36 + counted)


def test_flip_sets_are_made_while_rows_come_in() -> None:
    """Half of the shorter of both is hidden, of a call whose queries overlap."""
    def ns(rows: int, header_bits: int, flips: int, queries: int) -> float:
        return costs.probing_ns(STEPS, rows, header_bits, flips, ordered=True, queries=queries)

    made = costs.UNFORESEEN_NS + 13
    assert ns(1 << 22, 18, 3, 48) - ns(1 << 22, 18, 3, 64) == pytest.approx(made / 2)
    # Two probes wait for 2 (24 - 6), less than is computed; near the processor nothing waits.
    waited = ns(1 << 21, 18, 1, 48) - ns(1 << 21, 18, 1, 64)
    assert waited == pytest.approx(18)
    assert ns(64, 3, 3, 48) == ns(64, 3, 3, 64)


@pytest.mark.parametrize(("header_bits", "beside"), [(18, 5), (17, 4), (20, 7)])
def test_all_flips_share_pages(header_bits: int, beside: int) -> None:
    """A header without rows takes 10 ns more in the larger level. Of 18 bits, those that differ in
    the last 5 are on a page of 512 rows."""
    def distinct(flips: int) -> float:
        """Pages of a probe, counted one by one."""
        masks = psm.exhaustive_masks(header_bits, flips)
        return len(np.unique(masks >> np.uint64(64 - header_bits + beside))) / len(masks)

    for h in (1, 2, 3):
        saved = costs.shared_page_ns(STEPS, 1 << 22, 1, header_bits, h)
        assert saved == pytest.approx(10 * (1 - distinct(h) / distinct(1)))
        assert costs.shared_page_ns(STEPS, 1 << 6, 1, 4, h) == 0  # all in the nearest level
    exact = costs.probing_ns(STEPS, 1 << 22, 18, 987, ordered=False, h=3)
    saved = costs.shared_page_ns(STEPS, 1 << 22, 1, 18, 3)
    assert exact == pytest.approx(FOUND + 988 * (36 - saved))
    assert costs.shared_page_ns(STEPS, 0, 1, 4, 3) == 0


@pytest.mark.parametrize(("queries", "each"), [(1, 16.0), (16, 1.0), (17, 32 / 17), (1 << 20, 1.0)])
def test_a_network_takes_sixteen_queries_or_fewer(queries: int, each: float) -> None:
    assert costs.vosh_ns(STEPS, 4, 3, queries) == pytest.approx(14 * each)
    assert costs.vosh_ns(STEPS, 0, 3, queries) == 0


def test_a_large_batch_is_swept() -> None:
    rows = 1 << 24
    alone = costs.probing_ns(STEPS, rows, 20, 9, ordered=True, queries=16)
    swept = costs.probing_ns(STEPS, rows, 20, 9, ordered=True, queries=1 << 20, swept=True)
    assert alone == pytest.approx(FOUND + 19 + 10 * 36)
    # Ten probes share a bucket of 16 rows; on the curve 8 rows take 9 ns, 8 more 3.
    shared = 0.6 * 9 + 0.75 * 3 / 8 * 16 + 20 / 10
    foreseen = costs.FORESEEN_SHARE * costs.UNFORESEEN_NS  # all is read in order
    assert swept == pytest.approx(
        FOUND - foreseen + 19 + 10 * shared + rows * 0.25 / (1 << 20)
    )
    few = costs.probing_ns(STEPS, rows, 20, 9, ordered=True, queries=1 << 17, swept=True)
    assert few == pytest.approx(FOUND - foreseen + 19 + 10 * 12 + rows * 0.25 / (1 << 17))


def test_permuted_tables_add_up() -> None:
    found = costs.permuted_ns(STEPS, 1 << 22, [(1, 18), (19, 16)])
    again = 0.5 * 3 * 46 * 3 / 6  # two tables of 32 MB, between 8 and 512
    assert costs.found_again_ns(STEPS, 2 << 22, 1) == pytest.approx(again)
    assert costs.found_again_ns(STEPS, 1 << 20, 1) == 0
    assert costs.found_again_ns(STEPS, 1 << 30, 2) == 0.5 * 3 * 46
    assert found == pytest.approx(FOUND + again + 20 + 36 + 20 + 19 * (36 + 48 * 1.5))


def test_permuted_tables_are_swept_too() -> None:
    """Under headers of 16 rows, and of 64 bucket by bucket; few probes bring few lines in."""
    rows, queries = 1 << 22, 1 << 18
    streamed = rows * 0.25 / queries
    for header_bits, probe in ((18, 12.0), (16, 30.0)):
        found = costs.permuted_ns(STEPS, rows, [(1, header_bits)], queries=queries, swept=True)
        again = costs.found_again_ns(STEPS, rows, 1)
        assert found == pytest.approx(costs.ANSWERED_NS + again + 20 + probe + streamed)


def test_a_sweep_of_few_probes_reads_rows_as_probes_on_their_own_do() -> None:
    """Of the rows between them, none is read in order."""
    rows, counted = 1 << 30, 16 * (0.3 - 0.1)
    rest = costs.ANSWERED_NS + costs.found_again_ns(STEPS, rows, 1) + 20 + counted
    for queries in (1 << 15, 1 << 22):
        few = costs.permuted_ns(STEPS, rows, [(1, 26)], queries=queries, swept=True)
        swept, alone = 12 + 0.25 * (16 + 24), 36 + costs.UNFORESEEN_NS
        share = queries * (16 + 24) / rows
        assert few == pytest.approx(rest + share * swept + (1 - share) * alone)


def test_tables_of_a_design_share_the_caches() -> None:
    """Four tables of 32 kB are looked up as one of 128 kB is."""
    rows, met = 1 << 12, FOUND  # under 128 headers, all of them near the processor
    one, four = (costs.permuted_ns(STEPS, rows, [(1, 7)] * tables) for tables in (1, 4))
    bucket = rows / 128
    size = costs.table_bytes(rows, 1, 7)
    assert one == pytest.approx(met + 20 + costs.look_up_ns(STEPS, size, bucket))
    assert four == pytest.approx(
        met + 4 * (20 + costs.look_up_ns(STEPS, 4 * size, bucket))
    )
    assert four > 4 * (one - met) + met


def test_a_scan_alone_waits_for_memory() -> None:
    def rows_ns(rows: int, queries: int, h: int = 3) -> float:
        return costs.scanning_ns(STEPS, rows, 1, queries, h) - costs.ANSWERED_NS

    for queries in (16, 64):
        assert rows_ns(1 << 22, queries) == pytest.approx((0.1 + 0.6 / queries) * (1 << 22))
    assert rows_ns(1 << 22, 64, 6) == pytest.approx((0.1 + 0.6 / 64) * (1 << 22))
    assert rows_ns(1 << 22, 64, 7) == pytest.approx((0.3 + 0.4 / 64) * (1 << 22))
    assert rows_ns(1 << 22, 1) == pytest.approx(0.7 * (1 << 22))
    assert rows_ns(1 << 7, 1) == pytest.approx(10 + 112 * 0.5)


def test_the_index_plans_by_its_machine(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows are dear to scan it probes, and the other way round."""
    words = np.random.default_rng(0).integers(0, 1 << 64, 20_000, dtype=np.uint64)
    methods = []
    for change in ({"scanned_ns": 1e6}, {"scanned_ns": 1e-9, "scanned_alone_ns": 1e-9}):
        changed = replace(STEPS, **change)  # type: ignore[arg-type]
        monkeypatch.setattr(measurement, "measure", lambda file, found=changed: found)
        with simindex.open(index_path, "c") as index:
            index.append(words)
            index.commit()
            index.tune()
            methods.append(index.query(words[:100]).stats.method)
    assert methods == ["psm", "scan"]


NEAREST = replace(
    STEPS, top_scanned_ns=0.1, top_turned_ns=4.0, top_near_ns=0.3, top_alone_ns=0.7,
    issl_cleared_ns=0.01, issl_list_ns=20.0, issl_scored_ns=5.0, issl_reranked_ns=10.0,
)


def test_the_nearest_are_scanned_alone_or_in_columns() -> None:
    def word_ns(rows: int, queries: int) -> float:
        taken = costs.top_scanning_ns(NEAREST, rows, 16, queries) - costs.ANSWERED_NS
        return taken / (rows * 16)

    assert word_ns(1 << 10, 1) == pytest.approx(0.3)
    assert word_ns(1 << 20, 1) == pytest.approx(0.7)
    assert 0.3 < word_ns(1 << 16, 1) < 0.7
    assert word_ns(1 << 20, 16) == pytest.approx(0.1 + 4 / 16)
    assert word_ns(1 << 20, 4) == pytest.approx(0.7)  # four queries do not repay the columns
    assert costs.top_scanning_ns(NEAREST, 0, 16, 1) == costs.ANSWERED_NS


def test_slice_lists_take_lists_scores_and_rows_compared() -> None:
    taken = costs.issl_ns(NEAREST, 1_000_000, 16, 1000, 5000, 256) - costs.ANSWERED_NS
    assert taken == pytest.approx(10_000 + 20_000 + 25_000 + 2560)
    # Lists as long as all slices of all rows are not followed.
    most = costs.issl_ns(NEAREST, 1_000_000, 16, 4e6, 64e6, 256) - costs.ANSWERED_NS
    assert most == pytest.approx(10_000 + 16e6 * costs.SLICED_WORDS * 0.7 + 2560)


@pytest.mark.parametrize("equal", [0, 1500])
@pytest.mark.slow
def test_lists_are_counted_as_rows_of_the_table_find_them(index_path: Path, equal: int) -> None:
    """Rows that crowd make lists long, and it is those lists that are asked for."""
    rng = np.random.default_rng(equal)
    rows = rng.integers(0, 1 << 64, (2000, 2), dtype=np.uint64)
    rows[:equal] = rows[0]
    options = simindex.IndexOptions(bits=128, structures=("psm", "issl"))
    with simindex.open(index_path, "n", options=options) as index:
        index.append(rows, ids=np.arange(2000))
        index.compact(full=True)
        (table,) = index._current().tables
        slices = table.slices
        stored = np.asarray(table.fingerprints).astype(">u8").view(">u2")
        for max_error, near in ((0, 1), (1, 17), (2, 137), (16, 65_536)):
            lists, scored = issl.listed(table, max_error)
            assert lists == 8 * near
            errors = np.bitwise_count(stored[:, None] ^ stored[None])  # of all rows, not some
            assert scored == pytest.approx((errors <= max_error).sum() / 2000, rel=0.35)
        assert slices is not None and issl.listed(table, 0) is issl.listed(table, 0)
