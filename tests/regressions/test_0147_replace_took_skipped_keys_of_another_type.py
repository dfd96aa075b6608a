"""`Index.replace` did not look at the type of the keys of texts without a fingerprint. A batch of
such texts under keys of bytes deleted the documents of an index with keys of str, and a key of
another type ended in AttributeError and a handle that could not write any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe, Skipped
from simindex.errors import InvalidBatch

RECIPE = Recipe()


@pytest.mark.parametrize("key", [b"a", 5, "\ud800", "x" * 65_536, 1.5])
def test_skipped_keys_of_another_type_are_refused(tmp_path: Path, key: Any) -> None:
    options = IndexOptions(keys="str", recipe=RECIPE)
    with simindex.open(tmp_path / "i.sim", "n", options=options) as index:
        index.append(RECIPE.batch(["some words"], keys=["a"]))
        for rows, keys in ((np.zeros(0, np.uint64), []), ([1], ["b"])):
            skipped = [Skipped(1, key, "empty")]
            with pytest.raises(InvalidBatch):
                index.replace(Batch(rows, keys=keys, skipped=skipped))
        index.commit()
        assert index.contains(keys=["a", "b"]).tolist() == [True, False]


def test_a_batch_of_skipped_texts_with_keys_of_another_type_is_refused(tmp_path: Path) -> None:
    options = IndexOptions(keys="str", recipe=RECIPE)
    with simindex.open(tmp_path / "i.sim", "n", options=options) as index:
        index.append(RECIPE.batch(["some words"], keys=["a"]))
        with pytest.raises(InvalidBatch, match="bytes, this index has str keys"):
            index.replace(RECIPE.batch([""], keys=[b"a"]))
        assert "a" in index


@pytest.mark.parametrize("key", ["a", -1, 2**64, 1.5])
def test_skipped_ids_that_are_no_ids_are_refused(tmp_path: Path, key: Any) -> None:
    with simindex.open(tmp_path / "i.sim", "n", options=IndexOptions(keys=False)) as index:
        index.append([7], ids=[3])
        with pytest.raises(InvalidBatch):
            index.replace(Batch([1], ids=[4], skipped=[Skipped(0, key, "empty")]))
        index.replace(Batch([1], ids=[4], skipped=[Skipped(0, 3, "empty")]))
        assert index.contains(ids=[3, 4]).tolist() == [False, True]


def test_skipped_keys_of_a_new_index_are_looked_at(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        with pytest.raises(InvalidBatch, match="skipped text 2 is int"):
            index.replace(Batch([], keys=[], skipped=[Skipped(2, 5, "empty")]))
        assert len(index.replace(RECIPE.batch([""], keys=["a"]))) == 0
        assert len(index.replace(RECIPE.batch(["", "some words"], keys=[b"a", b"b"]))) == 1
