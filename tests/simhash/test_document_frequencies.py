"""Document frequencies against exact counting: limits, merging, bytes, memory."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import operator
import pickle
import tracemalloc
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from hashlib import blake2b

import msgpack
import numpy as np
import pytest
import simhash_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    InvalidBatch,
    InvalidOption,
    RecipeMismatch,
)
from simindex.simhash import document_frequencies, recipe_bytes
from simindex.simhash.document_frequencies import DocumentFrequencies
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import STEPS_PER_UNIT, idf_step

Corpus = list[set[int]]
"""Each document as the set of its features."""


def added(counted: DocumentFrequencies, corpus: Corpus) -> DocumentFrequencies:
    """Count the documents with one call."""
    exact = sorted(Counter(itertools.chain.from_iterable(corpus)).items())
    hashes = np.array([feature for feature, _ in exact], dtype=np.uint64)
    counted.add(hashes, np.array([n for _, n in exact], dtype=np.uint32), len(corpus))
    return counted


def shown(counted: DocumentFrequencies) -> dict[int, int]:
    assert counted.hashes.dtype == np.uint64 and counted.counts.dtype == np.uint32
    assert counted.hashes.tolist() == sorted(set(counted.hashes.tolist()))
    return dict(zip(counted.hashes.tolist(), counted.counts.tolist(), strict=True))


@pytest.fixture
def soon_settled(monkeypatch):
    """Tables that are rewritten after a few features and in small ranges."""
    monkeypatch.setattr(document_frequencies, "_PENDING_FEATURES", 150)
    monkeypatch.setattr(document_frequencies, "_RANGE_FEATURES", 3)


# Few features that are common and many that are rare, up to both ends of a hash.
features = st.one_of(
    st.integers(0, 6), st.integers(0, 60), st.sampled_from([2**64 - 1, 2**63, 2**63 - 1])
)


documents = st.lists(st.sets(features, max_size=12), max_size=12)


# Parts that one process counts after another, by process.
shards = st.lists(st.lists(documents, max_size=6), min_size=1, max_size=4)


@pytest.mark.usefixtures("soon_settled")
@given(shards=shards, asked=st.booleans())
@pytest.mark.slow
def test_counts_are_exact_up_to_the_limit(shards, asked):
    """However documents are grouped, ordered and spread over processes."""
    exact = Counter(itertools.chain.from_iterable(itertools.chain(*itertools.chain(*shards))))
    parts = []
    for shard in shards:
        counted = DocumentFrequencies("s", max_features=max(1, len(exact)))
        for corpus in shard:
            added(counted, corpus)
            if asked:
                len(counted)
        parts.append(counted)
    whole = reduce(operator.add, parts)
    assert shown(whole) == exact
    assert whole.forgotten == 0
    assert whole.documents == sum(len(corpus) for shard in shards for corpus in shard)


@pytest.mark.usefixtures("soon_settled")
@given(shards=shards, max_features=st.integers(1, 12), asked=st.booleans())
@pytest.mark.slow
def test_beyond_the_limit_counts_are_short_by_no_more_than_is_said(shards, max_features, asked):
    """The invariants of the module, also through merges; exact counts are those of the test."""
    exact: Counter[int] = Counter()
    whole = DocumentFrequencies("s", max_features=max_features)
    for shard in shards:
        counted = DocumentFrequencies("s", max_features=max_features)
        for corpus in shard:
            added(counted, corpus)
            exact.update(itertools.chain.from_iterable(corpus))
            if asked:
                len(counted)
        whole = whole + counted
    kept = shown(whole)
    assert len(kept) <= max_features
    for feature, truth in exact.items():
        assert kept.get(feature, 0) <= truth <= kept.get(feature, 0) + whole.forgotten
    assert set(kept) <= set(exact)
    assert max(kept.values(), default=0) + whole.forgotten <= whole.documents
    assert whole.forgotten * (max_features + 1) <= exact.total()
    if whole.documents:
        table = whole.table()
        for feature in [*exact, 61]:
            truth = math.log((1 + whole.documents) / (1 + exact[feature])) + 1
            allowed = math.log(1 + whole.forgotten) / 2 + 0.51 / STEPS_PER_UNIT
            assert abs(table.idf(feature) - truth) <= allowed
        assert (table.steps < table.unseen).all()


@pytest.mark.usefixtures("soon_settled")
@given(one=documents, other=documents, limits=st.tuples(*2 * [st.integers(1, 9)]))
@pytest.mark.slow
def test_the_order_of_a_merge_makes_no_difference(one, other, limits):
    a = added(DocumentFrequencies("s", max_features=limits[0]), one)
    b = added(DocumentFrequencies("s", max_features=limits[1]), other)
    before = a.to_bytes(), b.to_bytes()
    assert (a + b).to_bytes() == b.merge(a).to_bytes()
    assert (a + b).max_features == min(limits)
    assert (a.to_bytes(), b.to_bytes()) == before


def test_the_rarest_are_forgotten_and_the_frequent_kept():
    """2,000 rare features pass by a table of 50; the ten common ones stay, nearly exact."""
    counted = DocumentFrequencies(max_features=50)
    for number in range(200):
        added(counted, [{*range(10), *range(1000 + 10 * number, 1010 + 10 * number)}])
        len(counted)
    assert set(range(10)) <= set(shown(counted))
    assert 0 < counted.forgotten <= 4000 // 51
    unseen, frequent = counted.table().unseen, counted.table().idf(3)
    assert frequent * STEPS_PER_UNIT < unseen
    # The most that could be missing is known, so a feature that was not kept weighs less than one
    # that certainly never occurred.
    assert idf_step(200, counted.forgotten) < unseen < idf_step(200, 0)


def test_no_more_is_forgotten_than_the_limit_asks():
    counted = added(DocumentFrequencies(max_features=2), [{1, 2, 3}, {1, 2}, {1, 2}, {1}, {1}])
    assert shown(counted) == {1: 4, 2: 2}
    assert counted.forgotten == 1


def test_idf_needs_a_document():
    with pytest.raises(InvalidOption, match="learned from documents"):
        DocumentFrequencies().table()
    empty = added(DocumentFrequencies(), [set(), set()])
    assert len(empty.table()) == 0 and empty.table().documents == 2
    assert empty.table().unseen == idf_step(2, 0)


COUNTED = added(
    DocumentFrequencies("a source", max_features=4), [{1, 2}, {2, 3}, {5, 6, 2, 3}, set()]
)


def test_bytes_give_back_what_was_counted():
    assert COUNTED.forgotten == 1  # so the number is seen to travel
    pickled = pickle.loads(pickle.dumps(COUNTED))  # noqa: S301
    for again in (DocumentFrequencies.from_bytes(COUNTED.to_bytes()), pickled):
        assert shown(again) == shown(COUNTED) == {2: 2, 3: 1}
        assert (again.source, again.max_features) == ("a source", 4)
        assert (again.documents, again.forgotten) == (4, 1)
        assert again.to_bytes() == COUNTED.to_bytes()


def test_every_damaged_byte_is_noticed():
    content = COUNTED.to_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        with pytest.raises(CorruptFile):
            DocumentFrequencies.from_bytes(bytes(damaged))
    for end in range(len(content)):
        with pytest.raises(CorruptFile):
            DocumentFrequencies.from_bytes(content[:end])


def rewritten(version=1, hashes=(2, 3), counts=(2, 1), **changes) -> bytes:
    """Bytes with a valid digest, as another program could write them."""
    values = {
        "source": "a source", "max_features": 4, "documents": 4, "features": 2, "forgotten": 1,
        **changes,
    }  # fmt: skip
    header = msgpack.packb({name: value for name, value in values.items() if value is not ...})
    content = recipe_bytes._PREFIX.pack(b"SIMDOCFR", version, len(header)) + header
    content += np.array(hashes, "<u8").tobytes() + np.array(counts, "<u4").tobytes()
    return content + blake2b(content, digest_size=16).digest()


def test_a_newer_version_is_named():
    assert rewritten() == COUNTED.to_bytes()
    with pytest.raises(FormatTooNew, match="format 2"):
        DocumentFrequencies.from_bytes(rewritten(version=2))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 0}, {"source": 7}, {"source": ...}, {"max_features": 0}, {"max_features": 1},
        {"max_features": "4"}, {"documents": -1}, {"documents": 2}, {"documents": 2**32},
        {"documents": 4.0}, {"features": 1}, {"features": 3}, {"features": None},
        {"forgotten": 3}, {"forgotten": True}, {"hashes": (3, 2)}, {"hashes": (2, 2)},
        {"counts": (0, 1)}, {"counts": (4, 1)},
    ],
    ids=str,
)  # fmt: skip
def test_bytes_that_contradict_themselves_are_refused(changes):
    with pytest.raises(CorruptFile):
        DocumentFrequencies.from_bytes(rewritten(**changes))


def test_frequencies_of_different_features_are_not_merged():
    with pytest.raises(RecipeMismatch, match="same unit") as raised:
        DocumentFrequencies("one") + DocumentFrequencies("two")
    assert raised.value.data == {"found": "two", "expected": "one"}
    with pytest.raises(TypeError):
        DocumentFrequencies() + 1


@pytest.mark.parametrize("max_features", [0, -1, 2**32, 1.5, True, None])
def test_a_limit_out_of_range_is_refused(max_features):
    with pytest.raises(InvalidOption, match="max_features"):
        DocumentFrequencies(max_features=max_features)


@pytest.mark.parametrize(
    ("hashes", "counts", "documents"),
    [
        ([2, 1], [1, 1], 3), ([1, 1], [1, 1], 3), ([1, 2], [1], 3), ([1], [0], 3), ([1], [4], 3),
        ([1], [-1], 3), ([1], [1.0], 3), ([[1]], [[1]], 3), ([1], [1], -1), ([1], [1], 1.0),
    ],
)  # fmt: skip
def test_counts_that_cannot_be_are_refused(hashes, counts, documents):
    counted = DocumentFrequencies()
    with pytest.raises(InvalidBatch):
        counted.add(np.array(hashes, dtype=np.uint64), np.array(counts), documents)
    with pytest.raises(InvalidBatch, match="uint64"):
        counted.add(np.array([1], dtype=np.int64), np.array([1]), 1)
    assert (len(counted), counted.documents) == (0, 0)


def test_more_documents_than_a_count_can_hold_are_refused():
    counted = DocumentFrequencies()
    none = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint32)
    counted.add(*none, 2**32 - 1)
    with pytest.raises(InvalidOption, match="sample"):
        counted.add(*none, 1)
    with pytest.raises(InvalidOption, match="sample"):
        counted + added(DocumentFrequencies(), [set()])
    assert counted.documents == 2**32 - 1


def test_later_changes_of_the_callers_arrays_are_not_seen():
    counted = DocumentFrequencies()
    hashes, counts = np.array([7], dtype=np.uint64), np.array([1], dtype=np.uint32)
    counted.add(hashes, counts, 2)
    hashes[0], counts[0] = 8, 2
    assert shown(counted) == {7: 1}


def peak_of(call) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MAX_FEATURES = 1 << 18


PIECE = 1 << 12


def filled(seed: int) -> DocumentFrequencies:
    """Four times as many distinct features as the table holds, in documents of 4,096."""
    rng = np.random.default_rng(seed)
    counted = DocumentFrequencies(max_features=MAX_FEATURES)
    ones = np.ones(PIECE, dtype=np.uint32)
    for _ in range(4 * MAX_FEATURES // PIECE):
        counted.add(np.sort(rng.integers(0, 2**63, PIECE, dtype=np.uint64)), ones, 1)
    return counted


@pytest.fixture
def small_reserve(monkeypatch):
    """Without what is allowed beside the table, so that bytes a feature are seen."""
    monkeypatch.setattr(document_frequencies, "_PENDING_FEATURES", 0)
    monkeypatch.setattr(document_frequencies, "_RANGE_FEATURES", 1 << 12)


@pytest.mark.usefixtures("small_reserve")
@pytest.mark.slow
def test_adding_takes_at_most_32_bytes_a_feature():
    peak = peak_of(lambda: filled(1))
    assert 20 * MAX_FEATURES < peak <= 32 * MAX_FEATURES


@pytest.mark.usefixtures("small_reserve")
def test_merging_takes_at_most_64_bytes_a_feature_with_both_tables():
    ones = np.ones(MAX_FEATURES, dtype=np.uint32)

    def merged() -> None:
        rng = np.random.default_rng(2)
        parts = []
        for _ in range(2):
            counted = DocumentFrequencies(max_features=MAX_FEATURES)
            counted.add(np.sort(rng.integers(0, 2**63, MAX_FEATURES, dtype=np.uint64)), ones, 1)
            assert len(counted) == MAX_FEATURES
            parts.append(counted)
        assert (parts[0] + parts[1]).forgotten == 1

    peak = peak_of(merged)
    assert 40 * MAX_FEATURES < peak <= 64 * MAX_FEATURES


@pytest.mark.usefixtures("small_reserve")
def test_a_table_is_made_within_what_adding_takes():
    counted = filled(1)
    assert len(counted) > 1 << 16
    assert peak_of(counted.table) + 12 * len(counted) <= 32 * len(counted)


@pytest.mark.parametrize("features", [1, 1 << 12])
@pytest.mark.slow
def test_what_is_pending_takes_at_most_48_bytes_of_the_reserve(monkeypatch, features):
    """A millionth feature that came anew costs as much as the first, also one by one."""
    reserve = 1 << 16
    monkeypatch.setattr(document_frequencies, "_PENDING_FEATURES", reserve)
    rng = np.random.default_rng(5)
    pieces = np.sort(rng.integers(0, 2**63, (40 * reserve // (features + 64), features)))
    ones = np.ones(features, dtype=np.uint32)

    def adding() -> None:
        counted = DocumentFrequencies(max_features=1 << 10)
        for hashes in pieces.astype(np.uint64):
            counted.add(hashes, ones, 1)

    assert peak_of(adding) - pieces.nbytes <= 48 * reserve


def corpus_of(size: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(f"w{i}" for i in rng.integers(0, 60, 12)) for _ in range(size)]


@pytest.mark.parametrize("unit", ["word", "char"])
def test_texts_are_counted_as_by_the_oracle(unit):
    texts = [*corpus_of(30), "", "W1 w1 W1"]
    counted = Recipe(unit=unit, ngram=(1, 2)).document_frequencies(iter(texts))
    exact = oracle.document_frequencies(texts, unit, (1, 2))
    assert shown(counted) == {oracle.feature_hash(name, 0): n for name, n in exact.items()}
    assert counted.documents == 32


def test_the_source_is_what_decides_features_and_nothing_else():
    def source(**options) -> str:
        return Recipe(**options).document_frequencies([]).source

    same = [
        source(), source(bits=128), source(weighting="tfidf"), source(min_features=3),
        source(projection="gaussian"),
    ]  # fmt: skip
    assert len(set(same)) == 1
    others = [
        source(unit="char"), source(ngram=2), source(ngram=(3, 4)), source(seed=1),
        source(stop_words=["the"]), source(stemmer="english"),
        source(tokenizer=reversed_words),
    ]  # fmt: skip
    assert len({*same, *others}) == 1 + len(others)
    with pytest.raises(RecipeMismatch, match="other features"):
        Recipe(weighting="idf", seed=1).fit(Recipe().document_frequencies(["a"]))


def reversed_words(text: str) -> list[str]:
    return text.split()[::-1]


def test_a_limit_of_features_reaches_the_count():
    texts = [f"common w{i}" for i in range(40)]
    counted = Recipe(ngram=1).document_frequencies(texts, max_features=5)
    assert len(counted) <= 5 and counted.forgotten > 0
    with pytest.raises(InvalidOption, match="max_features"):
        Recipe().document_frequencies(texts, max_features=0)


@pytest.mark.slow
def test_processes_count_their_shards_and_the_results_are_merged():
    texts = corpus_of(60)
    recipe = Recipe(ngram=(1, 2), seed=5, weighting="tfidf")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        counting = recipe.document_frequencies
        parts = list(pool.map(counting, [texts[:10], texts[10:45], texts[45:]]))
    merged = reduce(operator.add, parts)
    assert merged.to_bytes() == recipe.document_frequencies(texts).to_bytes()
    assert recipe.fit(merged) == recipe.fit(texts)
    assert recipe.fit(merged).batch(texts).weights.tolist() == (
        recipe.fit(texts).batch(texts).weights.tolist()
    )
