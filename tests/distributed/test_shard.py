"""What is known of a shard is compared with what it is."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sharded import families

import simindex
from simindex.distributed import Shard, build_shard, open_shard, plan_shards, verify_shard
from simindex.distributed.shard import opened, require_alike
from simindex.errors import InvalidOption, RecipeMismatch


def built(root: Path, options: simindex.IndexOptions | None = None) -> Shard:
    options = options or simindex.IndexOptions()
    keys = [f"k{number}" for number in range(20)] if options.keys else None
    ids = None if keys else range(20)
    batch = simindex.Batch(families(1, 20, options.bits // 64), ids=ids, keys=keys)
    return build_shard(plan_shards(20, 1, options=options), 0, [batch], root)


def test_an_open_index_stays_open(tmp_path: Path) -> None:
    shard = pickle.loads(pickle.dumps(built(tmp_path)))  # noqa: S301
    with open_shard(shard) as index:
        with opened(index) as same:
            assert same is index
        assert len(index) == 20


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (simindex.IndexOptions(bits=128), InvalidOption, "bits 128, and .* has 64"),
        (simindex.IndexOptions(recipe=simindex.Recipe()), RecipeMismatch, "recipe "),
        (simindex.IndexOptions(keys="str"), InvalidOption, "names str, and .* has ids"),
    ],
)
def test_shards_that_differ_are_refused(
    tmp_path: Path, options: simindex.IndexOptions, error: type[Exception], says: str
) -> None:
    shards = (built(tmp_path / "one"), built(tmp_path / "other", options))
    with pytest.raises(error, match=says) as raised:
        require_alike(shards)
    assert raised.value.data["shard"] == 0  # type: ignore[attr-defined]


def test_keys_of_two_secrets_are_refused(tmp_path: Path) -> None:
    options = simindex.IndexOptions(keys="str")
    shards = (built(tmp_path / "one", options), built(tmp_path / "other", options))
    with pytest.raises(InvalidOption, match="another secret"):
        require_alike(shards)


@pytest.mark.parametrize("file", ["rows", "data.mdb"])
def test_verify_finds_a_changed_byte(tmp_path: Path, file: str) -> None:
    fingerprints = families(1, 70_000)  # enough for a segment
    batch = simindex.Batch(fingerprints, ids=np.arange(70_000))
    shard = build_shard(plan_shards(70_000, 1), 0, [batch], tmp_path)
    assert verify_shard(shard) == []
    (path,) = (path for path in Path(shard.path).rglob("*") if path.name.endswith(file))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = verify_shard(shard)
    assert found
    assert found[0].severity == "error"
