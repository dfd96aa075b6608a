"""Datasets of Ray become shards and queries, and answers become Datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sharded import answer, answers, families, sketched

import simindex
from simindex.distributed import Shards, plan_shards
from simindex.errors import ClusterFailed, InvalidBatch

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'simindex[ray]'")
pa = pytest.importorskip("pyarrow")

from ray import data  # noqa: E402

from simindex.distributed import ray as on_ray  # noqa: E402
from simindex.distributed.ray import build_tasks  # noqa: E402
from simindex.distributed.ray.blocks import batch_of  # noqa: E402
from simindex.distributed.ray.build_tasks import build_made  # noqa: E402


def blocks_of(fingerprints: Any, sizes: list[int], **columns: Any) -> Any:
    """A Dataset with blocks of some sizes."""
    table = pa.table(simindex.Batch(fingerprints, **columns))
    tables, start = [], 0
    for size in sizes:
        tables.append(table.slice(start, size))
        start += size
    return data.from_arrow(tables)


@pytest.mark.parametrize("by", ["rows", "prefix"])
@pytest.mark.parametrize("words", [1, 2])
def test_shards_of_a_dataset_are_those_of_its_rows(tmp_path: Path, by: Any, words: int) -> None:
    fingerprints = families(1, 100, words)
    on_ray.build(tmp_path / "d", blocks_of(fingerprints, [30, 0, 1, 69]), 3, by=by)
    made = Shards(tmp_path / "d")
    local = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 3, by=by)
    assert answers(made, fingerprints, 3, 5) == answers(local, fingerprints, 3, 5)
    if by == "rows":
        names = [[shard.folder.name for shard in one.shard_map.shards] for one in (made, local)]
        assert names[0] == names[1]
    assert made.verify() == []


@pytest.mark.parametrize("named", ["keys", "ids"])
def test_names_of_a_dataset_are_kept(tmp_path: Path, named: str) -> None:
    fingerprints = families(2, 60)
    names: Any = [f"k{row}" for row in range(60)] if named == "keys" else list(range(100, 160))
    on_ray.build(tmp_path / "d", blocks_of(fingerprints, [20, 40], **{named: names}), 2)
    match = Shards(tmp_path / "d").query(fingerprints[:1], h=0)[0]
    assert (match.key if named == "keys" else match.id) in names


def test_sketches_of_a_dataset_are_kept(tmp_path: Path) -> None:
    """With the sizes of their documents; and a Dataset of queries has them, too."""
    batch = sketched(3, 60)
    blocks = data.from_arrow([pa.table(batch).slice(0, 25), pa.table(batch).slice(25)])
    on_ray.build(tmp_path / "d", blocks, 7)
    with on_ray.connect(tmp_path / "d", cpus=0.1) as made:
        assert made.shard_map.facts.sketch == 256
        with simindex.open(tmp_path / "local.sim", "n") as local:
            local.append(batch)
        with simindex.open(tmp_path / "local.sim") as local:
            (found,) = made.query_stream(blocks, similarity=0.8)
            assert answer(found) == answer(local.query(batch, similarity=0.8))
        sizes = {
            int(id): int(size) for shard in made.shard_map.shards
            for rows in simindex.open(shard.path).rows()
            for id, size in zip(rows.ids, rows.sizes, strict=True)
        }
    assert sizes == dict(enumerate(batch.sizes.tolist()))


@pytest.fixture
def numbered() -> Any:
    """Makes a batch of three rows for each item but every fourth, which has none.

    A function in a function: workers cannot import this module.
    """
    def numbered(item: int) -> tuple[simindex.Batch, int]:
        if item < 0:
            raise InvalidBatch(f"there is no item {item}")
        rows = [] if item % 4 == 3 else [item << 32, item << 32 | 1, item << 50]
        return simindex.Batch(np.array(rows, np.uint64)), len(rows)

    return numbered


@pytest.mark.parametrize("by", ["rows", "prefix"])
def test_batches_that_tasks_make_are_numbered_in_the_order_of_items(
    tmp_path: Path, by: Any, numbered: Any
) -> None:
    """And few items wait at a time, so that any number of them fits into memory."""
    taken = 0
    noted: list[Any] = []
    ahead: list[int] = []

    def items() -> Any:
        nonlocal taken
        for item in range(60):
            taken += 1
            ahead.append(taken - len(noted))
            yield item

    made = build_made(
        tmp_path / "d", items(), numbered, 3, options=simindex.IndexOptions,
        noted=lambda *told: noted.append(told), read=lambda: None, by=by,
    )
    assert made is not None and made.rows == 135
    assert noted == [(item, 0 if item % 4 == 3 else 3) for item in range(60)]
    assert max(ahead) <= 9  # two processors, half of one for each task, and as many wait
    rows = np.concatenate([numbered(item)[0].rows[:, 0] for item in range(60)])
    local = Shards.build(tmp_path / "s", simindex.Batch(rows), 3, by="rows")
    assert answers(Shards(tmp_path / "d"), rows, 3, 5) == answers(local, rows, 3, 5)


def test_items_without_a_row_make_nothing(tmp_path: Path, numbered: Any) -> None:
    made = build_made(
        tmp_path / "d", [3, 7], numbered, 3, options=simindex.IndexOptions,
        noted=lambda *_: None, read=lambda: None,
    )
    assert made is None and not (tmp_path / "d").exists()
    for _ in range(5):
        with pytest.raises(InvalidBatch, match="no item -1"):
            build_made(
                tmp_path / "d", [1, 2, -1, 4, -1, 5, 6], numbered, 3,
                options=simindex.IndexOptions, noted=lambda *_: None, read=lambda: None,
            )
    assert not (tmp_path / "d").exists()


def test_pandas_blocks_and_an_empty_dataset(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    fingerprints = families(3, 40)
    frame = pd.DataFrame({"fingerprint": fingerprints[:, 0]})
    on_ray.build(tmp_path / "d", data.from_pandas([frame]), 2)
    assert len(Shards(tmp_path / "d")) == 40
    empty = data.from_arrow([pa.table(simindex.Batch(fingerprints[:0]))])
    on_ray.build(tmp_path / "none", empty, 2)
    assert len(Shards(tmp_path / "none")) == 0


def test_a_dataset_asks_and_answers_are_a_dataset(tmp_path: Path) -> None:
    fingerprints = families(4, 90)
    on_ray.build(tmp_path / "s", simindex.Batch(fingerprints), 2)
    with on_ray.connect(tmp_path / "s", cpus=0.1) as shards:
        found = on_ray.dataset(shards.query_stream(blocks_of(fingerprints, [50, 40]), h=3))
        expected = shards.query(fingerprints, h=3)
        table = pa.concat_tables(ray.get(found.to_arrow_refs()))
        assert table.column_names == ["query", "id", "distance"]
        assert table["query"].to_numpy().tobytes() == expected.query.tobytes()
        assert table["id"].to_numpy().tobytes() == expected.id.tobytes()
        pairs = on_ray.dataset(shards.pairs(h=3))
        assert pairs.count() == sum(map(len, shards.pairs(h=3)))


def test_blocks_without_fingerprints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidBatch, match="no column 'fingerprint', but 'text'"):
        batch_of(pa.table({"text": ["a"]}))
    with pytest.raises(InvalidBatch, match="no column 'fingerprint'"):
        on_ray.build(tmp_path / "d", data.from_arrow(pa.table({"text": ["a"]})), 2)
    assert not (tmp_path / "d" / "shards.json").exists()


def test_reading_that_would_wait_for_ever_is_refused(tmp_path: Path) -> None:
    on_ray.build(tmp_path / "s", simindex.Batch(np.arange(6, dtype=np.uint64)), 3)
    with (
        on_ray.connect(tmp_path / "s", replicas=2) as shards,
        pytest.raises(ClusterFailed, match="reading of a Dataset"),
    ):
        list(shards.query_stream(data.range(10), h=3))


@pytest.mark.parametrize("by", ["rows", "prefix"])
def test_blocks_take_the_weights_of_one_row_of_eight_along(by: Any) -> None:
    """All rows come once, each into its shard, with the number of its place."""
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((4096, 64), np.float32)
    rows = np.packbits(weights >= 0, axis=1).view(">u8").astype(np.uint64)
    (known, told), made = build_tasks.made_block(
        lambda item: (simindex.Batch(rows, weights=weights), item), "told"
    )
    assert (known.rows, told) == (4096, "told")
    plan = plan_shards(5096, 3, by=by)
    seen = 0
    for number in range(3):
        plain, weighted = build_tasks._Parts(plan, number, [])._weighted(made, 1000)
        assert plain.weights is None and weighted.weights is not None
        for part in (plain, weighted):
            places = part.ids.astype(np.int64) - 1000
            assert np.array_equal(part.rows, rows[places])
            assert (plan.shards_of(simindex.Batch(rows), 1000)[places] == number).all()
            seen += len(part)
        assert (places % 8 == 0).all()
        signs = np.packbits(weighted.weights >= 0, axis=1).view(">u8")
        assert np.array_equal(signs.astype(np.uint64), weighted.rows)
    assert seen == 4096
