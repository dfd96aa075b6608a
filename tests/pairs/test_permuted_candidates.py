"""Candidates in permuted rows: those that the rule says, each once, as many as are asked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.pairs import permuted_candidates
from simindex.pairs.all_pairs import search_of
from simindex.pairs.find_all import partition
from simindex.pairs.live_rows import StoredRows
from simindex.pairs.permuted_candidates import Order, Orders, chosen, orders_of
from simindex.pairs.tiles import Room
from simindex.planning.similarity import Similar, similar
from simindex.records.sketches import packed
from simindex.storage.tables.table import sort_table

ASKED = similar(0.9, h=None, recall=1.0, bits=64, sketch_bits=512)
FEW = Orders(3, 4, 0.3)


def columns(word: int) -> list[int]:
    """The bits of a word, the top one first."""
    return [(word >> (63 - bit)) & 1 for bit in range(64)]


def pairs_of(rng: np.random.Generator, count: int, cosine: float) -> tuple[Any, Any]:
    """Fingerprints and sketches of random documents, then those of others at the cosine to them."""
    flipped = np.arccos(cosine) / np.pi
    bits = rng.integers(0, 2, (count, 576), np.uint8)
    both = np.concatenate([bits, bits ^ (rng.random((count, 576)) < flipped)])
    words = np.packbits(both, axis=1).view(">u8").astype(np.uint64)
    return words[:, :1].copy(), words[:, 1:].copy()


def found_of(stored: StoredRows, room: Room, *, collapse: bool = False, threads: int = 1) -> Any:
    """The ids of pairs, each with the smaller first, and their distances."""
    found = list(search_of(
        stored, ASKED, h=ASKED.h, room=room, collapse=collapse, threads=threads
    ))
    a = np.concatenate([part.a_ids for part in found])
    b = np.concatenate([part.b_ids for part in found])
    distance = np.concatenate([part.distance for part in found])
    return sorted(zip(
        np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), distance.tolist(), strict=True
    ))


def test_an_order_moves_each_bit_to_a_place_of_its_own() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 1 << 64, (50, 1), np.uint64)
    first, *others = orders_of(4)
    assert first.tolist() == list(range(64))
    np.testing.assert_array_equal(Order(first)(rows), rows)
    for places in others:
        assert sorted(places.tolist()) == list(range(64)) != places.tolist()
        moved, back = Order(places)(rows), Order(np.argsort(places))
        np.testing.assert_array_equal(back(moved), rows)
        assert back(moved[:, 0]).tolist() == rows[:, 0].tolist()
        for word, other in zip(rows[:, 0].tolist(), moved[:, 0].tolist(), strict=True):
            for bit, place in enumerate(places.tolist()):
                assert (word >> bit) & 1 == (other >> place) & 1
    # Another order would give other pairs for the same documents.
    assert others[0][:8].tolist() == [52, 13, 12, 54, 1, 22, 27, 47]
    assert [order.tolist() for order in orders_of(2)] == [first.tolist(), others[0].tolist()]


@pytest.mark.parametrize("room", [(1000, 5000), (64, 40)])
@pytest.mark.parametrize("parts", [1, 3])
def test_candidates_agree_on_a_block_in_one_order(
    monkeypatch: pytest.MonkeyPatch, room: tuple[int, int], parts: int
) -> None:
    """Each pair once, whatever fits the memory, with rows that are equal, and deleted ones."""
    monkeypatch.setattr(permuted_candidates, "chosen", lambda rows, similar: FEW)
    rng = np.random.default_rng(parts)
    rows, sketch = pairs_of(rng, 150, 0.93)
    rows[10:40], sketch[10:40] = rows[10], sketch[10]  # a hot document
    rows[50:60] = rows[50]  # of one fingerprint, with other sketches
    ids = rng.permutation(len(rows)).astype(np.uint64)
    tables = [
        sort_table("part", rows[some], ids[some], None, horizon=0,
                   sketches=packed(sketch[some], None))
        for some in np.array_split(np.arange(len(rows)), parts)
    ]
    stored = StoredRows(tables, None, words=1, numbered=True)
    bits = np.array([columns(word) for word in rows[:, 0].tolist()])
    one, other = np.tril_indices(len(rows), -1)
    differ = bits[one] != bits[other]
    apart = np.bitwise_count(sketch[one] ^ sketch[other]).sum(axis=1)
    agree = np.zeros(len(one), np.bool_)
    for places in orders_of(FEW.orders):
        # Places count from the lowest bit, columns from the top one.
        moved = 63 - np.argsort(places)[::-1]
        for first, width in partition(64, FEW.blocks).tolist():
            agree |= ~differ[:, moved[first : first + width]].any(axis=1)
    near = agree & (differ.sum(axis=1) <= ASKED.h) & (apart <= ASKED.most)
    a, b = np.sort([ids[one[near]], ids[other[near]]], axis=0)
    expected = zip(a.tolist(), b.tolist(), apart[near].tolist(), strict=True)
    every = found_of(stored, Room(*room))
    assert every == sorted(expected) and 400 < len(every) < 800
    assert found_of(stored, Room(*room), threads=2) == every
    collapsed = found_of(stored, Room(*room), collapse=True)
    assert set(collapsed) < set(every)


@pytest.mark.parametrize("recall", [1.0, 0.95])
def test_so_many_pairs_at_the_similarity_are_candidates(recall: float) -> None:
    """The share that is promised, of pairs that are drawn at the cosine."""
    asked = similar(0.9, h=None, recall=recall, bits=64, sketch_bits=512)
    rows, _ = pairs_of(np.random.default_rng(5), 20_000, 0.9)
    different = rows[:20_000, 0] ^ rows[20_000:, 0]
    near = np.bitwise_count(different) <= asked.h
    for number in (1_000_000, 10_000_000, 100_000_000):
        plan = chosen(number, asked)
        assert plan is not None
        agree = np.zeros(20_000, np.bool_)
        for places in orders_of(plan.orders):
            moved = Order(places)(different)
            for first, width in partition(64, plan.blocks).tolist():
                agree |= moved << np.uint64(first) >> np.uint64(64 - width) == 0
        share = float(np.mean(agree & near))
        assert plan.share >= (0.85 if recall == 1.0 else recall)
        assert abs(share - plan.share) < 0.008


def test_few_rows_wide_rows_and_rows_without_sketches_are_all_compared() -> None:
    assert chosen(200_000, ASKED) is None
    assert chosen(10**7, ASKED.compared_by(0)) is None
    wide = similar(0.9, h=None, recall=1.0, bits=128, sketch_bits=512)
    assert chosen(10**7, wide) is None
    near = similar(0.99, h=None, recall=1.0, bits=64, sketch_bits=512)
    plan = chosen(10**7, near)
    assert plan is None or plan.share >= 0.85


def test_pairs_say_how_candidates_are_found(
    monkeypatch: pytest.MonkeyPatch, index_path: Path
) -> None:
    """And `method="blocks"` finds all of them."""
    rows, sketch = pairs_of(np.random.default_rng(2), 400, 0.95)
    asked = IndexOptions(sketch_bits=512)
    told: list[tuple[int, int]] = []
    with simindex.open(index_path, "n", options=asked) as index:
        index.append(Batch(rows, ids=np.arange(800, dtype=np.uint64), sketch=sketch))
        index.commit()
        exact = list(index.pairs(similarity=0.9))
        monkeypatch.setattr(permuted_candidates, "chosen", partial(forced, asked=ASKED))
        some = list(index.pairs(similarity=0.9, progress=lambda *done: told.append(done)))
        every = list(index.pairs(similarity=0.9, method="blocks"))
        clusters = index.clusters(similarity=0.9)
    assert "(exact)" in every[0].guarantee and every[0].guarantee == exact[0].guarantee
    orders = "that agree on one of 4 blocks in one of 3 orders of bits"
    assert f"({orders}), with 0.30" in some[0].guarantee
    assert set(named(some)) < set(named(exact)) and named(every) == named(exact)
    assert clusters.clusters == len(set(named(some)))
    assert told == sorted(told) and told[-1] == (800, 800)


def forced(rows: int, found: Similar, *, asked: Similar) -> Orders:
    assert (rows, found) == (800, asked)
    return FEW


def named(parts: Any) -> list[tuple[int, int]]:
    return sorted(
        pair for part in parts for pair in zip(part.a.tolist(), part.b.tolist(), strict=True)
    )
