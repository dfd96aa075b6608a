"""A new index takes keys and a recipe from what it is given first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.errors import InvalidBatch, InvalidOption

TEXT = "a page of some length, which nobody has seen before in this crawl"
ROWS = np.arange(4, dtype=np.uint64)


@pytest.mark.parametrize("call", ["append", "replace", "ingest"])
def test_the_first_rows_say_what_names_rows(index_path: Path, call: str) -> None:
    keys = [b"a", b"b", b"c", b"d"]
    with simindex.open(index_path, "n") as index, simindex.open(index_path) as reader:
        getattr(index, call)(Batch(ROWS, keys=keys))
        index.commit()
        assert reader.query(ROWS[:1], h=0).keys() == [b"a"]
        assert index.options.keys == reader.options.keys == "bytes"
        assert b"d" in reader
        with pytest.raises(InvalidBatch):
            index.append(ROWS, keys=list("abcd"))
        with pytest.raises(InvalidBatch):
            index.append(ROWS)
        assert index.check() == []


def test_an_index_that_was_made_without_keys_refuses_them(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(keys=False)) as index:
        with pytest.raises(InvalidBatch):
            index.append(ROWS, keys=list("abcd"))
        assert index.seen_or_add(TEXT) is None


def test_an_index_with_rows_takes_no_keys_any_more(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(ROWS)
        with pytest.raises(InvalidBatch):
            index.append(ROWS, keys=list("abcd"))
        index.commit()
        with pytest.raises(InvalidBatch):
            index.append(ROWS, keys=list("abcd"))


def test_a_reader_learns_the_recipe_of_the_first_commit(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index, simindex.open(index_path) as reader:
        assert index.seen_or_add(TEXT, "first") is None
        index.commit()
        assert reader.query(TEXT, h=3).keys() == ["first"]


def test_what_does_not_fit_leaves_a_new_index_free(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        with pytest.raises(InvalidOption):
            index.seen_or_add(TEXT, "k", h=65)
        with pytest.raises(InvalidBatch):
            index.append(np.zeros((2, 2), np.uint64), keys=["a", "b"])
        assert index.seen_or_add(TEXT) is None


def test_a_new_index_has_no_document_of_any_name(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index, simindex.open(index_path) as reader:
        for one in (index, reader):
            for name in ("key", b"key", 5):
                assert name not in one
                assert one.get(name) is None
            assert one.contains(keys=["a", "b"]).tolist() == [False, False]
            assert one.contains(ids=[1]).tolist() == [False]
            with pytest.raises(InvalidBatch):
                one.contains(ids=[1], keys=["a"])
            with pytest.raises(InvalidBatch):
                one.get(1.5)
        assert index.delete(keys=["a"]) == 0
        assert index.delete(ids=[3]) == 0
        assert index.seen_or_add(TEXT, b"key") is None
        assert b"key" in index
        with pytest.raises(InvalidBatch):
            index.get("key")


@pytest.mark.parametrize("named", ["keys", "ids"])
@pytest.mark.parametrize("committed", [True, False])
def test_a_text_without_a_fingerprint_replaces_the_one_of_its_name(
    index_path: Path, named: str, committed: bool
) -> None:
    names: list[object] = ["a", "b", "c"] if named == "keys" else [1, 2, 3]
    recipe = Recipe()
    options = IndexOptions(keys=named == "keys", recipe=recipe)
    texts = [TEXT, f"{TEXT} and nobody ever will", "something else that is long enough"]
    with simindex.open(index_path, "n", options=options) as index:
        index.append(recipe.batch(texts, **{named: names}))
        if committed:
            index.commit()
        index.replace(recipe.batch(["", texts[0]], **{named: names[:2]}))
        index.commit()
        assert [name in index for name in names] == [False, True, True]
        assert len(index) == 2
        index.replace(recipe.batch([""], **{named: names[1:2]}))
        index.commit()
        assert [name in index for name in names] == [False, False, True]
        assert index.check() == []


def test_names_that_are_looked_up_are_not_called_deletions(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(ROWS, keys=list("abcd"))
        for given in ({}, {"ids": [1], "keys": ["a"]}, {"ids": [1]}, {"keys": [1]},
                      {"keys": [b"a"]}):
            with pytest.raises(InvalidBatch) as caught:
                index.contains(**given)
            assert "delet" not in str(caught.value)
        with pytest.raises(InvalidBatch, match="key"):
            1 in index  # noqa: B015
