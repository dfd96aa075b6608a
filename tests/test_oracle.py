"""The oracle itself, against loops over Python integers."""

from __future__ import annotations

import numpy as np
import oracle
import pytest


def distance(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True))


def test_matches_are_those_of_a_plain_loop(rng: np.random.Generator) -> None:
    for words in (1, 3):
        stored = oracle.skewed(rng, 300, words, templates=5, flips=6)
        queries = oracle.flip(rng, stored[:40], 2)
        expected = [
            [query, row, distance(a, b)]
            for query, a in enumerate(map(tuple, queries.tolist()))
            for row, b in enumerate(map(tuple, stored.tolist()))
            if distance(a, b) <= 4
        ]
        assert len(expected) > 100
        assert oracle.matches(stored, queries, 4).tolist() == expected


def test_matches_do_not_depend_on_the_block(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = oracle.skewed(rng, 200, templates=4, flips=4)
    whole = oracle.matches(stored, stored, 5)
    monkeypatch.setattr(oracle, "_BLOCK_CELLS", 1000)
    assert np.array_equal(oracle.matches(stored, stored, 5), whole)


def test_matches_of_nothing_are_empty() -> None:
    nothing = np.empty(0, dtype=np.uint64)
    some = np.arange(3, dtype=np.uint64)
    assert oracle.matches(nothing, some, 3).shape == (0, 3)
    assert oracle.matches(some, nothing, 3).shape == (0, 3)


def test_signs_put_column_zero_at_the_top_bit() -> None:
    weights = np.full((3, 128), -1.0, dtype=np.float32)
    weights[0, 0] = 2
    weights[1, 127] = 0  # a tie is a one
    weights[2, 64] = 1
    assert oracle.signs(weights).tolist() == [[1 << 63, 0], [0, 1], [0, 1 << 63]]


def test_flip_inverts_exactly_the_asked_number_of_bits(rng: np.random.Generator) -> None:
    for words in (1, 2):
        rows = oracle.uniform(rng, 50, words)
        asked = rng.integers(0, 9, 50)
        flipped = oracle.flip(rng, rows, asked)
        assert np.bitwise_count(rows ^ flipped).sum(axis=1).tolist() == asked.tolist()


def test_skewed_rows_crowd_into_families(rng: np.random.Generator) -> None:
    rows = oracle.skewed(rng, 5000, templates=200)
    top = rows[:, 0] >> np.uint64(44)
    # 20 header bits: uniform rows would hardly ever share a header.
    assert len(np.unique(top)) < 3500
    assert len(oracle.matches(rows[:500], rows[:500], 8)) > 1000


def test_near_duplicates_flip_as_real_revisions_do(rng: np.random.Generator) -> None:
    """Flip rates by |W| of revisions of the Python PEPs at distance 1 to 3, within a factor."""
    weights = oracle.normal_weights(rng, 40_000)
    rewritten, rows = oracle.near_duplicates(rng, weights, 3)
    assert len(rows) > 39_000
    original = weights[rows]
    flipped = (original >= 0) != (rewritten >= 0)
    apart = flipped.sum(axis=1)
    assert apart.max() == 3
    assert (np.diff(rows) > 0).all()
    flipped, size = flipped[apart > 0], np.abs(original[apart > 0])
    edges = [0, 0.013, 0.027, 0.068, 0.139, 0.274, 0.414, 0.709]
    real = [0.48, 0.39, 0.27, 0.14, 0.047, 0.013, 0.0025]
    for low, high, rate in zip(edges[:-1], edges[1:], real, strict=True):
        here = flipped[(size >= low) & (size < high)].mean()
        assert rate / 3 < here < rate * 3, (low, high, here)


def test_model_shows_rows_only_after_commit() -> None:
    model = oracle.Model()
    model.append([5], [1])
    assert model.query([5], 0) == []
    model.commit()
    assert model.query([5], 0) == [(0, 0, 1)]


def test_model_deletion_reaches_earlier_commits_only() -> None:
    model = oracle.Model()
    model.append([5, 7], [1, 2])
    model.commit()
    model.replace([4], [1])
    assert model.query([5], 1) == [(0, 0, 1), (0, 1, 2)]
    model.commit()
    assert model.query([5], 1) == [(0, 1, 1), (0, 1, 2)]
    model.delete([2])
    model.discard()
    model.commit()
    assert model.contents() == [((4,), 1), ((7,), 2)]
