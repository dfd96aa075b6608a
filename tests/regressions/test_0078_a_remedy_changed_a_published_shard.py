"""What was said of a shard led its readers to change it, so that its collection refused it then.

A damaged file of permuted tables, and a method that a shard has no structure for, recommended
`simindex compact --structures`. That writes to a shard, which is what the map says of it no more.
Nothing that writes to an index takes a published shard any more, and remedies fit a shard.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sharded import answer, families

import simindex
from simindex.distributed import OpenShard, Shards, query_shard
from simindex.errors import CorruptFile, InvalidOption, ReadOnlyIndex

ROWS = families(7, 4000)

ALTERING = re.compile(r"compact|repair")


def built(root: Path, structures: tuple[str, ...], rows: Any = ROWS) -> Shards:
    options = simindex.IndexOptions(
        bits=simindex.Batch(rows).bits, batch_rows=500, structures=structures
    )
    return Shards.build(root, simindex.Batch(rows), 2, options=options)


@pytest.mark.parametrize("place", [100, 20_000])
def test_a_damaged_structure_of_a_shard_is_restored_with_its_shard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: int
) -> None:
    """Whether the damage is found when the file is opened, or when a query reads it."""
    made = built(tmp_path / "s", ("psm", "bphs:G=4,g=1,r=1"))
    expected = answer(made.query(ROWS[:50], h=3))
    (shard, _) = made.shard_map.shards
    for path in (Path(shard.path) / "segments").glob("*.bphs"):
        data = bytearray(path.read_bytes())
        data[min(place, len(data) - 1)] ^= 1
        path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert answer(made.query(ROWS[:50], h=3)) == expected
    told = [one.getMessage() for one in caplog.records if "other methods" in one.getMessage()]
    assert told
    for message in told:
        assert not ALTERING.search(message), message
        assert "restore the shard" in message
    with pytest.raises(CorruptFile, match=r"shard 0 \(") as raised:
        made.query(ROWS[:50], h=3, method="bphs")
    assert raised.value.remedy is not None
    assert not ALTERING.search(raised.value.remedy)


def test_damaged_slice_lists_of_a_shard_are_restored_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = np.repeat(ROWS.reshape(-1, 1), 4, axis=1) + np.arange(4, dtype=np.uint64)
    made = built(tmp_path / "s", ("psm", "issl"), rows)
    expected = made.top(rows[:5], 3, method="auto").id.tolist()
    for shard in made.shard_map.shards:
        for path in (Path(shard.path) / "segments").glob("*.issl"):
            data = path.read_bytes()
            path.write_bytes(bytes(byte ^ 0x55 for byte in data))
    with caplog.at_level(logging.WARNING):
        assert made.top(rows[:5], 3, method="auto").id.tolist() == expected
    assert caplog.records
    assert not any(ALTERING.search(one.getMessage()) for one in caplog.records)


@pytest.mark.parametrize("call", [
    lambda shards: shards.query(ROWS[:3], h=3, method="issl"),
    lambda shards: shards.query(ROWS[:3], h=3, method="bphs"),
    lambda shards: shards.top(ROWS[:3], 2, method="issl"),
])
def test_a_method_without_its_structure_is_no_reason_to_change_a_shard(
    tmp_path: Path, call: Any
) -> None:
    made = built(tmp_path / "s", ("psm",))
    with pytest.raises(InvalidOption, match="the index has no") as raised:
        call(made)
    assert raised.value.remedy is not None
    assert not ALTERING.search(raised.value.remedy)
    assert "structures" in raised.value.remedy
    held = OpenShard.of(made.shard_map.shards[0])
    with held.index, pytest.raises(InvalidOption) as again:
        query_shard(held, simindex.Batch(ROWS[:3]), 3, method="issl")
    assert again.value.remedy is not None
    assert not ALTERING.search(again.value.remedy)


def test_nothing_writes_to_a_published_shard(tmp_path: Path, tree: Any) -> None:
    made = built(tmp_path / "s", ("psm", "bphs:G=4,g=1,r=1"))
    path = made.shard_map.shards[0].path
    before = tree(Path(path))
    for mode in ("w", "c", "n"):
        with pytest.raises(ReadOnlyIndex, match="is a published shard") as raised:
            simindex.open(path, mode, overwrite=True)
        assert raised.value.data["path"] == path
    with pytest.raises(ReadOnlyIndex, match="is a published shard"):
        simindex.repair(path, apply=True)
    assert simindex.repair(path).needed is False
    assert tree(Path(path)) == before
    assert made.verify() == []


def test_a_copy_of_a_shard_is_an_index_like_others(tmp_path: Path) -> None:
    made = built(tmp_path / "s", ("psm",))
    with simindex.open(made.shard_map.shards[0].path) as shard:
        shard.backup(tmp_path / "copy.sim")
    with simindex.open(tmp_path / "copy.sim", "w") as index:
        index.append(ROWS[-1:], ids=[1 << 40])
        index.commit()
        assert len(index) == 2001
