"""Who lost a shard was told to build it again, and the map did not name what that made.

A shard has a uuid of its own, so one that is built again has another seal. What helps is a copy, or
to build the collection again: without its map in the same folder, where whole shards are used.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sharded import answer, families

import simindex
from simindex.distributed import Shards, build_shard, plan_shards
from simindex.errors import CorruptFile, IndexNotFound, SimindexError

ROWS = families(9, 600)

LOST: list[Callable[[Path], object]] = [
    shutil.rmtree, lambda path: next((path / "segments").iterdir()).write_bytes(b"less"),
]


@pytest.mark.parametrize("lost", LOST)
def test_a_lost_shard_comes_back_by_building_the_collection_again(
    tmp_path: Path, lost: Callable[[Path], object]
) -> None:
    root = tmp_path / "s"
    options = simindex.IndexOptions(batch_rows=100)
    made = Shards.build(root, simindex.Batch(ROWS), 3, options=options)
    expected, before = answer(made.query(ROWS[:50], h=3)), made.shard_map
    shard = before.shards[1]
    lost(Path(shard.path))
    with pytest.raises((IndexNotFound, CorruptFile)) as raised:
        made.query(ROWS[:50], h=3)
    assert raised.value.remedy is not None
    assert raised.value.remedy.endswith("a copy, or build the collection again")

    # That shard alone is not enough: the map names another one.
    shutil.rmtree(shard.folder)
    plan = plan_shards(len(ROWS), 3, options=options)
    rows = simindex.Batch(ROWS, ids=np.arange(len(ROWS), dtype=np.uint64))
    again = build_shard(plan, 1, [plan.part(1, rows)], root)
    assert (again.folder, again.seal != shard.seal) == (shard.folder, True)
    with pytest.raises(SimindexError, match="shard 1"):
        Shards(root)

    (root / "shards.json").unlink()
    built = Shards.build(root, simindex.Batch(ROWS), 3, options=options)
    assert [built.shard_map.shards[place] for place in (0, 2)] == [
        before.shards[place] for place in (0, 2)
    ]
    assert answer(built.query(ROWS[:50], h=3)) == expected
    assert built.verify() == []
