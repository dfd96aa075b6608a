"""Documents that come one at a time: found, or added at once and seen by the next call."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread

import pytest

import simindex
from simindex import Recipe
from simindex.errors import InvalidBatch

TEXT = "a page of some length, which nobody has seen before in this crawl"


def test_texts_with_keys_can_be_added_to_a_new_index_at_once(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        assert index.seen_or_add(TEXT, "first") is None
        found = index.seen_or_add(TEXT, "second")
        assert found is not None
        assert found.key == "first"
    with simindex.open(index_path, "c") as again:
        assert "first" in again
        assert again.options.keys == "str"
        assert again.recipe == Recipe()
        assert again.seen_or_add(TEXT, "third") is not None


def test_texts_without_keys_are_named_by_ids(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        assert index.seen_or_add(TEXT) is None
        assert index.options.keyed is False
        with pytest.raises(InvalidBatch):
            index.seen_or_add("another page of a crawl that nobody knows", "key")
        assert len(index) == 0


def test_many_threads_may_add_the_first_text(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        together = Barrier(8)
        found: list[simindex.Match | None] = []

        def add(number: int) -> None:
            together.wait()
            found.append(index.seen_or_add(TEXT, f"k{number}"))

        threads = [Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found.count(None) == 1
        assert len(found) == 8


def test_another_version_of_a_page_is_one_more_row_of_its_key(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        assert index.seen_or_add(TEXT, "page") is None
        other = "what stands there now has nothing to do with what stood there before"
        assert index.seen_or_add(other, "page") is None
        index.commit()
        assert len(index) == 2 and len(index.get("page")) == 2
        assert index.delete(keys=["page"]) == 1
        assert index.seen_or_add(TEXT, "page") is None
        index.replace(Recipe().batch([other], keys=["page"]))
        index.commit()
        assert len(index) == 1
