"""New versions of shards have all rows of the old ones, and regions for all that those took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from sharded import answer, answers, families, local_index

import simindex
from simindex.distributed import (
    OpenShard,
    Shards,
    build_shard,
    extend_shard,
    plan_shards,
    read_map,
    regions,
    split_shard,
    verify_shard,
)
from simindex.distributed.shard import both_opened
from simindex.errors import CorruptFile, InvalidBatch, InvalidOption
from simindex.index.aged_rows import aged_rows
from simindex.writing import waiting

ROWS = families(1, 40)
PLAN = plan_shards(40, 2)
LONG_AGO = 1_000_000_000


def part(number: int) -> list[simindex.Batch]:
    return [PLAN.part(number, simindex.Batch(ROWS))]


def test_extending_keeps_the_old_shard(tmp_path: Path, tree: Callable[[Path], Any]) -> None:
    made = build_shard(PLAN, 0, part(0), tmp_path)
    before = tree(Path(made.path))
    larger = extend_shard(made, part(1)[0], tmp_path)
    assert larger.rows == 40
    assert extend_shard(made, part(1)[0], tmp_path) == larger
    assert tree(Path(made.path)) == before
    assert verify_shard(made) == verify_shard(larger) == []


def test_splitting_divides_the_rows(tmp_path: Path) -> None:
    made = build_shard(PLAN, 0, part(0), tmp_path)
    halves = split_shard(made, 5, tmp_path)
    assert [half.number for half in halves] == [0, 5]
    assert [half.region for half in halves] == ["0", "1"]
    assert sum(half.rows for half in halves) == made.rows
    assert split_shard(made, 5, tmp_path) == halves
    assert [verify_shard(half) for half in (*halves, made)] == [[], [], []]


def test_rows_keep_their_times_in_both_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_shards(40, 1, options=simindex.IndexOptions(times=True))
    with monkeypatch.context() as patch:
        patch.setattr(waiting, "now", lambda: LONG_AGO)
        made = build_shard(plan, 0, [plan.part(0, simindex.Batch(ROWS))], tmp_path)
    for half in split_shard(made, 5, tmp_path):
        with simindex.open(half.path) as index:
            came = [times for _, times in aged_rows(index, 7)]
        assert half.rows == sum(map(len, came)) > 0
        assert all((times == LONG_AGO).all() for times in came)


def test_a_half_of_the_rows_of_an_older_version_is_another_shard(tmp_path: Path) -> None:
    """The older version is still on the disk, with the same number and rows, and another region."""
    low, high = np.array([1, 2], np.uint64), np.array([1 << 63], np.uint64)
    shards = Shards.build(tmp_path / "a.shards", low, 1)
    (older,) = shards.shard_map.shards
    shards.append(high)
    first, second = shards.split(0).shards
    assert first.rows == older.rows
    assert (first.region, second.region, older.region) == ("0", "1", "")
    assert Path(older.path).is_dir()
    assert shards.verify() == []
    assert shards.query(low, h=0).id.tolist() == [0, 1]


def test_a_shard_by_ones_is_split_by_ones(tmp_path: Path) -> None:
    plan = plan_shards(ROWS, 2, by="ones")
    made = build_shard(plan, 1, [plan.part(1, simindex.Batch(ROWS))], tmp_path)
    halves = split_shard(made, 5, tmp_path)
    least, greatest = made.region.split("-")
    assert halves[0].region.startswith(f"{least}-")
    assert halves[1].region.endswith(f"-{greatest}")
    assert min(half.rows for half in halves) > made.rows // 4
    assert [verify_shard(half) for half in halves] == [[], []]
    wrong = [plan.part(0, simindex.Batch(ROWS))]
    with pytest.raises(InvalidOption, match=f"does not have {made.region} ones"):
        build_shard(plan, 1, wrong, tmp_path)
    same = [simindex.Batch(np.array([3, 5], np.uint64), ids=range(2))]
    alike = build_shard(plan_shards(2, 1, by="ones"), 0, same, tmp_path)
    with pytest.raises(InvalidOption, match="same number of ones"):
        split_shard(alike, 1, tmp_path)


def test_rows_that_are_equal_cannot_be_split(tmp_path: Path) -> None:
    same = [simindex.Batch(np.full(3, 7, np.uint64), ids=range(3))]
    made = build_shard(PLAN, 0, same, tmp_path)
    with pytest.raises(InvalidOption, match="cannot be split"):
        split_shard(made, 1, tmp_path)


@pytest.mark.parametrize("by", ["rows", "prefix", "ones"])
def test_rows_of_the_old_region_have_a_shard_after_a_split(tmp_path: Path, by: Any) -> None:
    """The rows share leading bits, or have few numbers of ones: later ones are elsewhere."""
    rng = np.random.default_rng(5)
    narrow = (oracle.uniform(rng, 60)[:, 0] >> np.uint64(9)) | np.uint64(0b0010_1101 << 55)
    made = Shards.build(tmp_path / "s", narrow, 1 if by == "rows" else 2, by=by)
    largest = max(made.shard_map.shards, key=lambda shard: shard.rows)
    for number in (largest.number, len(made.shard_map)):
        made.split(number)
    wide = families(6, 120)
    assert made.append(wide).tolist() == list(range(60, 180))
    assert made.verify() == []
    every = np.concatenate([narrow[:, None], wide])
    with local_index(tmp_path / "local.sim", simindex.Batch(every)) as index:
        assert answers(made, every, 3, 4) == answers(index, every, 3, 4)
    held = [shard.region for shard in made.shard_map.shards]
    for row in (0, (1 << 64) - 1, *every[:99, 0].tolist()):
        word = np.array([[row]], np.uint64)
        assert any(regions.inside(word, region)[0] for region in held)


def zeroed(path: Path, start: int) -> None:
    """One page of a file becomes zeros; its size stays."""
    data = bytearray(path.read_bytes())
    data[start : start + 4096] = bytes(len(data[start : start + 4096]))
    path.write_bytes(data)


CHANGES: dict[str, Callable[[Shards], Any]] = {
    "append": lambda held: held.append(families(3, 9)),
    "ingest": lambda held: held.ingest(families(3, 9), h=3),
    "split": lambda held: held.split(0),
}


@pytest.mark.parametrize("file", ["data.mdb", ".rows", ".bphs"])
def test_no_page_of_zeros_is_published_anew(tmp_path: Path, file: str) -> None:
    """Whichever page of the catalog or of a segment is damaged: `verify` says so, and changes are
    refused. The second half of a new catalog is zeros, as LMDB makes the file longer than it needs:
    zeros there are no damage."""
    rows = 5000 if file != "data.mdb" else 60
    batch = simindex.Batch(families(1, rows), keys=[f"k{row}" for row in range(rows)])
    options = simindex.IndexOptions(batch_rows=500, keys="str")
    made = Shards.build(tmp_path / "s", batch, 1, options=options)
    (shard,) = made.shard_map.shards
    path = next(one for one in sorted(Path(shard.path).rglob("*")) if one.name.endswith(file))
    whole = path.read_bytes()
    pages = [start for start in range(0, len(whole), 4096) if any(whole[start : start + 4096])]
    if file == "data.mdb":
        assert not any(whole[len(whole) // 2 :])
    for start in pages if len(pages) < 20 else (pages[0], pages[len(pages) // 2], pages[-1]):
        zeroed(path, start)
        assert any("shard 0" in finding.what for finding in made.verify()), start
        for change in (
            lambda: made.split(0),
            lambda: made.append(simindex.Batch(families(3, 1), keys=["new"])),
        ):
            with pytest.raises(CorruptFile, match=r"shard 0 \(") as raised:
                change()
            assert raised.value.data["shard"] == 0
        path.write_bytes(whole)
    assert made.verify() == []
    assert read_map(tmp_path / "s").generation == 1
    assert len(list((tmp_path / "s" / "shards").iterdir())) == 1


@pytest.mark.parametrize("change", CHANGES)
def test_a_half_copied_shard_ends_a_change_before_any_work(
    tmp_path: Path, change: str, tree: Callable[[Path], Any]
) -> None:
    """Also if it is another shard than those that change."""
    made = Shards.build(tmp_path / "s", simindex.Batch(families(18, 60)), 3)
    for shard in made.shard_map.shards:
        for name, size in shard.files:
            path = Path(shard.path) / name
            whole = path.read_bytes()
            path.write_bytes(whole[: size // 2])
            before = tree(tmp_path / "s")
            with pytest.raises(CorruptFile, match=rf"shard {shard.number} .* is not whole"):
                CHANGES[change](made)
            assert tree(tmp_path / "s") == before
            path.write_bytes(whole)
    CHANGES[change](made)
    assert made.verify() == []


def test_damage_that_a_task_meets_is_that_of_its_shard(tmp_path: Path) -> None:
    """Of one shard, of two in one task whichever is damaged, and of a shard that is kept open."""
    rows = families(1, 10_000)
    options = simindex.IndexOptions(batch_rows=500)
    made = Shards.build(tmp_path / "s", simindex.Batch(rows), 2, options=options)
    calls: dict[str, Callable[[], Any]] = {
        "query": lambda: made.query(rows[:50], h=3), "pairs": lambda: list(made.pairs(h=3)),
        "clusters": lambda: made.clusters(h=3), "losers": lambda: made.losers(h=3),
        "top": lambda: made.top(rows[:3], 3), "append": lambda: made.append(families(2, 2000)),
    }
    for shard in made.shard_map.shards:
        damaged = [path for path in Path(shard.path).rglob("*") if path.parent.name == "segments"]
        whole = {path: path.read_bytes() for path in damaged}
        for path, data in whole.items():
            path.write_bytes(bytes(byte ^ 0x55 for byte in data))
        for call in calls.values():
            with pytest.raises(CorruptFile, match=rf"shard {shard.number} \(") as raised:
                call()
            assert raised.value.data["shard"] == shard.number
            assert str(shard.path) in str(raised.value)
        for path, data in whole.items():
            path.write_bytes(data)
    # In a task of two shards, and while an actor has both open.
    first, second = made.shard_map.shards
    with OpenShard.of(first).index as one, OpenShard.of(second).index as other:
        known = [
            {field.name: getattr(shard, field.name) for field in fields(shard)}
            for shard in (first, second)
        ]
        held = OpenShard(**known[0], index=one), OpenShard(**known[1], index=other)
        for shard in (first, second):
            told = pytest.raises(CorruptFile, match=rf"^shard {shard.number} \(")
            with told as raised, both_opened(*held):
                raise CorruptFile("x is damaged", path=f"{shard.path}/segments/x")
            assert raised.value.data["shard"] == shard.number


# -- numbers of rows without a name ----------------------------------------------------------------


def test_rows_without_names_get_the_numbers_of_one_index(tmp_path: Path) -> None:
    """Also after rows with ids, far larger ones or smaller, after a split and an empty shard."""
    batches = [
        simindex.Batch(families(1, 20)), simindex.Batch(families(2, 5), ids=range(900, 905)),
        simindex.Batch(families(3, 7)), simindex.Batch(families(4, 2), ids=[1 << 63, 77]),
        simindex.Batch(families(5, 9)), simindex.Batch(families(6, 1), ids=[(1 << 64) - 1]),
        simindex.Batch(families(7, 4)),
    ]
    made = Shards.build(tmp_path / "s", batches[:2], 2, by="prefix")
    with simindex.open(tmp_path / "local.sim", "n") as index:
        index.append(batches[0])
        index.append(batches[1])
        index.commit()
        for place, batch in enumerate(batches[2:]):
            if place % 2:
                assert made.append(batch).tolist() == index.append(batch).tolist()
                index.commit()
            else:
                assert answer(made.ingest(batch, h=3)) == answer(index.ingest(batch, h=3))
            if place == 1:
                made.split(0)
                made.add_shard()
    assert made.verify() == []
    every = np.concatenate([batch.rows for batch in batches])
    with simindex.open(tmp_path / "local.sim") as index:
        assert answers(made, every, 3, 4) == answers(index, every, 3, 4)


def test_a_number_that_is_an_id_already_is_refused(tmp_path: Path) -> None:
    """One index has two rows of that id then; in shards an id is in one row."""
    made = Shards.build(tmp_path / "s", simindex.Batch(families(1, 3), ids=[0, 4, 9]), 2)
    assert made.append(families(2, 1)).tolist() == [3]
    with pytest.raises(InvalidBatch, match="has the id 4 of row 0 already"):
        made.append(families(3, 1))
    assert len(made) == 4
