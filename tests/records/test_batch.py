"""A batch has as many of each thing as fingerprints, and says what it has."""

from __future__ import annotations

import numpy as np
import pytest

from simindex import Batch, Recipe
from simindex.errors import InvalidBatch, InvalidOption


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


def test_rows_are_taken_by_their_numbers() -> None:
    batch = Batch(np.arange(10, 13, dtype=np.uint64), keys=["a", "b", "c"])
    for rows in ([2, 0, 2], np.array([2, 0, 2], np.uint8), (2, 0, 2)):
        taken = batch.take(rows)  # type: ignore[arg-type]
        assert taken.fingerprints.tolist() == [12, 10, 12]
        assert taken.keys == ["c", "a", "c"]
    assert len(batch.take([])) == 0  # type: ignore[arg-type]
    for wrong in ([3], [-1], [True, False, True], [1.0], ["a"], [[0]], 0, slice(0, 2)):
        with pytest.raises(InvalidOption, match="rows="):
            batch.take(wrong)  # type: ignore[arg-type]
