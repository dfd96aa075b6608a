"""Documents added one at a time are seen by the next call, and committed in time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from index_machine import (
    weights_for,
)

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import (
    InvalidBatch,
    InvalidOption,
    RecipeMismatch,
)

MATCHED = np.array([0b0000, 0b0001, 0b0011, 0b0111, 0b0000], dtype=np.uint64)
"""Rows at distances of 0 to 3."""
TEXTS = [
    f"page {number}: " + " ".join(f"word{(number * 31 + place * 7) % 5000}" for place in range(80))
    for number in range(40)
]


def one(value: int, **named: Any) -> Batch:
    return Batch(np.array([value], dtype=np.uint64), **named)


def test_texts_are_seen_or_added_by_the_recipe_of_the_index(index_path: Path) -> None:
    options = IndexOptions(keys=True, recipe=simindex.Recipe())
    with simindex.open(index_path, "n", options=options) as index:
        for number, text in enumerate(TEXTS):
            assert index.seen_or_add(text, f"url/{number}") is None
        assert len(index) == 0
        again = [index.seen_or_add(text, "other") for text in TEXTS]
        assert [(m.key, m.distance) for m in again if m] == [
            (f"url/{number}", 0) for number in range(len(TEXTS))
        ]
        assert index.seen_or_add(TEXTS[0].encode(), "bytes") is not None
        for empty in ("", "  "):
            assert index.seen_or_add(empty, "url/empty") is None
            assert index.seen_or_add(index.recipe.fingerprint(empty), "url/empty") is None
        with pytest.raises(InvalidBatch, match="key="):
            index.seen_or_add("a text without a key")
        with pytest.raises(InvalidBatch):
            index.seen_or_add("a text", b"bytes")
        with pytest.raises(InvalidBatch):
            index.seen_or_add(b"\xff\xfe not UTF-8", "url")
        with pytest.raises(InvalidBatch):
            index.seen_or_add(index.recipe.batch(TEXTS[:1], keys=["a"]), "b")
        with pytest.raises(RecipeMismatch):
            index.seen_or_add(simindex.Recipe(ngram=1).batch(TEXTS[:1], keys=["a"]))
        index.commit()
        assert len(index) == len(TEXTS)
        found = index.seen_or_add(TEXTS[3], "third")
        assert found is not None
        assert found == simindex.Match(0, found.id, "url/3", 0)
        assert index.query(index.recipe.batch(TEXTS[3:4])).keys() == ["url/3"]
        assert index.stats().sample_rows == len(TEXTS), "their weights are sampled"


def test_documents_that_do_not_fit_are_refused(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        for bad in (5, None, np.array([5], dtype=np.uint64), ["a text"], Batch(MATCHED),
                    Batch(MATCHED[:0]), Batch(np.zeros((1, 2), np.uint64))):
            with pytest.raises(InvalidBatch):
                index.seen_or_add(bad)
        for key in (-1, 2**64, 1.5):
            with pytest.raises(InvalidBatch):
                index.seen_or_add(one(1), key)
        for commit_s in (-1, "soon", True, float("nan")):
            with pytest.raises(InvalidOption):
                index.seen_or_add(one(1), commit_s=commit_s)
        with pytest.raises(InvalidOption):
            index.seen_or_add(one(1), h=65)
        assert index.seen_or_add(one(1), 2**64 - 1) is None
        with pytest.raises(InvalidBatch, match="recipe"):
            index.seen_or_add("a text")
        with pytest.raises(InvalidBatch, match="no keys"):
            index.seen_or_add(one(2, keys=["a"]))
        index.commit()
        assert [part.ids.tolist() for part in index.rows()] == [[2**64 - 1]]


def test_the_nearest_row_is_returned(index_path: Path) -> None:
    """Stored or not yet; of equally near ones, the one of the smaller id is preferred."""
    with simindex.open(index_path, "n") as index:
        index.append(np.array([0b111, 0b1], dtype=np.uint64), ids=[1, 2])
        index.commit()
        assert index.seen_or_add(one(0)) == simindex.Match(0, 2, None, 1)
        assert index.seen_or_add(one(0b11110000), 3, h=3) is None
        assert index.seen_or_add(one(0b11100000), 4, h=3) == simindex.Match(0, 3, None, 1)
        assert index.seen_or_add(one(0b10000001), 5, h=4) == simindex.Match(0, 2, None, 1)
        assert index.seen_or_add(one(0b10010000), 6, h=4) == simindex.Match(0, 3, None, 2)


def test_a_nearer_row_in_a_later_segment_is_returned(index_path: Path) -> None:
    """The first that is found may be any."""
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        for number, value in enumerate((0b111, 0b11, 0b1, 0b110)):
            index.append(one(value, ids=[number]))
            index.commit()
        assert index.stats().segments == 4
        assert index.seen_or_add(one(0)) == simindex.Match(0, 2, None, 1)


@pytest.mark.slow
def test_a_hot_page_costs_no_more_than_another(index_path: Path) -> None:
    """No list of its million equals is made; 20 calls would take seconds."""
    values = np.full(1_000_000, 1 << 40, np.uint64)
    with simindex.open(index_path, "n") as index:
        index.append(values)
        index.commit()
        started = time.process_time()
        for value in (1 << 40, 1 << 40 | 1) * 10:
            found = index.seen_or_add(one(value))
            assert found is not None
            assert found.distance == value & 1
        assert time.process_time() - started < 1


def test_numbers_go_on_where_both_ways_of_adding_meet(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        assert index.append(np.array([1 << 10], dtype=np.uint64)).tolist() == [0]
        assert index.seen_or_add(one(1 << 20 | 0xFF)) is None
        assert len(index) == 1, "what append has buffered is committed first"
        assert index.seen_or_add(one(0xFF << 30)) is None
        assert index.append(np.array([0xFF << 40], dtype=np.uint64)).tolist() == [3]
        index.replace(one(0xFF << 50, ids=[77]))
        index.commit()
        ids = np.concatenate([part.ids for part in index.rows()])
        assert sorted(ids.tolist()) == [0, 1, 2, 3, 77]
        assert index.seen_or_add(one(0xFF << 30), h=0) == simindex.Match(0, 2, None, 0)


def test_rows_become_durable_by_their_number_and_by_time(index_path: Path) -> None:
    options = IndexOptions(batch_rows=64)  # segments of 8
    with simindex.open(index_path, "n", options=options) as index:
        for number in range(20):
            assert index.seen_or_add(one(number), h=0, commit_s=None) is None
            assert len(index) == number // 8 * 8
        index.seen_or_add(one(0), h=0, commit_s=1000)
        assert len(index) == 16
        index.seen_or_add(one(0), h=0, commit_s=0)
        assert len(index) == 20, "also when the document itself is not added"
        index.seen_or_add(one(30), h=0, commit_s=None)
    with simindex.open(index_path) as reader:
        assert len(reader) == 21, "a clean exit commits"
    with pytest.raises(KeyError), simindex.open(index_path, "w") as index:
        index.seen_or_add(one(40), h=0)
        raise KeyError
    with simindex.open(index_path, "w") as index:
        assert len(index) == 21
        index.seen_or_add(one(50), h=0)
        index.compact(full=True)
        assert len(index) == 22


def test_weights_of_some_documents_are_sampled(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        for number in range(12):
            values = np.array([number], dtype=np.uint64)
            weighted = number // 3 % 2 == 0
            batch = Batch(values, weights=weights_for(values) if weighted else None)
            assert index.seen_or_add(batch, h=0) is None
        index.commit()
        assert index.stats().sample_rows == 6
        sample = index._current().reservoir
        assert np.array_equal(oracle.signs(sample.weights.astype(np.float32)), sample.fingerprints)
        assert sorted(sample.fingerprints[:, 0].tolist()) == [0, 1, 2, 6, 7, 8]
        ids = np.concatenate([part.ids for part in index.rows()])
        rows_ = np.concatenate([part.fingerprints for part in index.rows()])
        assert np.array_equal(ids, rows_)


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
def test_of_many_threads_with_the_same_page_one_adds_it(index_path: Path, keyed: bool) -> None:
    """Crawlers that meet the same pages in other orders, while commits and queries go on."""
    rng = np.random.default_rng(3)
    pages = oracle.uniform(rng, 400)[:, 0].tolist()
    options = IndexOptions(batch_rows=256, keys=keyed)  # commits and merges all the time
    workers = 6
    barrier = threading.Barrier(workers)

    def crawl(worker: int) -> list[int]:
        order = np.random.default_rng(worker).permutation(len(pages)).tolist()
        barrier.wait()
        added = []
        for page in order:
            name = f"{page}/{worker}" if keyed else page * 10 + worker
            near = pages[page] ^ (1 << worker)
            found = index.seen_or_add(one(near), name, h=2, commit_s=0.01)
            if found is None:
                added.append(page)
            else:
                assert found.distance <= 2
                named = found.key.split("/")[0] if keyed else found.id // 10
                assert int(named) == page
        return added

    with simindex.open(index_path, "n", options=options) as index:
        with ThreadPoolExecutor(workers) as pool:
            added = [page for part in pool.map(crawl, range(workers)) for page in part]
        assert sorted(added) == list(range(len(pages)))
        index.commit()
        assert len(index) == len(pages)
        assert index.check() == []
