"""The nearest stored rows of a buffer, against comparisons in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.pairs import stored_winners
from simindex.pairs.buffer_losses import NOWHERE, Nearness, greedy
from simindex.pairs.stored_winners import (
    exactly_if_few,
    nearer_among,
    nearest_ahead,
    nearest_stored,
)
from simindex.planning.similarity import similar


def apart(a: list[int], b: list[int]) -> int:
    return sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("h", [0, 3, 9])
def test_the_nearest_stored_row_is_found_at_its_distance(
    tmp_path: Path, words: int, h: int
) -> None:
    rng = np.random.default_rng(7)
    stored = rng.integers(0, 2**64, (50, words), dtype=np.uint64)
    stored[25:] = stored[:25]
    stored[25:, 0] ^= rng.integers(0, 2**8, 25, dtype=np.uint64)
    strangers = rng.integers(0, 2**64, (5, words), np.uint64)
    asked = np.concatenate([stored[:40], stored[:40], strangers])
    asked[10:40, -1] ^= rng.integers(0, 2**9, 30, dtype=np.uint64)
    keys = [f"k{row}" for row in range(50)]
    options = simindex.IndexOptions(bits=64 * words, keys="str")
    with simindex.open(tmp_path / "i", "n", options=options) as index:
        empty = nearest_stored(index, simindex.Batch(asked), Nearness(h))
        assert (empty.distance == NOWHERE).all()
        for half in (slice(0, 30), slice(30, 50)):
            index.append(stored[half], keys=keys[half])
            index.commit()
        found = nearest_stored(index, simindex.Batch(asked), Nearness(h))
        nothing = nearest_stored(index, simindex.Batch(asked[:0]), Nearness(h))
    assert len(nothing.distance) == 0
    far = 0
    for row, mine in enumerate(asked.tolist()):
        distances = [apart(mine, other) for other in stored.tolist()]
        if min(distances) > h:
            assert found.distance[row] == NOWHERE
            far += 1
        else:
            assert found.distance[row] == min(distances)
            assert distances[keys.index(str(found.key(row)))] == min(distances)
    assert 5 <= far < len(asked)


def crowded(rng: np.random.Generator, words: int) -> np.ndarray:
    """Rows at all distances up to 20 from a few others."""
    rows = np.repeat(rng.integers(0, 2**64, (6, words), np.uint64), 40, axis=0)
    for row in rows:
        for bit in rng.choice(64 * words, int(rng.integers(0, 21)), replace=False).tolist():
            row[bit // 64] ^= np.uint64(1 << bit % 64)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("h", [0, 1, 6, 7, 9])
def test_what_is_kept_between_two_searches_is_compared_by_itself(
    tmp_path: Path, words: int, h: int
) -> None:
    """A search of rows apart, and then of those kept meanwhile, finds what one search would; or
    says where several are nearest."""
    rng = np.random.default_rng(h)
    near, rows = Nearness(h), crowded(rng, words)
    nothing = np.zeros(len(rows), np.bool_)
    kept = rows[greedy(rows, np.arange(len(rows)), nothing, near).winner < 0]
    asked = np.concatenate([kept, crowded(rng, words), rows])
    asked[::2, 0] ^= np.uint64(1) << rng.integers(0, 64, len(asked[::2])).astype(np.uint64)
    ends = np.zeros((3, words), np.uint64)  # two rows 2 d > h apart, and one between them
    ends[1:, 0] = (1 << 2 * (h // 2 + 1)) - 1, (1 << h // 2 + 1) - 1
    kept, asked = np.concatenate([ends[:1], kept, ends[1:2]]), np.concatenate([asked, ends[2:]])
    batch, half = simindex.Batch(asked), len(kept) // 2
    keys = [str(row) for row in range(len(kept))]
    options = simindex.IndexOptions(bits=64 * words, keys="str")
    with pytest.MonkeyPatch.context() as patched, simindex.open(
        tmp_path / "i", "n", options=options
    ) as index:
        patched.setattr(stored_winners, "BLOCK_ROWS", 100)
        index.append(kept[:half], keys=keys[:half])
        index.commit()
        ahead = nearest_ahead(index, batch, near)
        added = simindex.Batch(kept[half:], keys=keys[half:])
        found, tied = nearer_among(*ahead, batch, added, near)
        index.append(added)
        index.commit()
        after = nearest_stored(index, batch, near, apart=True)
        whole = nearest_stored(index, batch, near)
        asked_again = np.flatnonzero(tied)
        again = nearest_stored(index, batch.take(asked_again), near, apart=True)
    assert found.distance.tolist() == after.distance.tolist() == whole.distance.tolist()
    distances = [[apart(one, other) for other in kept.tolist()] for one in asked.tolist()]
    of_later = 0
    for row, one in enumerate(distances):
        nearest = [str(other) for other, d in enumerate(one) if d == min(one) <= h]
        assert tied[row] == (len(nearest) > 1)
        if nearest:
            assert str(found.key(row)) in nearest
            of_later += int(nearest[0]) >= half
    both = found.with_others(asked_again, again)
    for place, row in enumerate(asked_again.tolist()):
        assert both.key(row) == again.key(place)
    assert both.distance.tolist() == found.distance.tolist()
    assert of_later > 0
    assert tied.any() == (h > 0)


@pytest.mark.parametrize(("distance", "radii"), [(4, [7]), (5, [7, 4]), (7, [7, 6])])
def test_rows_apart_are_asked_for_again_only_where_one_may_be_nearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distance: int, radii: list[int]
) -> None:
    """Of rows further than 7 apart, one at distance 4 is the nearest, and one at 5 may not be."""
    asked: list[Any] = []
    query = simindex.Index.query

    def noted(index: simindex.Index, batch: simindex.Batch, **options: Any) -> simindex.Matches:
        asked.append(options["h"])
        return query(index, batch, **options)

    monkeypatch.setattr(simindex.Index, "query", noted)
    with simindex.open(tmp_path / "i", "n", options=simindex.IndexOptions()) as index:
        index.append(np.zeros((1, 1), np.uint64))
        index.commit()
        batch = simindex.Batch(np.array([[(1 << distance) - 1]], np.uint64))
        found = nearest_stored(index, batch, Nearness(7), apart=True)
    assert found.distance.tolist() == [distance]
    assert asked == radii


@pytest.mark.parametrize("exactly", [False, True])
def test_a_similarity_is_searched_within_the_radius_of_the_buffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exactly: bool
) -> None:
    """That of queries with weights, also where a small index is asked without them."""
    recipe = simindex.Recipe(sketch_bits=128)
    found = similar(0.9, h=None, recall=1.0, bits=64, sketch_bits=128, weighted=True)
    near = Nearness(found.h, 1.0, found)
    batch = recipe.batch([f"some words of the text {number}" for number in range(9)])
    monkeypatch.setattr(stored_winners, "EXACT_ROWS", 9 if exactly else 8)
    said = []
    with simindex.open(tmp_path / "i", "n", options=simindex.IndexOptions(recipe=recipe)) as index:
        index.append(batch)
        index.commit()
        query = index.query

        def told(*given: Any, **how: Any) -> Any:
            answer = query(*given, **how)
            said.append(answer.stats.guarantee)
            return answer

        monkeypatch.setattr(index, "query", told)
        asked = exactly_if_few(index, batch)
        assert (asked.weights is None) is exactly
        assert (nearest_stored(index, asked, near).distance == 0).all()
    assert f"within {found.h} of 64 bits" in said[0] and len(said) == 1
