"""Pairs of two shards: each once, from either side, of representatives if equal rows collapse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
from sharded import answer, families

import simindex
from simindex.distributed import (
    Shards,
    merge_pairs,
    open_shard,
    pair_parts,
    pair_shards,
    shard_pairs,
)
from simindex.distributed.shard_pairs import pair_tasks
from simindex.records.pairs import CollapsedPairs

ROWS = families(1, 120)


@pytest.fixture
def made(tmp_path: Path) -> Shards:
    return Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2)


def test_both_orders_and_all_parts_give_the_same_pairs(
    made: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = made.shard_map.shards
    expected = pair_shards(one, other, 3)
    near = oracle.matches(ROWS[60:], ROWS[:60], 3)
    columns = np.stack([expected.a, expected.b - np.uint64(60), expected.distance], axis=1)
    assert sorted(columns.tolist()) == sorted(near.tolist())
    assert answer(pair_shards(other, one, 3)) == answer(expected)
    monkeypatch.setattr(shard_pairs, "ASKED_ROWS", 7)
    assert len(list(pair_parts(one, other, 3))) > 2
    assert answer(pair_shards(one, other, 3)) == answer(expected)
    with open_shard(one) as first, open_shard(other) as second:
        assert answer(pair_shards(first, second, 3)) == answer(expected)
        assert answer(pair_shards(first, first, 3)) == answer(pair_shards(one, one, 3))


def test_only_the_first_of_equal_rows_is_in_collapsed_pairs(made: Shards) -> None:
    one, other = made.shard_map.shards
    found = pair_shards(one, other, 3, collapse_equal=True)
    assert isinstance(found, CollapsedPairs)
    first_ids = {
        start + half.index(word)
        for start, half in ((0, ROWS[:60, 0].tolist()), (60, ROWS[60:, 0].tolist()))
        for word in half
    }
    assert set(found.a.tolist()) | set(found.b.tolist()) <= first_ids
    plain = pair_shards(one, other, 3)
    kept = [
        place for place, pair in enumerate(plain) if pair.a in first_ids and pair.b in first_ids
    ]
    assert len(kept) < len(plain)
    assert found.a.tolist() == plain.a[kept].tolist()
    assert found.b.tolist() == plain.b[kept].tolist()


def test_shards_too_far_apart_are_no_task(tmp_path: Path) -> None:
    made = Shards.build(tmp_path / "s", simindex.Batch(ROWS), 8, by="prefix")
    shards = made.shard_map.shards
    tasks = pair_tasks(shards, 1)
    assert len(tasks) < len(pair_tasks(shards, 64)) == 36
    apart = [pair for pair in pair_tasks(shards, 64) if pair not in tasks]
    assert len(merge_pairs(pair_shards(one, other, 1) for one, other in apart)) == 0


@pytest.mark.parametrize("near", [{"h": 1}, {"similarity": 0.9}])
@pytest.mark.parametrize("collapse", [False, True])
def test_a_part_without_pairs_is_like_one_with_pairs(
    tmp_path: Path, near: dict[str, float], collapse: bool
) -> None:
    """The same columns, so that parts of an answer are one table, and the same groups."""
    pa = pytest.importorskip("pyarrow")
    far, rows = np.array([0, 2**64 - 1], np.uint64), np.full(2, 2**32 - 1, np.uint64)
    batch = simindex.Batch(np.concatenate([far, rows]), keys=list("abcd"))
    made = Shards.build(tmp_path / "s", batch, 4)
    parts = list(made.pairs(**near, collapse_equal=collapse))
    assert [len(part) for part in parts].count(0) == 9
    assert len({type(part) for part in parts}) == 1
    assert len({pa.table(part).schema for part in parts}) == 1
    assert len({(part.similarity_bits, part.guarantee) for part in parts}) == 1
    if collapse:
        assert len({pa.table(part.groups).schema for part in parts}) == 1
