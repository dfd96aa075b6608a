"""A plan's ways for one query by itself lead to the nearest row that the plan finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions, Match, Recipe
from simindex._kernels import _native
from simindex.simhash.recipe_kernels import kernel_of_arrivals

H = 3
TEXTS = [" ".join(f"w{number * place % 97}" for place in range(40)) for number in range(1, 80)]


@pytest.mark.parametrize("method", ["auto", "scan", "psm", "bphs:G=4,g=1,r=2"])
def test_the_nearest_row_is_found_by_any_method(index_path: Path, method: str) -> None:
    """In segments and in pending rows, among strangers; unless it is deleted."""
    recipe = Recipe()
    kernel = kernel_of_arrivals(recipe)
    assert kernel is not None
    apart = np.arange(len(TEXTS)) % (H + 3)
    rng = np.random.default_rng(1)
    rows = oracle.flip(rng, recipe.batch(TEXTS).rows, apart)
    places = _native.Places(np.zeros((1, 1), np.uint64), np.empty((1, 0), np.uint8))
    with simindex.open(
        index_path, "n", options=IndexOptions(batch_rows=1024, min_merge=0)
    ) as index:
        index.append(Batch(np.concatenate([rows[:50], oracle.uniform(rng, 2000)])))
        index.commit()
        index.append(Batch(rows[50:]))
        index.commit()
        snapshot, answerer = index._current(), index._handle.answerer
        question = answerer.question(h=H, first=True, threads=1, method=method)
        ways = answerer.ways(snapshot, question)
        assert ways is not None
        for number, text in enumerate(TEXTS):
            told = kernel.arrive(text, places, 0, ways.passages)
            if apart[number] > H:
                assert told == 0
                continue
            assert isinstance(told, tuple)
            distance, place, table, row = told
            id_ = number if number < 50 else number + 2000
            assert place == -1
            assert ways.match(snapshot, table, row, distance) == Match(
                0, id_, None, int(apart[number])
            )
        index.delete(ids=[id_])
        index.commit()
        assert ways.match(index._current(), table, row, distance) is None


def test_a_plan_that_is_not_exact_has_none(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.arange(9, dtype=np.uint64))
        index.commit()
        snapshot, answerer = index._current(), index._handle.answerer
        every = answerer.question(h=H, threads=1)
        assert answerer.ways(snapshot, every) is None, "all matches are asked for"
