"""Fingerprints by majority, by their definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex.compat import majority
from simindex.errors import InvalidBatch

HASHES = st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=6), max_size=6)


def by_definition(hashes: list[int]) -> int:
    return sum(
        1 << bit for bit in range(64) if 2 * sum(one >> bit & 1 for one in hashes) > len(hashes)
    )


@given(HASHES)
def test_a_bit_is_one_where_most_hashes_have_it(documents: list[list[int]]) -> None:
    offsets = np.cumsum([0, *map(len, documents)])
    whole = np.array([one for hashes in documents for one in hashes], np.uint64)
    made = majority.of_hashes(whole, offsets, keys=[str(n) for n in range(len(documents))])
    assert made.rows[:, 0].tolist() == [by_definition(hashes) for hashes in documents if hashes]
    assert [skip.position for skip in made.skipped] == [
        number for number, hashes in enumerate(documents) if not hashes
    ]


def test_each_feature_is_hashed_once() -> None:
    asked: list[bytes] = []

    def hashed(feature: bytes) -> int:
        asked.append(feature)
        return len(asked)

    made = majority.of_texts(["a b a", "b c"], str.split, hashed)
    assert asked == [b"a", b"b", b"c"]
    assert made.rows[:, 0].tolist() == [by_definition([1, 2, 1]), by_definition([2, 3])]


def test_windows_of_a_short_text_are_the_text() -> None:
    assert majority.windows("abcd", 3) == ["abc", "bcd"]
    assert majority.windows("ab", 3) == ["ab"]


def test_the_recipe_is_stored_and_its_batches_are_asked_by_its_radius(tmp_path: Path) -> None:
    options = simindex.IndexOptions(keys=True, recipe=majority.RECIPE)
    with simindex.open(tmp_path / "m.sim", "n", options=options) as index:
        offsets = np.array([0, 3])
        index.append(majority.of_hashes(np.array([7, 7, 1], np.uint64), offsets, keys=["a"]))
        near = majority.of_hashes(np.array([7, 6, 7], np.uint64), offsets, keys=["b"])
        match = index.seen_or_add(near)
        assert match is not None and match.key == "a"


@pytest.mark.parametrize(
    ("texts", "said"),
    [("abc", "single str"), (["a", b"b"], "text 1 is bytes"), (["a", "\ud800"], "text 1 has half")],
)
def test_what_is_no_text_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(InvalidBatch, match=said):
        majority.of_texts(texts, list, len)
