"""The idf of a feature, and how it is looked up among those that were learned."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native
from simindex.bits.sets import NUMBERS, Counted
from simindex.simhash.recipe import Recipe
from simindex.simhash.recipe_kernels import kernel_of_arrivals
from simindex.simhash.weighting import (
    COUNTED_PROJECTIONS,
    STEPS_PER_UNIT,
    counted_of,
    idf_shift,
    idf_step,
)


def test_a_step_between_two_counts_is_in_the_middle():
    assert idf_step(1000, 7, 7) == idf_step(1000, 7)
    middle = (idf_step(1000, 1) + idf_step(1000, 100)) / 2
    assert abs(idf_step(1000, 1, 100) - middle) <= 1


def test_a_weight_of_1_has_the_steps_that_the_kernels_give_it():
    kernel = kernel_of_arrivals(Recipe())
    assert kernel.steps(np.arange(3, dtype=np.uint64)).tolist() == [STEPS_PER_UNIT] * 3


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


# balanced idf -------------------------------------------------------------------------------------

counted_steps = st.lists(
    st.tuples(st.integers(4096, 40_000) | st.sampled_from([4096, 6935, 6936, 9774, 9775]),
              st.integers(1, 30)),
    max_size=40,
)  # fmt: skip
"""The idf of some features in steps, and how often a text has each; around ln 2 and 2 ln 2, too."""


@settings(max_examples=200)
@given(found=counted_steps, level=st.sampled_from(range(len(LEVELS))), light=st.integers(0, 5000))
@pytest.mark.slow
def test_a_balanced_idf_is_as_defined(found, level, light):
    """By the kernels and for people; a step below 1, which no learned table has, stays as it is."""
    hashes = [oracle.drawn(7, 2 * i + 1) for i in range(len(found) + 1)]
    steps = dict(zip(hashes, [*(step for step, _ in found), light], strict=True))
    occurring = [h for h, (_, n) in zip(hashes, found, strict=False) for _ in range(n)]
    occurring.append(hashes[-1])
    shift = idf_shift([steps[h] for h in occurring])
    assert shift == oracle.shift([steps[h] for h in occurring])
    expected = {
        h: step - min(shift, max(0, step - 4096)) for h, step in steps.items() if step
    }
    kernel = _native.TextRecipe(
        0, True, np.array([1], dtype=np.uint8), 0, 3, True, buckets_of(expected | steps), light,
        np.empty(0, dtype=np.uint32), 0, np.empty(0, dtype=np.int16), 1, 1, level,
    )  # fmt: skip
    _, weights, _, _ = kernel.hashes(
        np.array(occurring, dtype=np.uint64), np.array([0, len(occurring)], dtype=np.int64)
    )
    vectors = oracle.vectors(np.array(occurring, dtype=np.uint64), "sign", 64).astype(np.int64)
    sums = np.array([expected.get(h, 0) for h in occurring]) @ vectors
    assert weights[0].tolist() == oracle.shown_weights(sums, "sign", "balanced-tfidf").tolist()


@given(
    common=st.lists(st.integers(4096, 6935), min_size=30, max_size=60),
    others=st.lists(st.integers(4096, 60_000), max_size=80),
    few=st.lists(st.integers(4096, 60_000), max_size=23),
)
@pytest.mark.slow
def test_texts_of_a_common_language_and_short_texts_keep_their_idf(common, others, few):
    """If half of the documents have a third of the words, or if a text has fewer than 24 words.

    Then 10 common words and a third of the text's are more than three tenths.
    """
    assert idf_shift(common + others[: 2 * len(common)]) == 0
    assert idf_shift(few) == 0


@given(
    steps=st.lists(st.integers(4096, 40_000), min_size=1, max_size=300),
    more=st.integers(4096, 40_000),
)
def test_one_word_more_moves_the_shift_a_little(steps, more):
    """By less than its share of the words that count, twice: edits do not make weights jump."""
    n = len(steps) + 10
    spread = max(*steps, more) - 4096
    most = 2 * (1.3 * spread / (0.2 * n)) + 3
    assert abs(idf_shift([*steps, more]) - idf_shift(steps)) <= most


def languages(number: int, documents: int, seed: int) -> list[str]:
    """Texts of 400 words: half of them from 12 function words, half from 5,000 others."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(documents):
        function = rng.choice(12, 200, p=np.arange(12, 0, -1) / 78)
        others = rng.integers(0, 5000, 200)
        words = [f"f{number}x{i}" for i in function] + [f"w{number}x{i}" for i in others]
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("documents", [150, 1000])
@pytest.mark.slow
def test_a_language_of_few_documents_is_weighed_as_if_it_were_alone(documents):
    """Plain tfidf brings its unrelated texts near each other, because function words decide."""
    few, many = languages(0, 30, 1), languages(1, documents, 2)

    def apart(weighting, learned):
        rows = Recipe(ngram=1, weighting=weighting).fit(learned).batch(few).rows[:, 0]
        first, second = np.triu_indices(len(few), 1)
        return float(np.bitwise_count(rows[first] ^ rows[second]).mean())

    alone = apart("tfidf", few)
    assert apart("balanced-tfidf", few) == alone
    assert apart("tfidf", few + many) < alone - 5
    assert abs(apart("balanced-tfidf", few + many) - alone) < 2


@pytest.mark.parametrize(("options", "counted"), [
    ({}, Counted("sign", alike=False)), ({"weighting": "tf"}, Counted("sign", alike=False)),
    ({"weighting": "binary"}, Counted("sign", alike=True)),
    ({"projection": "ternary"}, Counted("ternary", alike=False)),
    ({"projection": "gaussian"}, None),
    ({"weighting": "idf"}, None), ({"weighting": "given"}, None),
])  # fmt: skip
def test_sums_are_counted_where_short_texts_have_equal_weights(options, counted):
    assert counted_of(Recipe(ngram=1, **options)) == counted
    assert set(COUNTED_PROJECTIONS) == set(NUMBERS)
    assert counted_of(None) is None
