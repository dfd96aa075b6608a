"""All of an answer is of one generation of the map, also while another process replaces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from sharded import answer, families

import simindex
from simindex.distributed import Shard, Shards, merge_pairs, read_map
from simindex.errors import IndexLocked, IndexNotFound

ROWS = families(16, 100)

READING: dict[str, Callable[[Shards], Any]] = {
    "query": lambda held: answer(held.query(ROWS, h=3)),
    "top": lambda held: answer(held.top(ROWS, 3)),
    "pairs": lambda held: answer(merge_pairs(held.pairs(h=3))),
    "stars": lambda held: answer(held.clusters(h=3)),
    "components": lambda held: answer(held.clusters(h=3, mode="components")),
    "losers": lambda held: [column.tolist() for column in held.losers(h=3)],
    "verify": lambda held: held.verify(),
    "check": lambda held: held.check().rows,
}


class Replacing:
    """Runs tasks as `map`, and replaces shards by `change` before those of some runs."""

    def __init__(self, root: Path, change: Callable[[Shards], object], runs: set[int]) -> None:
        self._root, self._change, self._runs = root, change, runs
        self.count = 0

    def __call__(self, function: Any, *tasks: Any) -> Iterator[Any]:
        self.count += 1
        if self.count in self._runs:
            other = Shards(self._root)
            self._change(other)
            other.sweep(older_than_s=0)
        return map(function, *tasks)


def split_largest(shards: Shards) -> None:
    shards.split(max(shards.shard_map.shards, key=lambda shard: shard.rows).number)


@pytest.mark.slow
@pytest.mark.parametrize("call", READING)
def test_a_call_begins_again_with_the_newest_map(tmp_path: Path, call: str) -> None:
    """Whichever of its tasks the shards are replaced before, again and again; ids stay the same."""
    Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2)
    expected = READING[call](Shards(tmp_path / "s"))
    counting = Replacing(tmp_path, split_largest, set())
    busy = Shards(tmp_path / "s")
    busy._run = counting
    READING[call](busy)
    for first in range(1, counting.count + 1):
        run = Replacing(tmp_path / "s", split_largest, {first, first + 1})
        busy._run = run
        assert READING[call](busy) == expected
        assert run.count > first


@pytest.mark.parametrize("call", sorted(READING.keys() - {"query", "top", "verify", "check"}))
def test_no_answer_is_of_two_generations(tmp_path: Path, call: str) -> None:
    """Rows that are added between two steps of a call are in all of its answer, or in none."""
    Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2)
    before = READING[call](Shards(tmp_path / "s"))
    Shards.build(tmp_path / "t", simindex.Batch(ROWS), 2).append(ROWS)
    after = READING[call](Shards(tmp_path / "t"))
    assert before != after
    run = Replacing(tmp_path / "s", lambda shards: shards.append(ROWS), {2})
    busy = Shards(tmp_path / "s")
    busy._run = run
    assert READING[call](busy) in (before, after)


def test_pairs_that_were_given_are_not_followed_by_those_of_another_map(tmp_path: Path) -> None:
    made = Shards.build(tmp_path / "s", simindex.Batch(ROWS), 3)
    parts = made.pairs(h=3)
    next(parts)
    split_largest(Shards(tmp_path / "s"))
    next(parts)  # its shards are there
    Shards(tmp_path / "s").sweep(older_than_s=0)
    with pytest.raises(IndexLocked, match="before all pairs were given") as raised:
        list(parts)
    assert (raised.value.data["expected"], raised.value.data["found"]) == (1, 2)
    assert "repeat the call" in str(raised.value.remedy)
    assert len(merge_pairs(made.pairs(h=3))) > 0


def test_damage_is_no_reason_to_begin_again(tmp_path: Path) -> None:
    """Of shards that nobody has replaced: the error comes at once, and findings do."""
    made = Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2)
    Path(made.shard_map.shards[1].path).rename(tmp_path / "aside")
    for call in READING:
        counting = Replacing(tmp_path, split_largest, set())
        made._run = counting
        if call == "verify":
            assert "shard 1" in made.verify()[0].what
        else:
            with pytest.raises(IndexNotFound, match="shard 1"):
                READING[call](made)
        assert counting.count == 1


@pytest.mark.parametrize("call", READING)
def test_a_collection_that_is_replaced_again_and_again_ends_a_call(
    tmp_path: Path, call: str
) -> None:
    """No shard is damaged, so nobody is told to restore one."""
    Shards.build(tmp_path / "s", simindex.Batch(ROWS), 1)
    busy = Shards(tmp_path / "s")
    run = Replacing(tmp_path / "s", split_largest, set(range(20)))
    busy._run = run
    with pytest.raises(IndexLocked, match="replaced and removed") as raised:
        READING[call](busy)
    assert "repeat the call" in str(raised.value.remedy)
    assert run.count == 5


@pytest.mark.parametrize("call", ["append", "ingest", "split"])
def test_a_change_whose_shards_are_gone_says_that_it_was_overtaken(
    tmp_path: Path, call: str
) -> None:
    """Before whichever of its tasks: the map has the other change, and this one can be repeated."""
    rows = oracle.uniform(np.random.default_rng(7), 9)
    changes: dict[str, Callable[[Shards], Any]] = {
        "append": lambda held: held.append(rows), "ingest": lambda held: held.ingest(rows, h=3),
        "split": lambda held: held.split(1),
    }

    def more(shards: Shards) -> None:
        shards.append(oracle.uniform(np.random.default_rng(8 + len(shards)), 30))

    Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2, by="prefix")
    busy = Shards(tmp_path / "s")
    for first in {"append": (2, 3), "ingest": (2, 3, 4), "split": (2,)}[call]:
        before = len(busy)
        busy._run = Replacing(tmp_path / "s", more, {first})
        with pytest.raises(IndexLocked, match="replaced") as raised:
            changes[call](busy)
        assert raised.value.remedy
        assert len(busy) == before + 30
    busy._run = map
    changes[call](busy)
    assert busy.verify() == []


def test_an_append_that_was_overtaken_after_its_map_returns_its_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first shard is replaced and removed as soon as the map is there: the rows are in."""
    from simindex.distributed import additions

    made = Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2)
    written = additions.write_map

    def overtaken(new: Any) -> None:
        written(new)
        split_largest(Shards(tmp_path / "s"))
        Shards(tmp_path / "s").sweep(older_than_s=0)

    monkeypatch.setattr(additions, "write_map", overtaken)
    assert made.append(ROWS[:3]).tolist() == [100, 101, 102]
    assert len(made) == 103


def test_a_sweep_that_removes_what_an_append_has_published_is_told(tmp_path: Path) -> None:
    """The map is the same, so that it is not said to have been overtaken."""
    made = Shards.build(tmp_path / "s", simindex.Batch(ROWS), 2)

    def swept(function: Any, *tasks: Any) -> Any:
        found = list(map(function, *tasks))
        if found and isinstance(found[0], Shard):
            Shards(tmp_path / "s").sweep(older_than_s=0)
        return found

    made._run = swept
    with pytest.raises(IndexNotFound, match="before a shard map named it"):
        made.append(ROWS[:3])
    assert read_map(tmp_path / "s").generation == 1
