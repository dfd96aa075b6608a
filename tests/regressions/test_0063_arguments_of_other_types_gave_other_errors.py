"""Whole numbers of numpy, and options out of range, ended in errors of Python or numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import InvalidOption, Recipe, find_all, rotation_pairs

ROWS = np.random.default_rng(1).integers(0, 2**64, 400, dtype=np.uint64)
ROWS[200:] = ROWS[:200] ^ np.uint64(1)


def pairs(found: simindex.Pairs) -> list[tuple[int, int]]:
    return list(zip(found.a.tolist(), found.b.tolist(), strict=True))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint32, np.int64, np.uint64])
def test_whole_numbers_of_numpy_are_those_of_python(kind: Any) -> None:
    exact = pairs(find_all(ROWS, h=3))
    assert exact
    assert pairs(find_all(ROWS, h=kind(3))) == exact
    assert pairs(find_all(ROWS, h=kind(3), blocks=kind(6))) == exact
    found = rotation_pairs(
        ROWS, h=kind(3), rotations=kind(25), window=kind(3), comparisons=kind(100), seed=kind(1)
    )
    same = rotation_pairs(ROWS, h=3, rotations=25, window=3, comparisons=100, seed=1)
    assert pairs(found) == pairs(same)
    assert found.stats.recall == same.stats.recall


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(InvalidOption, match="seed"):
        rotation_pairs(ROWS, seed=seed)


def test_a_flag_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOption, match="collapse_equal"):
        find_all(ROWS, collapse_equal=np.zeros(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", "..."])
def test_documents_without_features_are_learned_from(text: str) -> None:
    recipe = Recipe(weighting="tfidf").fit([text])
    assert Recipe.from_bytes(recipe.to_bytes()).to_dict() == recipe.to_dict()
    assert recipe.to_dict()["features"] == 0
    assert len(recipe.batch(["some words of a text"])) == 1


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_of_an_audit_are_checked_where_nothing_is_asked(
    index_path: Path, threads: Any
) -> None:
    with simindex.open(index_path, "n") as index, pytest.raises(InvalidOption, match="threads"):
        index.audit(threads=threads)


def test_a_pinned_reader_tells_of_its_own_audit(index_path: Path) -> None:
    with simindex.open(index_path, "n") as writer:
        writer.append(ROWS)
        writer.commit()
        with simindex.open(index_path, refresh=False) as reader:
            writer.append(ROWS)
            writer.commit()
            writer.audit(recall=0.5)
            own = reader.audit(recall=0.9)
            assert reader.stats().audit == own
