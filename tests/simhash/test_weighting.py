"""The idf of a feature, and how it is looked up among those that were learned."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import idf_step


def test_a_step_between_two_counts_is_in_the_middle():
    assert idf_step(1000, 7, 7) == idf_step(1000, 7)
    middle = (idf_step(1000, 1) + idf_step(1000, 100)) / 2
    assert abs(idf_step(1000, 1, 100) - middle) <= 1


def buckets_of(table: dict[int, int]) -> np.ndarray:
    rows = sorted(table.items())
    return _native.idf_buckets(
        np.array([h for h, _ in rows], dtype=np.uint64),
        np.array([s for _, s in rows], dtype=np.uint32),
    )


def looked_up(buckets: np.ndarray, asked: list[int], unseen: int, level: int) -> list[int]:
    """The step of each hash: the weight of a document that has it alone, in its first bit."""
    kernel = _native.TextRecipe(
        0, True, np.array([1], dtype=np.uint8), 0, 1, True, buckets, unseen,
        np.empty(0, dtype=np.uint32), 0, np.empty(0, dtype=np.int16), 1, 1, level,
    )  # fmt: skip
    hashes = np.array(asked, dtype=np.uint64)
    _, weights, _, _ = kernel.hashes(hashes, np.arange(len(asked) + 1, dtype=np.int64))
    return (np.abs(weights[:, 0].astype(np.float64)) * 4096).astype(np.int64).tolist()


def crowded(top: int, number: int) -> list[int]:
    """Hashes that all belong into one bucket."""
    return [(top << 48) + i * 0x9E37 for i in range(number)]


TABLES = {
    "empty": [],
    "one": [12345],
    "both ends": [0, 2**64 - 1],
    "only 0": [0],
    "only the last": [2**64 - 1],
    "low": list(range(300)),
    "high": [2**64 - 1 - i for i in range(300)],
    "one bucket": crowded(0x1234, 4),
    "one bucket overflows": crowded(0x1234, 5),
    "many in one bucket": crowded(0x8000, 200),
    "the last bucket wraps around": crowded(0xFFFF, 200),
    "wraps into the full first": [*crowded(0xFFFF, 50), *crowded(0, 50)],
    "spread": [oracle.drawn(7, i) for i in range(1, 5000)],
    "spread and crowded": [*[oracle.drawn(7, i) for i in range(1, 500)], *crowded(0xFF00, 300)],
}


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("name", TABLES)
def test_steps_are_looked_up_as_in_a_dict(name, level):
    table = {h: 4096 + i for i, h in enumerate(TABLES[name])}
    near = {(h + d) % 2**64 for h in table for d in (-1, 1, 2**48, -(2**48))}
    asked = sorted({*table, *near, 0, 1, 2**63, 2**64 - 1})
    buckets = buckets_of(table)
    assert buckets.shape[1] == 8 and len(buckets) * 4 >= 2 * len(table)
    assert looked_up(buckets, asked, 99_999, level) == [table.get(h, 99_999) for h in asked]


@settings(max_examples=60)
@given(
    table=st.dictionaries(
        st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.integers(2**64 - 9, 2**64 - 1)
        | st.integers(0, 40).map(lambda i: (0xABCD << 48) + i),
        st.integers(1, 2**18), max_size=60,
    ),
    asked=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=9),
)  # fmt: skip
def test_any_table_is_looked_up_as_a_dict(table, asked):
    every = sorted({*table, *asked})
    for level in range(len(LEVELS)):
        expected = [table.get(h, 7) for h in every]
        assert looked_up(buckets_of(table), every, 7, level) == expected


def test_buckets_are_not_pickled():
    fitted = Recipe(ngram=3, weighting="idf").fit(["a b c"])
    assert fitted.idf.buckets.shape == (2, 8)
    assert "buckets" not in vars(pickle.loads(pickle.dumps(fitted.idf)))  # noqa: S301
