"""simhash-py, by its definition; and beside the package itself, where it is installed."""

from __future__ import annotations

import hashlib
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
import simindex.compat.simhash_py as ours
from simindex.errors import InvalidBatch, InvalidOption

HASHES = st.integers(0, 2**64 - 1)


@pytest.fixture(scope="module")
def theirs() -> Any:
    """simhash-py, or simhash-pybind, which has the same functions and can be built today."""
    module = pytest.importorskip("simhash")
    if not hasattr(module, "find_all"):
        pytest.skip("another package of this name is installed")
    return module


def majority(hashes: list[int]) -> int:
    """Bit by bit."""
    return sum(
        1 << bit for bit in range(64)
        if 2 * sum(one >> bit & 1 for one in hashes) > len(hashes)
    )


@given(st.lists(HASHES, max_size=9))
def test_a_bit_is_that_of_more_than_half_of_the_hashes(hashes: list[int]) -> None:
    assert ours.compute(hashes) == majority(hashes)


def test_as_many_ones_as_zeros_are_zeros() -> None:
    assert ours.compute([0xDEADBEEFDEADBEEF, 0x2152411021524110]) == 0
    assert ours.compute([]) == 0
    assert ours.compute(iter([0xDEADBEEF] * 100)) == 0xDEADBEEF


@given(st.lists(st.lists(HASHES, max_size=5), max_size=6))
def test_many_documents_have_the_fingerprints_of_each(documents: list[list[int]]) -> None:
    batch = ours.batch(documents, ids=range(len(documents)))
    some = [number for number, hashes in enumerate(documents) if hashes]
    assert batch.ids is not None and batch.ids.tolist() == some
    assert batch.rows[:, 0].tolist() == [majority(documents[number]) for number in some]
    assert [skip.position for skip in batch.skipped] == [
        number for number, hashes in enumerate(documents) if not hashes
    ]


@given(st.sets(HASHES, max_size=30), st.integers(0, 5), st.integers(0, 4))
def test_pairs_are_those_of_brute_force(values: set[int], h: int, more: int) -> None:
    near = [one ^ 1 << bit for one in list(values)[:5] for bit in (0, 13, 63)]
    hashes = [*values, *near, *values]
    expected = sorted(
        (a, b) for a, b in combinations(sorted({*hashes}), 2) if (a ^ b).bit_count() <= h
    )
    assert ours.find_all(hashes, h + 1 + more, h) == expected


def test_the_rest_is_as_it_is_there() -> None:
    assert ours.num_differing_bits(0xDEADBEEF, 0xDEADBEAD) == 2
    assert list(ours.shingle(range(5), 4)) == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert list(ours.shingle(iter("ab"), 4)) == []
    digest = hashlib.md5(b"a text", usedforsecurity=False).hexdigest()
    assert ours.unsigned_hash(b"a text") == int(digest[:16], 16)


def test_what_cannot_be_is_refused() -> None:
    for wrong in ([-1], [2**64], [1.5], ["a"]):
        with pytest.raises(InvalidBatch, match="not a whole number from 0"):
            ours.compute(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidBatch, match="unsigned_hash"):
            ours.find_all(wrong, 4, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="blocks"):
        ours.find_all([1, 2], 3, 3)
    with pytest.raises(InvalidOption, match="window"):
        ours.shingle("abc", 0)


def test_fingerprints_go_into_an_index(index_path: Any) -> None:
    words = [f"word{number % 7}" for number in range(12)]
    hashes = [ours.unsigned_hash(" ".join(some).encode()) for some in ours.shingle(words)]
    with simindex.open(index_path, "n", options=simindex.IndexOptions(keys="str")) as index:
        index.append(ours.batch([hashes], keys=["fox"]))
        index.commit()
        found = index.query(np.array([ours.compute(hashes)], np.uint64), h=0)
        assert found.keys() == ["fox"]


@given(st.lists(HASHES, min_size=1, max_size=40), st.integers(0, 4))
def test_the_package_agrees(theirs: Any, hashes: list[int], h: int) -> None:
    assert ours.compute(hashes) == theirs.compute(hashes)
    pairs = {tuple(pair) for pair in theirs.find_all(hashes, h + 2, h)}
    assert ours.find_all(hashes, h + 2, h) == sorted(pairs)
    assert list(ours.shingle(hashes, 3)) == list(theirs.shingle(hashes, 3))
    assert ours.unsigned_hash(b"%d" % hashes[0]) == theirs.unsigned_hash(b"%d" % hashes[0])
