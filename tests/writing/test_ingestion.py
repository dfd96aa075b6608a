"""Ingesting a batch is asking and adding its rows one after the other, in one commit.

The machine of `index_machine` goes on with two steps more, `ingest` and `seen_or_add`.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from index_machine import (
    STRUCTURES,
    IndexMachine,
    fingerprints,
    numbers,
    rows,
    weights_for,
)

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import (
    ClosedIndex,
    InvalidBatch,
    InvalidOption,
    ReadOnlyIndex,
    RecipeMismatch,
    StorageFull,
    TooManyMatches,
)
from simindex.writing import ingestion

Answer = tuple[int, int, Any]
"""(query, distance, name)."""

MATCHED = np.array([0b0000, 0b0001, 0b0011, 0b0111, 0b0000], dtype=np.uint64)
"""Rows at distances of 0 to 3."""


def within_oracle(values: Any, names: list[Any], h: int) -> set[Answer]:
    """Each row with the earlier rows of its batch, by brute force."""
    return {
        (query, distance, names[row])
        for query, row, distance in oracle.matches(values, values, h).tolist()
        if row < query
    }


def check_first(found: list[Answer], stored: set[Answer], inside: set[Answer]) -> None:
    """One true match for each query that has any, a stored one where there is one."""
    assert len({query for query, _, _ in found}) == len(found)
    assert {query for query, _, _ in found} == {query for query, _, _ in stored | inside}
    with_stored = {query for query, _, _ in stored}
    for answer in found:
        assert answer in (stored if answer[0] in with_stored else inside)


# The model ---------------------------------------------------------------------------------------


@dataclass
class GrowingModel(oracle.Model):
    """A model that knows which rows came one at a time, since their commits come by themselves."""

    keyed: bool = False
    fresh: int = 0
    changed: bool = False

    def append(self, fingerprints: Any, names: Any, came: int = 0) -> None:
        super().append(fingerprints, names, came)
        self.changed |= len(fingerprints) > 0 or self.fresh > 0
        self.fresh = 0

    def delete(self, names: Any) -> None:
        super().delete(names)
        self.changed |= bool(names) or not self.keyed

    def add_one(self, words: tuple[int, ...], name: Any) -> None:
        self.appended.append(oracle.Row(words, name, 0))
        self.fresh += 1

    def discard(self) -> None:
        super().discard()
        self.fresh, self.changed = 0, False

    def near_fresh(self, query: Any, h: int) -> set[Answer]:
        return set(oracle.Model(self.appended).query(query, h))


class IngestMachine(IndexMachine):
    """The index under the steps of its model, and ingests and single documents between them."""

    def __init__(self) -> None:
        super().__init__()
        self.model: GrowingModel = GrowingModel(keyed=self.keyed)

    @initialize(
        batch_rows=st.sampled_from([16, 64, 512]), min_merge=st.sampled_from([0, 2, 3]),
        structures=st.sampled_from(STRUCTURES),
    )
    def create(self, batch_rows: int, min_merge: int, structures: tuple[str, ...]) -> None:
        super().create(batch_rows=batch_rows, min_merge=min_merge, structures=structures)

    @rule(
        given=rows, h=st.integers(0, 5), first=st.booleans(), weighted=st.booleans(),
        threads=st.sampled_from([None, 1, 2, 3]), method=st.sampled_from(["auto", "psm", "scan"]),
    )
    def ingest(
        self, given: list[tuple[int, int]], h: int, first: bool, weighted: bool,
        threads: int | None, method: str,
    ) -> None:
        batch = self.batch(given, weighted)
        names = self.names([number for _, number in given])
        self.model.commit()  # what is buffered goes first
        stored = set(self.model.query(batch.rows, h))
        inside = within_oracle(batch.rows, names, h)
        self.model.append(batch.rows, names)
        self.model.commit()
        before = self.writer.generation
        found = self.writer.ingest(batch, h=h, first=first, threads=threads, method=method)
        assert self.writer.generation > before or not given
        answers = [(m.query, m.distance, m.key if self.keyed else m.id) for m in found]
        if first:
            check_first(answers, stored, inside)
        else:
            assert sorted(answers) == sorted(stored | inside)
        triples = [(m.query, m.distance, m.id) for m in found]
        assert triples == sorted(triples)
        assert found.stats.guarantee == "exact"

    @rule(
        value=fingerprints, number=numbers, h=st.integers(0, 5), weighted=st.booleans(),
        commit_s=st.sampled_from([None, 3600.0]),
    )
    def seen_or_add(
        self, value: int, number: int, h: int, weighted: bool, commit_s: float | None
    ) -> None:
        batch = self.batch([(value, number)], weighted)
        (name,) = self.names([number])
        model = self.model
        if model.changed or model.fresh >= self.writer.options.seal_rows:
            model.commit()
        near = set(model.query(batch.rows, h)) | model.near_fresh(batch.rows, h)
        found = self.writer.seen_or_add(batch, h=h, commit_s=commit_s)
        if found is None:
            assert near == set()
            model.add_one((value,), name)
        else:
            answer = (found.query, found.distance, found.key if self.keyed else found.id)
            assert answer in near
            assert found.distance == min(distance for _, distance, _ in near)


class KeyedIngestMachine(IngestMachine):
    """The same with keys for names."""

    keyed = True


@pytest.mark.slow
@pytest.mark.parametrize("machine", [IngestMachine, KeyedIngestMachine], ids=["ids", "keys"])
def test_ingest_is_asking_and_adding_in_turn(machine: type[RuleBasedStateMachine]) -> None:
    """Some hundred steps; `tools/torture.py model` takes 100,000."""
    run_state_machine_as_test(
        machine, settings=settings(max_examples=16, stateful_step_count=35)
    )


# Within a batch ----------------------------------------------------------------------------------


@settings(max_examples=200)
@given(
    data=st.data(), words=st.sampled_from([1, 2, 3]), h=st.sampled_from([0, 1, 3, 5, 20, 63]),
    crowded=st.booleans(), leaf=st.sampled_from([1, 2, 8]),
)
@pytest.mark.slow
def test_rows_of_a_batch_match_the_rows_before_them(
    data: st.DataObject, words: int, h: int, crowded: bool, leaf: int
) -> None:
    """Whichever way they are looked for; `crowded` takes the way of dense ones."""
    seed, n = data.draw(st.integers(0, 2**32)), data.draw(st.integers(0, 90))
    values = oracle.skewed(np.random.default_rng(seed), n, words, templates=4, flips=8)
    with pytest.MonkeyPatch.context() as patch:
        if crowded:
            patch.setattr(ingestion, "FEW_PAIRS", 0)
            patch.setattr(ingestion, "LEAF_ROWS", leaf)
            patch.setattr(ingestion, "FEW_QUERIES", 2)
        inside = ingestion.within(values, h, first=False, threads=2, limit_bytes=1 << 40)
        one_each = ingestion.within(values, h, first=True, threads=1, limit_bytes=0)
    expected = within_oracle(values, list(range(n)), h)
    found = list(zip(inside.row.tolist(), inside.distance.tolist(), inside.earlier.tolist(),
                     strict=True))
    assert len(set(found)) == len(found)
    assert set(found) == expected
    check_first(
        list(zip(one_each.row.tolist(), one_each.distance.tolist(), one_each.earlier.tolist(),
                 strict=True)),
        set(), expected,
    )


@pytest.mark.slow
def test_a_million_equal_rows_have_one_match_each(index_path: Path) -> None:
    """And all matches of them are refused with their number, before anything is kept."""
    values = np.zeros(1_000_000, np.uint64)
    with simindex.open(index_path, "n") as index:
        index.append(values[:1] + np.uint64(1), ids=[7])
        index.commit()
        with pytest.raises(TooManyMatches, match=r"5e\+11 matches") as caught:
            index.ingest(values, h=0)
        assert caught.value.data["found"] == 499_999_500_000
        assert len(index) == 1
        started = time.process_time()
        found = index.ingest(values, h=0, first=True)
        assert time.process_time() - started < 20
        assert len(found) == 999_999
        assert found.query.tolist() == list(range(1, 1_000_000))
        assert not found.distance.any()
        found = index.ingest(values[:1000], h=1, first=True)
        assert len(found) == 1000


@pytest.mark.slow
def test_rows_that_crowd_are_not_all_compared() -> None:
    """Numbers from 0 to 2^17 - 1: each has 833 others within 3 bits."""
    values = np.arange(1 << 17, dtype=np.uint64)[:, None]
    with pytest.raises(TooManyMatches, match="matches"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingestion, "MOST_MATCHES", 1 << 20)
        ingestion.within(values, 3, first=False, threads=1, limit_bytes=1 << 40)
    inside = ingestion.within(values, 3, first=True, threads=1, limit_bytes=0)
    assert np.array_equal(np.sort(inside.row), np.arange(1, 1 << 17))
    assert (inside.earlier < inside.row).all()
    apart = np.bitwise_count(values[inside.row, 0] ^ values[inside.earlier, 0])
    assert np.array_equal(apart, inside.distance)
    assert inside.distance.max() <= 3


# Ingest ------------------------------------------------------------------------------------------


def answers(found: simindex.Matches) -> list[tuple[int, int, Any]]:
    return [(m.query, m.distance, m.id if m.key is None else m.key) for m in found]


def test_matches_within_a_batch_carry_their_keys(index_path: Path) -> None:
    keys = ["a", "b", "c", "d", "e"]
    expected = sorted(within_oracle(MATCHED, keys, 1))
    with simindex.open(index_path, "n", options=IndexOptions(keys=True)) as index:
        found = index.ingest(MATCHED, keys=keys, h=1)
        assert sorted(answers(found)) == expected
        assert sorted(answers(pickle.loads(pickle.dumps(found)))) == expected  # noqa: S301
        more = index.ingest(Batch(MATCHED[:2], keys=["f", "g"]), h=0)
        assert sorted(answers(more)) == [(0, 0, "a"), (0, 0, "e"), (1, 0, "b")]
        assert len(index) == 7


def test_rows_without_names_are_numbered_as_by_append(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.array([2**63], dtype=np.uint64))
        found = index.ingest(MATCHED, h=0)
        assert answers(found) == [(4, 0, 1)]
        assert index.append(MATCHED[:1]).tolist() == [6]


def test_rows_of_one_id_are_one_match(index_path: Path) -> None:
    """Stored, in the batch, or both."""
    with simindex.open(index_path, "n") as index:
        index.append(MATCHED[:1], ids=[5])
        found = index.ingest(MATCHED, ids=[5, 5, 5, 6, 5], h=3)
        assert answers(found) == sorted(
            set(oracle.answers(MATCHED[:1], [5], MATCHED, 3))
            | within_oracle(MATCHED, [5, 5, 5, 6, 5], 3)
        )


@pytest.mark.parametrize("bits", [64, 128, 1024])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.slow
def test_threads_do_not_show(
    rng: np.random.Generator, tmp_path: Path, bits: int, first: bool
) -> None:
    values = oracle.skewed(rng, 12_000, bits // 64, templates=3000)
    seen = []
    for threads in (1, 2, 3):
        path = tmp_path / f"{threads}"
        with simindex.open(path, "n", options=IndexOptions(bits=bits)) as index:
            index.append(values[:6000], ids=np.arange(6000))
            found = index.ingest(
                values[6000:], ids=np.arange(6000, 12_000), h=3, threads=threads, first=first
            )
            seen.append((found.query.tobytes(), found.id.tobytes(), found.distance.tobytes()))
            assert len(found) > 1000
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.slow
def test_recall_below_one_concerns_the_index_only(
    rng: np.random.Generator, index_path: Path
) -> None:
    weights = oracle.normal_weights(rng, 20_000)
    near, _ = oracle.near_duplicates(rng, weights[:2000], 3)
    values = oracle.signs(near)
    with simindex.open(index_path, "n") as index:
        index.append(oracle.signs(weights), weights=weights)
        index.commit()
        inner = oracle.flip(rng, values, 2)
        both = np.concatenate([values, inner])
        batch = Batch(both, weights=np.concatenate([near, weights_for(inner[:, 0])]),
                      ids=np.arange(50_000, 50_000 + len(both)))
        stored = set(oracle.answers(oracle.signs(weights), np.arange(20_000), both, 3))
        found = index.ingest(batch, h=3, recall=0.8, method="psm")
        assert found.stats.guarantee.startswith("assumed: recall >= 0.8")
        assert found.stats.guarantee.endswith("; exact within the batch")
        assert not found.stats.exact
        answered = set(answers(found))
        inside = within_oracle(both, list(range(50_000, 50_000 + len(both))), 3)
        assert inside <= answered
        assert answered <= stored | inside
        assert len(stored & answered) > len(stored) / 2


def test_what_is_buffered_is_committed_first_and_matched(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(MATCHED[:1], ids=[1])
        index.commit()
        generation = index.generation
        index.append(MATCHED[:1], ids=[2])
        index.delete(ids=[1])
        found = index.ingest(MATCHED[:1], ids=[3], h=0)
        assert found.id.tolist() == [2]
        assert index.generation == generation + 2


def test_a_batch_of_some_rows_is_a_segment_at_once(index_path: Path) -> None:
    """So that the next one is looked up in permuted tables."""
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=640)) as index:
        for count, segments, pending in [(9, 0, 9), (9, 0, 18), (10, 1, 0), (9, 1, 9)]:
            index.ingest(np.arange(count, dtype=np.uint64), first=True)
            stats = index.stats()
            assert (stats.segments, stats.pending_rows) == (segments, pending)
        assert index.check() == []


def test_an_ingest_that_is_refused_changes_nothing(index_path: Path) -> None:
    """What had been buffered is not even committed."""
    with simindex.open(index_path, "n") as index:
        index.append(MATCHED[:1], ids=[1])
        for bad, error in [
            (lambda: index.ingest(MATCHED.astype(np.int64)), InvalidBatch),
            (lambda: index.ingest(MATCHED, keys=list("abcde")), InvalidBatch),
            (lambda: index.ingest(MATCHED, ids=[1]), InvalidBatch),
            (lambda: index.ingest(MATCHED, h=-1), InvalidOption),
            (lambda: index.ingest(MATCHED, recall=0), InvalidOption),
            (lambda: index.ingest(MATCHED, method="bphs:G=9"), InvalidOption),
            (lambda: index.ingest(MATCHED, threads=0), InvalidOption),
        ]:
            with pytest.raises(error):
                bad()
            assert index.generation == 1
        index.commit()
        assert len(index) == 1
        assert len(index.ingest(MATCHED[:0])) == 0
        assert index.ingest(MATCHED[:0], first=True).keys() is None
        assert len(index) == 1
    with simindex.open(index_path) as reader:
        with pytest.raises(ReadOnlyIndex):
            reader.ingest(MATCHED)
        with pytest.raises(ReadOnlyIndex):
            reader.seen_or_add(Batch(MATCHED[:1]))
    for call in (lambda: index.ingest(MATCHED), lambda: index.seen_or_add(Batch(MATCHED[:1]))):
        with pytest.raises(ClosedIndex):
            call()


def test_an_ingest_that_fails_leaves_the_recipe_out(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index takes the recipe of its first batch, and only with that batch."""
    recipe, other = simindex.Recipe(), simindex.Recipe(ngram=2)
    with simindex.open(index_path, "n") as index:
        with monkeypatch.context() as patch:
            def fail(*_: Any) -> None:
                raise StorageFull("no space")

            patch.setattr(index._handle.writer.committer, "append", fail)
            with pytest.raises(StorageFull):
                index.ingest(recipe.batch(["some words of a text"]))
        assert index.recipe is None
        assert index.generation == 1
        index.ingest(other.batch(["some words of a text"]))
        assert index.recipe == other
        with pytest.raises(RecipeMismatch):
            index.ingest(recipe.batch(["some words of a text"]))
    with simindex.open(index_path) as reader:
        assert reader.recipe == other
        assert len(reader) == 1


# One document at a time --------------------------------------------------------------------------
