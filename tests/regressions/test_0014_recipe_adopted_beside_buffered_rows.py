"""Rows without a recipe that wait for their commit are rows of the index, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Recipe, RecipeMismatch


def test_recipe_is_not_adopted_after_buffered_rows(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(3, dtype=np.uint64))
        with pytest.raises(RecipeMismatch):
            index.append(Recipe().batch(["the quick brown fox jumps over the lazy dog"]))
        index.commit()
        assert index.recipe is None
        assert len(index) == 3
