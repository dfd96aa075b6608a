"""Merged answers do not depend on which shard answers first, and travel as others do."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sharded import answer, families

import simindex
from simindex.distributed import (
    Shards,
    merge_matches,
    merge_pairs,
    merge_top,
    pair_shards,
    query_shard,
    top_shard,
)
from simindex.errors import InvalidOption


@pytest.fixture
def made(tmp_path: Path) -> Shards:
    fingerprints = families(1, 90)
    keys = [f"k{number}" for number in range(90)]
    return Shards.build(tmp_path / "s", simindex.Batch(fingerprints, keys=keys), 3)


def test_order_and_tree_of_merging_do_not_matter(
    made: Shards, rng: np.random.Generator
) -> None:
    batch = simindex.Batch(families(1, 90)[:30])
    shards = made.shard_map.shards
    for limit in (None, 1, 3):
        parts = [query_shard(shard, batch, 3, limit=limit) for shard in shards]
        expected = answer(merge_matches(parts, 30, limit=limit))
        for order in ([2, 0, 1], [1, 2, 0]):
            turned = [pickle.loads(pickle.dumps(parts[place])) for place in order]  # noqa: S301
            assert answer(merge_matches(turned, 30, limit=limit)) == expected
        first = merge_matches(parts[:2], 30, limit=limit)
        assert answer(merge_matches([parts[2], first], 30, limit=limit)) == expected
    tops = [top_shard(shard, batch, 40) for shard in shards]
    assert {part.id.shape[1] for part in tops} == {30}
    expected = answer(merge_top(tops, 40))
    assert answer(merge_top(pickle.loads(pickle.dumps(tops[::-1])), 40)) == expected  # noqa: S301
    assert answer(merge_top([merge_top(tops[1:], 40), tops[0]], 40)) == expected


def test_no_keys_of_bytes_are_a_column_of_bytes(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    fingerprints = families(1, 90)
    keys = [b"k%d" % number for number in range(90)]
    shards = Shards.build(tmp_path / "s", simindex.Batch(fingerprints, keys=keys), 3)
    for batch in (fingerprints[:5], fingerprints[:5] ^ np.uint64(0x5555555555555555)):
        found = shards.query(simindex.Batch(batch), h=0)
        table = pyarrow.table(found)
        assert pyarrow.types.is_large_binary(table.schema.field("key").type)
        assert table["key"].to_pylist() == found.keys()
    assert len(found) == 0
    nearest = pyarrow.table(shards.top(simindex.Batch(fingerprints[:1]), k=2))
    assert pyarrow.types.is_large_binary(nearest.schema.field("key").type)


def test_results_are_arrow_streams(made: Shards) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    batch = simindex.Batch(families(1, 90)[:30])
    found = made.query(batch, h=3)
    table = pyarrow.table(found)
    assert table.column_names == ["query", "id", "key", "distance"]
    assert table["key"].to_pylist() == found.keys()
    one, other = made.shard_map.shards[:2]
    table = pyarrow.table(pair_shards(one, other, 3))
    assert table.column_names == ["a", "b", "a_key", "b_key", "distance"]


def test_no_parts_of_pairs_are_no_pairs() -> None:
    assert len(merge_pairs([])) == 0


def test_no_answers_are_refused() -> None:
    with pytest.raises(InvalidOption, match="no answers"):
        merge_matches([], 3)
    with pytest.raises(InvalidOption, match="no answers"):
        merge_top([], 3)
