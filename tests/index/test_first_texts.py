"""An index without rows takes the recipe of the first texts, and none after fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.index.first_texts import awaits_recipe, recipe_of_texts


@pytest.mark.parametrize("mode", ["w", "r"])
def test_the_first_rows_decide(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "i.sim"
    simindex.open(path, "n", options=simindex.IndexOptions(bits=128)).close()
    with simindex.open(path, mode) as index:
        assert awaits_recipe(index)
        assert recipe_of_texts(index) == simindex.Recipe(bits=128)
        assert index.recipe is None
    recipe = simindex.Recipe(bits=128, seed=5)
    with simindex.open(path, "w") as index:
        index.append(recipe.batch(["some text"], keys=["a"]))
        assert not awaits_recipe(index)
        assert recipe_of_texts(index) == recipe
    with simindex.open(path, mode) as index:
        assert not awaits_recipe(index)
        assert recipe_of_texts(index) == recipe


def test_fingerprints_decide_against_texts(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append(np.arange(2, dtype=np.uint64))
        assert not awaits_recipe(index)
        assert recipe_of_texts(index) is None
        index.discard()
        assert awaits_recipe(index)


def test_a_reader_sees_the_first_texts_of_another_process(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index, simindex.open(tmp_path / "i.sim") as seen:
        assert awaits_recipe(seen)
        index.seen_or_add("some text", key="a")
        index.commit()
        assert not awaits_recipe(seen)
        assert [match.key for match in seen.query("some text")] == ["a"]
