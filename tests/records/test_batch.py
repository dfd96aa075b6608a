"""A batch has as many of each thing as fingerprints, and says what it has."""

from __future__ import annotations

import numpy as np
import pytest

from simindex import Batch, Recipe
from simindex.errors import InvalidBatch


def test_sketches_are_rows_of_bits_one_for_each_fingerprint() -> None:
    rows = np.arange(3, dtype=np.uint64)
    batch = Batch(rows, sketch=np.arange(6, dtype=np.uint64).reshape(3, 2))
    assert batch.sketch_bits == 128
    assert "128 of sketch" in repr(batch)
    assert Batch(rows, sketch=rows).sketch_bits == 64
    for wrong, said in (
        (rows[:2], "2 sketches"), (rows.astype(np.int64), "as a sketch"), (["a"], "as a sketch"),
        (np.zeros((3, 65), np.uint64), "4160 bits"), (np.zeros((3, 0), np.uint64), "as a sketch"),
    ):
        with pytest.raises(InvalidBatch, match=said):
            Batch(rows, sketch=wrong)


def test_a_batch_without_weights_is_otherwise_the_same() -> None:
    batch = Recipe(sketch_bits=128).batch(["one two three", "four five"], keys=["a", "b"])
    bare = batch.without_weights()
    assert batch.weights is not None and bare.weights is None
    for name in ("rows", "keys", "recipe", "sketches"):
        assert getattr(bare, name) is getattr(batch, name)
