"""An empty list of texts was refused by a similarity, because nothing in it had a sketch. Without a
similarity it has no matches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.distributed import Shards

RECIPE = simindex.Recipe(sketch_bits=64)


@pytest.mark.parametrize("nothing", [
    [], (), iter([]), np.empty(0, np.uint64), simindex.Batch(np.empty(0, np.uint64)),
    RECIPE.batch([]),
], ids=["list", "tuple", "iterator", "array", "batch", "texts"])  # fmt: skip
def test_nothing_has_no_matches(index_path: Path, nothing: Any) -> None:
    """Whatever it is."""
    options = simindex.IndexOptions(keys=True, recipe=RECIPE)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(RECIPE.batch(["some words of a page"], keys=["a"]))
        index.commit()
        found = index.query(nothing, similarity=0.9)
        assert len(found) == 0 and found.similarity is not None
        assert [len(part) for part in index.query_stream(nothing, similarity=0.9)] in ([], [0])
        assert index.gate(nothing, similarity=0.9).documents == 0
        assert index.gate(nothing).documents == 0


def test_nothing_has_no_matches_in_shards(tmp_path: Path) -> None:
    batch = RECIPE.batch(["some words of a page", "other words, of a book"], keys=["a", "b"])
    shards = Shards.build(tmp_path / "s", batch, 2)
    assert len(shards.query(np.empty(0, np.uint64), similarity=0.9)) == 0


def test_fingerprints_without_sketches_are_refused_still(index_path: Path) -> None:
    options = simindex.IndexOptions(recipe=RECIPE)
    with simindex.open(index_path, "n", options=options) as index:
        with pytest.raises(simindex.InvalidBatch, match="no sketches"):
            index.query(np.zeros(1, np.uint64), similarity=0.9)
        assert len(index.query(np.zeros(1, np.uint64), h=3)) == 0
