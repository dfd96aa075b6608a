"""Rotation keeps the contract of a method for pairs: precision 1, and a recall that it reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
from contract import rows_of

import simindex
from simindex.errors import InvalidBatch, InvalidOption

ROWS = 900
KINDS = (
    ("uniform", 1), ("skewed", 1), ("hot", 1), ("uniform", 2), ("skewed", 2), ("hot", 4),
    ("skewed", 16),
)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{64 * kind[1]}")
def rows(request: pytest.FixtureRequest) -> oracle.U64:
    """Fingerprints with near-duplicates and equal ones among them."""
    kind, words = request.param
    rng = np.random.default_rng([len(kind), words])
    return rows_of(kind, rng, ROWS, words)


def true_pairs(rows: oracle.U64, h: int) -> set[tuple[int, int, int]]:
    found = oracle.matches(rows, rows, h)
    return {(a, b, distance) for a, b, distance in found.tolist() if a < b}


def found_pairs(found: simindex.Pairs) -> set[tuple[int, int, int]]:
    assert len({(pair.a, pair.b) for pair in found}) == len(found)
    return {tuple(pair) for pair in found}


def as_the_source_draws_it(rows: oracle.U64, h: int, k: int, window: int) -> Any:
    """Python integers, rotated, sorted, and compared with those before them."""
    bits = 64 * rows.shape[1]
    whole = [int("".join(f"{word:064b}" for word in row), 2) for row in rows.tolist()]
    found = set()
    for number in range(k):
        shift = number * bits // k
        turned = [(x << shift | x >> (bits - shift)) & ((1 << bits) - 1) for x in whole]
        order = sorted(range(len(rows)), key=turned.__getitem__)
        for place, row in enumerate(order):
            for before in order[max(0, place - window) : place]:
                distance = (whole[row] ^ whole[before]).bit_count()
                if distance <= h:
                    found.add((min(row, before), max(row, before), distance))
    return found


@pytest.mark.parametrize(("h", "k", "window"), [(3, 1, 1), (3, 25, 1), (6, 7, 3), (0, 2, 1)])
def test_pairs_are_those_of_the_source(rows: oracle.U64, h: int, k: int, window: int) -> None:
    found = simindex.rotation_pairs(rows, h=h, rotations=k, window=window)
    assert found_pairs(found) == as_the_source_draws_it(rows, h, k, window)


@pytest.mark.parametrize("h", range(0, 9, 2))
@pytest.mark.slow
def test_precision_is_one_and_recall_is_what_it_says(rows: oracle.U64, h: int) -> None:
    found = simindex.rotation_pairs(rows, h=h)
    truth = true_pairs(rows, h)
    got = found_pairs(found)
    assert len(truth) > 20
    assert got <= truth
    stats = found.stats
    assert stats.recall_rows == ROWS
    assert stats.recall == len(got) / len(truth) == stats.recall_low == stats.recall_high
    assert stats.false_negatives == 1 - stats.recall
    assert stats.exact == (got == truth)
    assert (stats.guarantee == "exact") == stats.exact


@pytest.mark.parametrize("h", [0, 3, 8])
@pytest.mark.slow
def test_a_window_of_all_rows_is_exact(rows: oracle.U64, h: int) -> None:
    found = simindex.rotation_pairs(rows, h=h, rotations=5, window=ROWS)
    assert found_pairs(found) == true_pairs(rows, h)
    assert found.stats.exact
    assert found.stats.recall == 1.0
    assert (found.stats.rotations, found.stats.rows_compared) == (1, ROWS * (ROWS - 1) // 2)


@pytest.mark.parametrize("words", [1, 2])
def test_pairs_alone_are_all_found_where_rotations_suffice(words: int) -> None:
    """A rotation for each bit puts the longest equal run of a pair first, and no row between."""
    rng = np.random.default_rng([5, words])
    rows = oracle.uniform(rng, 3000, words)
    rows[:300] = oracle.flip(rng, rows[300:600], rng.integers(0, 4, 300))
    found = simindex.rotation_pairs(rows, h=3, rotations=64 * words)
    assert found_pairs(found) == true_pairs(rows, 3)
    assert len(found) == 300
    assert (found.stats.exact, found.stats.recall, found.stats.false_negatives) == (True, 1.0, 0.0)
    few = simindex.rotation_pairs(rows, h=3, rotations=1)
    missed = 300 - len(found_pairs(few) & true_pairs(rows, 3))
    assert 0 < missed < 300
    assert few.stats.false_negatives == pytest.approx(missed / 300)
    assert not few.stats.exact


def test_columns_have_their_types_and_order(rows: oracle.U64) -> None:
    found = simindex.rotation_pairs(rows, h=5)
    assert (found.a.dtype, found.b.dtype, found.distance.dtype) == (
        np.dtype(np.int64), np.dtype(np.int64), np.dtype(np.uint16)
    )
    assert (found.a < found.b).all()
    order = list(zip(found.a.tolist(), found.b.tolist(), strict=True))
    assert order == sorted(order)
    assert "Pairs by rotation, " in repr(found)


def test_more_rotations_and_wider_windows_find_no_less(rows: oracle.U64) -> None:
    narrow = found_pairs(simindex.rotation_pairs(rows, h=4, rotations=4))
    assert narrow <= found_pairs(simindex.rotation_pairs(rows, h=4, rotations=8))
    assert narrow <= found_pairs(simindex.rotation_pairs(rows, h=4, rotations=4, window=9))


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.slow
def test_recall_of_a_sample_covers_the_true_one(words: int) -> None:
    """Counting the pairs of a row as if they were independent covers it one time of four."""
    rng = np.random.default_rng(words)
    rows = oracle.skewed(rng, 4000, words, templates=400, flips=4)
    whole = simindex.rotation_pairs(rows, h=3, rotations=6, window=20)
    true = whole.stats.recall
    assert true is not None
    assert 0.05 < true < 0.95
    covered = 0
    for seed in range(32):
        stats = simindex.rotation_pairs(
            rows, h=3, rotations=6, window=20, comparisons=3_000_000, seed=seed
        ).stats
        assert 0 < stats.recall_rows < len(rows)
        assert not stats.exact
        assert "estimated recall" in stats.guarantee
        covered += stats.recall_low <= true <= stats.recall_high
    assert covered >= 28


@pytest.mark.slow
def test_large_numbers_of_rows_are_probed_for_recall() -> None:
    """Half of the planted pairs are a rotation's own: first bits equal; the others need luck."""
    rng = np.random.default_rng(3)
    rows = oracle.uniform(rng, 150_000)
    rows[:40_000] = oracle.flip(rng, rows[-40_000:], 3)
    found = simindex.rotation_pairs(rows, h=3, rotations=2)
    planted = np.arange(40_000) + (np.arange(40_000) + 110_000 << 32)
    got = np.isin(planted, found.a + (found.b << 32)).mean()
    stats = found.stats
    assert 1_000 < stats.recall_rows < len(rows)
    assert stats.recall_low - 0.01 < got < stats.recall_high + 0.01
    assert stats.recall_high - stats.recall_low < 0.1


def test_few_rows_and_no_pairs() -> None:
    for count in (0, 1):
        found = simindex.rotation_pairs(np.zeros(count, np.uint64))
        assert len(found) == 0
        assert list(found) == []
        assert found.stats.exact
    alone = simindex.rotation_pairs(np.array([0, 2**64 - 1, 2**32 - 1], np.uint64), h=1)
    assert (len(alone), alone.stats.recall, alone.stats.exact) == (0, 1.0, True)
    assert list(simindex.rotation_pairs(np.array([7, 7], np.uint64), h=0)) == [(0, 1, 0)]


def test_recall_may_be_left_unknown() -> None:
    rows = oracle.uniform(np.random.default_rng(1), 1000)
    stats = simindex.rotation_pairs(rows, comparisons=0).stats
    assert (stats.recall, stats.false_negatives, stats.recall_rows) == (None, None, 0)
    assert not stats.exact
    assert "not measured" in stats.guarantee
    stats = simindex.rotation_pairs(rows, comparisons=1000).stats
    assert (stats.recall, stats.recall_low, stats.recall_high) == (None, 0.0, 1.0)
    assert "unknown recall" in stats.guarantee


@pytest.mark.parametrize(
    ("option", "value"),
    [("h", -1), ("h", 65), ("h", 2.5), ("h", True), ("rotations", 0), ("rotations", 65),
     ("window", 0), ("window", "all"), ("comparisons", -1)],
)
def test_options_out_of_range_are_refused(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=option) as error:
        simindex.rotation_pairs(np.zeros(2, np.uint64), **{option: value})
    assert error.value.data["option"] == option


def test_what_is_no_fingerprint_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="int64"):
        simindex.rotation_pairs(np.zeros(2, np.int64))
