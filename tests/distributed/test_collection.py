"""A collection of shards answers what one index of the same rows does, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded import (
    SHARDS,
    answer,
    answers,
    families,
    local_index,
    same_secret,
    shortened,
    similar_answers,
    sketched,
)

import simindex
from simindex.arrays import U64
from simindex.distributed import Shard, Shards, read_map
from simindex.distributed.shard_plan import By
from simindex.errors import (
    CorruptFile,
    IndexExists,
    IndexLocked,
    IndexNotFound,
    InvalidBatch,
    InvalidOption,
    RecipeMismatch,
    StorageFull,
)
from simindex.pairs.buffer_losses import Nearness, greedy
from simindex.planning.similarity import similar as planning_similar

BY = ("rows", "prefix", "ones")


def local_losers(fingerprints: U64, h: int) -> list[list[int]]:
    """(id, winner, distance) of rows that lose in the order of their numbers."""
    rows = fingerprints.reshape(len(fingerprints), -1)
    found = greedy(rows, np.arange(len(rows)), np.zeros(len(rows), np.bool_), Nearness(h))
    lost = np.flatnonzero(found.winner >= 0)
    return [lost.tolist(), found.winner[lost].tolist(), found.distance[lost].tolist()]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.slow
def test_all_questions_are_answered_as_by_one_index(
    tmp_path: Path, shards: int, by: Any, words: int
) -> None:
    fingerprints = families(1, 300, words)
    queries = np.concatenate([fingerprints[:40], families(2, 20, words)])
    with local_index(tmp_path / "local.sim", simindex.Batch(fingerprints)) as index:
        made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), shards, by=by)
        assert answers(made, queries, 3, 5) == answers(index, queries, 3, 5)
    assert len(made) == len(fingerprints)
    assert made.verify() == []
    assert [column.tolist() for column in made.losers(h=3)] == local_losers(fingerprints, 3)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", [str, bytes])
def test_keys_come_with_all_answers(tmp_path: Path, by: Any, kind: type) -> None:
    fingerprints = families(3, 200)
    names = [f"page {number}" for number in range(200)]
    keys: Any = names if kind is str else [name.encode() for name in names]
    batch = simindex.Batch(fingerprints, keys=keys)
    with local_index(tmp_path / "local.sim", batch) as index:
        made = Shards.build(tmp_path / "s", batch, 3, by=by, options=same_secret(index))
        assert answers(made, fingerprints[:50], 3, 4) == answers(index, fingerprints[:50], 3, 4)
        assert made.query(fingerprints[:1], h=0)[0].key in keys


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 63), min_size=1, max_size=24),
    st.sampled_from(SHARDS), st.sampled_from(BY), st.integers(0, 4), st.randoms(),
)
@pytest.mark.slow
def test_few_different_fingerprints_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], shards: int, by: Any, h: int,
    random: Any,
) -> None:
    """Equal rows, chains and crowds, in shards of a few rows and of none; ids in any order."""
    fingerprints = np.array([value * 0x0401_0000_0000_0041 for value in values], np.uint64)
    ids = random.sample(range(1 << 40), len(values))
    batch = simindex.Batch(fingerprints, ids=ids)
    folder = tmp_path_factory.mktemp("few")
    with local_index(folder / "local.sim", batch) as index:
        made = Shards.build(folder / "s", batch, shards, by=by)
        assert answers(made, fingerprints, h, 1) == answers(index, fingerprints, h, 1)
    order = np.argsort(ids)
    named = np.sort(ids)
    lost, winner, distance = local_losers(fingerprints[order], h)
    found = made.losers(h=h)
    assert found.id.tolist() == named[lost].tolist()
    assert found.winner.tolist() == named[winner].tolist()
    assert found.distance.tolist() == distance


def test_answers_are_those_of_brute_force(tmp_path: Path, rng: np.random.Generator) -> None:
    fingerprints = families(4, 150, 2)
    queries = np.concatenate([fingerprints[:20], oracle.uniform(rng, 5, 2)])
    made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 7)
    found = made.query(queries, h=4)
    expected = oracle.matches(fingerprints, queries, 4)
    columns = np.stack([found.query, found.id.astype(np.int64), found.distance], axis=1)
    assert sorted(columns.tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("shards", [2, 7])
@pytest.mark.slow
def test_ingest_answers_and_adds_as_one_index(tmp_path: Path, shards: int) -> None:
    first, second = families(5, 200), families(6, 60)
    second[:20] = first[:20]
    second[20:30] = second[30:40]
    with local_index(tmp_path / "local.sim", simindex.Batch(first)):
        pass
    made = Shards.build(tmp_path / "s", simindex.Batch(first), shards, by="prefix")
    with simindex.open(tmp_path / "local.sim", "w") as index:
        for start in (0, 30):
            some = second[start : start + 30]
            assert answer(made.ingest(some, h=3)) == answer(index.ingest(some, h=3))
    with simindex.open(tmp_path / "local.sim") as index:
        assert answers(made, second, 3, 5) == answers(index, second, 3, 5)
    assert made.verify() == []


def test_ingest_with_keys(tmp_path: Path) -> None:
    fingerprints = families(7, 90)
    keys = [f"k{number}" for number in range(90)]
    first = simindex.Batch(fingerprints[:60], keys=keys[:60])
    with local_index(tmp_path / "local.sim", first) as index:
        made = Shards.build(tmp_path / "s", first, 3, options=same_secret(index))
    more = simindex.Batch(fingerprints[60:], keys=keys[60:])
    with simindex.open(tmp_path / "local.sim", "w") as index:
        assert answer(made.ingest(more, h=3)) == answer(index.ingest(more, h=3))


def threads() -> Any:
    return ThreadPoolExecutor(3)


def processes() -> Any:
    return ProcessPoolExecutor(2, mp_context=get_context("forkserver"))


@pytest.mark.slow
@pytest.mark.parametrize("pool", [threads, processes])
@pytest.mark.slow
def test_any_executor_runs_the_tasks(tmp_path: Path, pool: Callable[[], Any]) -> None:
    fingerprints = families(8, 200)
    keys = [f"k{number}" for number in range(200)]
    batch = simindex.Batch(fingerprints, keys=keys)
    with pool() as workers, local_index(tmp_path / "local.sim", batch) as index:
        made = Shards.build(
            tmp_path / "s", batch, 3, options=same_secret(index), run=workers.map
        )
        assert answers(made, fingerprints, 3, 5) == answers(index, fingerprints, 3, 5)
        made.append(simindex.Batch(families(9, 10), keys=[f"new {number}" for number in range(10)]))
        made.split(0)
        assert made.verify() == []


@pytest.mark.parametrize("by", BY)
@pytest.mark.slow
def test_a_collection_grows_and_splits_without_changing_answers(tmp_path: Path, by: Any) -> None:
    fingerprints = families(10, 240)
    made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints[:120]), 2, by=by)
    made.append(fingerprints[120:200])
    made.split(1)
    made.split(0)
    made.add_shard()
    made.append(fingerprints[200:])
    with local_index(tmp_path / "local.sim", simindex.Batch(fingerprints)) as index:
        assert answers(made, fingerprints, 3, 5) == answers(index, fingerprints, 3, 5)
    assert made.verify() == []
    assert len(made.shard_map) == 5
    assert made.sweep() == []
    assert made.sweep(older_than_s=0)
    assert made.verify() == []


def test_rows_go_to_the_smallest_shard(tmp_path: Path) -> None:
    made = Shards.build(tmp_path / "s", simindex.Batch(families(11, 40)), 2)
    made.add_shard()
    made.append(families(12, 5))
    assert [shard.rows for shard in made.shard_map.shards] == [20, 20, 5]


def test_an_empty_shard_is_no_special_case(tmp_path: Path) -> None:
    fingerprints = families(13, 3)
    with local_index(tmp_path / "local.sim", simindex.Batch(fingerprints)) as index:
        made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 7)
        assert [shard.rows for shard in made.shard_map.shards].count(0) == 4
        assert answers(made, fingerprints, 3, 3) == answers(index, fingerprints, 3, 3)


@pytest.mark.parametrize("by", BY)
def test_options_follow_from_the_first_rows(tmp_path: Path, by: Any) -> None:
    """Also where a shard is empty, which gets no row to tell it, or a batch is."""
    empty = simindex.Batch(np.empty(0, np.uint64), keys=[])
    rows = np.array([5, 1 << 63], np.uint64)
    sketch = np.array([0, 2**64 - 1], np.uint64)
    batch = simindex.Batch(rows, keys=[b"a", b"b"], sketch=sketch)
    shards = Shards.build(tmp_path / "c.shards", [empty, batch], 7, by=by)
    assert min(shard.rows for shard in shards.shard_map.shards) == 0
    assert (shards.shard_map.facts.sketch, shards.shard_map.facts.names) == (64, "bytes")
    assert shards.query(batch, similarity=0.9).keys() == [b"a", b"b"]


def test_a_collection_without_rows(tmp_path: Path) -> None:
    made = Shards.build(tmp_path / "s", [], 3)
    assert len(made.query(families(14, 5), h=3)) == 0
    assert len(made.clusters(h=3)) == 0
    assert [len(column) for column in made.losers(h=3)] == [0, 0, 0]
    with pytest.raises(InvalidOption, match="append rows first"):
        made.top(families(14, 5), 1)
    assert made.append(families(14, 5)).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize(("width", "measure"), [(0, "cosine"), (4, "cosine"), (4, "jaccard")])
def test_a_similarity_is_answered_as_by_one_index(
    tmp_path: Path, shards: int, width: int, measure: str
) -> None:
    """With sketches and without; by ranges of ones too, which a radius of 12 hardly divides."""
    batch = sketched(21, 240, width or 4)
    if not width:
        batch = simindex.Batch(batch.rows)
    options = simindex.IndexOptions(sketch_bits=64 * width)
    made = Shards.build(
        tmp_path / "s", batch, shards, by=BY[shards % 3], options=options
    )
    near = {"similarity": 0.9 if measure == "cosine" else 0.8, "recall": 0.8, "measure": measure}
    with local_index(tmp_path / "one", batch) as one:
        expected = similar_answers(one, batch, near)
        assert len(expected["pairs"]["a"][2]) > 8 * 40
        assert similar_answers(made, batch, near) == expected
        similar = one.clusters(**near).similarity_bits
        chosen = planning_similar(
            **near, h=None, bits=64, sketch_bits=64 * width
        )
    assert similar == (64 * width or 64)
    losses = greedy(
        batch.rows, np.arange(len(batch)), np.zeros(len(batch), np.bool_),
        Nearness(chosen.h, similar=chosen), batch.sketches if width else None,
    )
    lost = np.flatnonzero(losses.winner >= 0)
    found = made.losers(**near)
    assert [column.tolist() for column in found] == [
        lost.tolist(), losses.winner[lost].tolist(), losses.distance[lost].tolist()
    ]


def test_queries_with_weights_are_answered_alike_by_exact_searches(tmp_path: Path) -> None:
    """Flips of bits are fitted to each index, so what ``"psm"`` finds may differ, and is a part."""
    batch = shortened(240)
    shards = Shards.build(tmp_path / "s", batch, 3)
    with local_index(tmp_path / "i.sim", batch) as index:
        for how in ({"h": 6}, {"similarity": 0.85, "method": "scan"}):
            found = answer(shards.query(batch, **how))
            assert found == answer(index.query(batch, **how))
        plain = batch.without_weights()
        for how in ({"similarity": 0.85}, {"h": 6, "recall": 0.8}):
            assert answer(shards.query(plain, **how)) == answer(index.query(plain, **how))
        every = index.query(batch, similarity=0.85, method="scan")
        pairs = set(zip(every.query.tolist(), every.id.tolist(), strict=True))
        for held in (shards, index):
            some = held.query(batch, similarity=0.85, method="psm")
            assert 240 < len(some) <= len(every)
            assert set(zip(some.query.tolist(), some.id.tolist(), strict=True)) <= pairs


def test_what_equal_sketches_keep_is_not_kept_by_equal_rows(tmp_path: Path) -> None:
    """0 keeps 1 away, and 1 alone is near 2: all sketches are equal, so all are at distance 0."""
    rows = np.array([0, (1 << 10) - 1, (1 << 20) - 1], np.uint64)
    batch = simindex.Batch(rows, sketch=np.full((3, 4), 5, np.uint64))
    options = simindex.IndexOptions(sketch_bits=256)
    made = Shards.build(tmp_path / "s", batch, 3, options=options)
    assert [column.tolist() for column in made.losers(similarity=0.9)] == [[1], [0], [0]]


def test_a_similarity_is_refused_before_any_task(tmp_path: Path) -> None:
    batch = sketched(22, 60)

    def none(function: Any, *tasks: Any) -> Iterator[Any]:
        raise AssertionError(function)

    made = Shards.build(tmp_path / "s", batch, 2, options=simindex.IndexOptions(sketch_bits=256))
    made._run = none
    for call in (made.query, lambda _, **near: list(made.pairs(**near))):
        made._run = map if call != made.query else none
        with pytest.raises(InvalidOption, match=r"similarity=1\.5"):
            call(batch, similarity=1.5)
        with pytest.raises(InvalidOption, match="contradict"):
            call(batch, similarity=0.9, h=3)
        with pytest.raises(InvalidOption, match="measure='dice'"):
            call(batch, similarity=0.9, measure="dice")
        with pytest.raises(InvalidOption, match="measure='jaccard'"):
            call(batch, measure="jaccard")
    with pytest.raises(InvalidBatch, match="no sketches"):
        made.query(simindex.Batch(batch.rows), similarity=0.9)
    made._run = map
    recipe, other = simindex.Recipe(), simindex.Recipe(seed=7)
    options = simindex.IndexOptions(recipe=recipe)
    texts = ["a text of words", "and another one"]
    made = Shards.build(tmp_path / "t", recipe.batch(texts), 2, options=options)
    made._run = none
    with pytest.raises(RecipeMismatch):
        made.query(other.batch(texts), h=3)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["prefix", "ones"])
def test_a_query_asks_only_shards_with_a_near_region(tmp_path: Path, by: By) -> None:
    fingerprints = families(15, 400)
    asked: list[int] = []

    def run(function: Any, *tasks: Any) -> Iterator[Any]:
        listed = list(zip(*tasks, strict=True))
        asked.append(len(listed))
        return (function(*task) for task in listed)

    made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 16, by=by, run=run)
    asked.clear()
    made.query(fingerprints[:1], h=1)
    assert asked[0] <= 5  # of 16 prefixes of 4 bits, 1 and 4 are within 1; of ranges 3 of ones
    asked.clear()
    list(made.pairs(h=1))
    assert asked[-1] < 16 * 17 // 2


def test_queries_go_on_while_a_shard_is_replaced(tmp_path: Path) -> None:
    """Its directory goes between the map and the opening of the shard: the call begins anew."""
    fingerprints = families(16, 100)
    made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 2)
    expected = answer(made.query(fingerprints, h=3))
    left = [3]

    def replacing(function: Any, *tasks: Any) -> Any:
        if left[0]:
            left[0] -= 1
            before = read_map(tmp_path / "s").shards[0].number
            Shards(tmp_path / "s").split(before)
            Shards(tmp_path / "s").sweep(older_than_s=0)
        return list(map(function, *tasks))

    busy = Shards(tmp_path / "s")
    busy._run = replacing
    assert answer(busy.query(fingerprints, h=3)) == expected
    assert left == [0]


@pytest.mark.slow
def test_threads_query_while_others_append_and_sweep(tmp_path: Path) -> None:
    """Rows far from all queries come: every answer is that of the first rows."""
    fingerprints = families(17, 200)
    made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 3)
    expected = answer(made.query(fingerprints, h=3))

    def ask(_number: int) -> bool:
        return all(answer(made.query(fingerprints, h=3)) == expected for _ in range(10))

    with ThreadPoolExecutor(3) as pool:
        asked = pool.map(ask, range(3))
        for number in range(6):
            made.append(oracle.uniform(np.random.default_rng(100 + number), 20))
            made.sweep(older_than_s=0)
        assert all(asked)


# -- what is refused -------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path) -> Shards:
    return Shards.build(tmp_path / "s", simindex.Batch(families(18, 60)), 3)


def test_rows_of_a_collection_need_no_batch(tmp_path: Path) -> None:
    """Fingerprints, in one array or several, as a Batch has them."""
    rows = families(1, 8)
    expected = answer(Shards.build(tmp_path / "s", simindex.Batch(rows), 2).query(rows, h=0))
    several: list[Any] = [rows, [rows[:3], simindex.Batch(rows[3:])], rows.tolist()]
    for place, some in enumerate(several):
        made = Shards.build(tmp_path / str(place), some, 2)
        assert answer(made.query(rows, h=0)) == expected
    with pytest.raises(InvalidBatch):
        Shards.build(tmp_path / "wrong", 5, 2)
    assert not (tmp_path / "wrong").exists()


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    batch = simindex.Batch(families(18, 4), ids=[1, 2, 3, 1])
    for shards in (1, 2):
        with pytest.raises(InvalidOption, match="the id 1") as raised:
            Shards.build(tmp_path / f"s{shards}", batch, shards)
        assert raised.value.remedy is not None
        assert not (tmp_path / f"s{shards}" / "shards.json").exists()


def test_a_key_that_comes_twice_is_named(tmp_path: Path) -> None:
    """Not by the number that it is stored under: in one shard, in two, in a batch, in both."""
    rows = families(23, 6)

    def keyed(*keys: str) -> simindex.Batch:
        return simindex.Batch(rows[: len(keys)], keys=keys)

    for place, keys, told in [
        ("one", ("a", "b", "b"), "the key 'b' comes twice in shard 0"),
        ("two", ("a", "b", "c", "a"), "both have the key 'a'"),
    ]:
        with pytest.raises(InvalidOption, match=told):
            Shards.build(tmp_path / place, keyed(*keys), 1 if place == "one" else 2)
    made = Shards.build(tmp_path / "s", keyed("a", "b", "c"), 2)
    with pytest.raises(InvalidBatch, match=r"the key 'd' of row 1 comes twice in the batch"):
        made.append(keyed("d", "d"))
    with pytest.raises(InvalidBatch, match=r"shard \d .* has the key 'c' of row 1"):
        made.append(keyed("d", "c"))


def test_options_of_a_search_are_those_of_each_shard(made: Shards) -> None:
    queries = families(1, 40)
    every = made.query(queries, h=3)
    first = made.query(queries, h=3, first=True)
    assert first.query.tolist() == sorted(set(every.query.tolist()))
    of_every = set(zip(every.query.tolist(), every.id.tolist(), strict=True))
    assert set(zip(first.query.tolist(), first.id.tolist(), strict=True)) <= of_every
    assert answer(made.query(queries, h=3, method="scan")) == answer(every)
    for how in ({"method": "none"}, {"memory_limit": 0}, {"memory": -1}, {"recall": 2}):
        with pytest.raises(InvalidOption, match=next(iter(how))):
            made.query(queries, h=3, **how)  # type: ignore[arg-type]
    for call in (made.losers, made.clusters):
        with pytest.raises(InvalidOption, match="memory_limit"):
            call(h=3, memory_limit=0)
    with pytest.raises(InvalidOption, match="method"):
        made.top(queries, 1, method="none")
    nearest = made.top(queries, 1)
    assert answer(made.top(queries, 1, method="auto")) == answer(nearest)


def test_a_row_that_a_shard_has_already_is_refused(made: Shards) -> None:
    before = made.shard_map
    for ids, message in [([100, 45], "shard 2 .* has the id 45 of row 1"), ([7777, 7777], "twice")]:
        with pytest.raises(InvalidBatch, match=message):
            made.append(simindex.Batch(families(19, 2), ids=ids))
        with pytest.raises(InvalidBatch, match=message):
            made.ingest(simindex.Batch(families(19, 2), ids=ids))
    assert made.shard_map == before


def test_batches_that_do_not_fit_are_refused_before_anything_is_written(
    made: Shards, tmp_path: Path, tree: Callable[[Path], Any]
) -> None:
    before = tree(tmp_path / "s")
    recipe = simindex.Recipe()
    for batch, error in [
        (families(1, 3, 2), InvalidBatch),
        (simindex.Batch(families(1, 3), keys=["a", "b", "c"]), InvalidBatch),
        (recipe.batch(["a text of some words"]), RecipeMismatch),
    ]:
        for call in (made.append, made.ingest):
            with pytest.raises(error):
                call(batch)
    with pytest.raises(InvalidOption, match="k=61 exceeds the 60 rows"):
        made.top(families(1, 1), 61)
    with pytest.raises(InvalidOption, match="h=65"):
        made.query(families(1, 1), h=65)
    with pytest.raises(InvalidOption, match="no shard 9"):
        made.split(9)
    with pytest.raises(IndexExists, match="already"):
        Shards.build(tmp_path / "s", simindex.Batch(families(1, 3)), 2)
    assert tree(tmp_path / "s") == before


@pytest.mark.parametrize("shards", [1, 2])
def test_sketches_that_shards_do_not_store_are_refused(tmp_path: Path, shards: int) -> None:
    """Also by shards without rows: an index without rows would take those of its first batch."""
    made = Shards.build(tmp_path / "a.shards", [], shards)
    before = sorted(tmp_path.rglob("*"))
    rows = families(14, 3)
    batch = simindex.Batch(rows, sketch=rows)
    for call in (made.append, made.ingest):
        with pytest.raises(InvalidBatch, match="sketches of 64 bits, and this index stores none"):
            call(batch)
    assert sorted(tmp_path.rglob("*")) == before
    assert made.append(rows).tolist() == [0, 1, 2]


def test_a_missing_shard_is_named_before_any_work(made: Shards, tmp_path: Path) -> None:
    shard = made.shard_map.shards[1]
    Path(shard.path).rename(tmp_path / "elsewhere")
    for call in (
        lambda: Shards(tmp_path / "s"), made.clusters, lambda: made.append(families(1, 3)),
        lambda: made.query(families(1, 3), h=3),
    ):
        with pytest.raises(IndexNotFound, match=r"shard 1 \(.*\) is missing") as raised:
            call()
        assert raised.value.data["shard"] == 1
        assert raised.value.remedy


def test_a_half_copied_shard_is_named(made: Shards, tmp_path: Path) -> None:
    shard = made.shard_map.shards[2]
    name, size = shard.files[-1]
    path = Path(shard.path) / name
    path.write_bytes(path.read_bytes()[: size // 2])
    with pytest.raises(CorruptFile, match=rf"shard 2 .* is not whole: {name}"):
        Shards(tmp_path / "s")
    path.unlink()
    with pytest.raises(CorruptFile, match=f"{name} is missing"):
        made.check()
    assert "is missing" in made.verify()[0].what


def test_a_shard_that_was_written_to_is_named(made: Shards, tmp_path: Path) -> None:
    shard = made.shard_map.shards[0]
    shard.folder.rename(tmp_path / "aside")  # nothing writes to a shard at its place
    with simindex.open(tmp_path / "aside" / Path(shard.path).name, "w") as index:
        index.append(families(1, 1), ids=[999])
    (tmp_path / "aside").rename(shard.folder)
    with pytest.raises(CorruptFile, match="shard 0"):
        Shards(tmp_path / "s")


def test_shards_of_another_index_are_named(made: Shards, tmp_path: Path) -> None:
    """Two directories have exchanged their names: sizes may agree, the uuid does not."""
    first, second = (Path(shard.path) for shard in made.shard_map.shards[:2])
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    with pytest.raises(CorruptFile, match="shard 0"):
        made.check()


def test_an_append_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    """Whichever task fails, and also after some new shards are published. Then it is repeated."""
    fingerprints, rows = families(18, 60), families(22, 30)
    made = Shards.build(tmp_path / "s", simindex.Batch(fingerprints), 3, by="prefix")
    before, expected = made.shard_map, answer(made.query(fingerprints, h=3))
    left = [0]

    def failing(function: Any, *tasks: Any) -> Iterator[Any]:
        for task in zip(*tasks, strict=True):
            if not left[0]:
                raise StorageFull("no space left")
            left[0] -= 1
            yield function(*task)

    broken = Shards(tmp_path / "s")
    broken._run = failing
    for done in range(9):  # three shards are looked at, asked for the ids, and extended
        left[0] = done
        with pytest.raises(StorageFull):
            broken.append(rows)
        assert read_map(tmp_path / "s") == before
        assert answer(made.query(fingerprints, h=3)) == expected
    assert made.append(rows).tolist() == list(range(60, 90))
    assert len(made) == 90
    assert made.verify() == []
    assert len(made.sweep(older_than_s=0)) == 3
    assert made.verify() == []


def test_a_change_that_was_overtaken_is_refused(made: Shards, tmp_path: Path) -> None:
    def overtaking(function: Any, *tasks: Any) -> Any:
        found = list(map(function, *tasks))
        if found and isinstance(found[0], Shard):
            Shards(tmp_path / "s").append(families(20, 2))
        return found

    slow = Shards(tmp_path / "s")
    slow._run = overtaking
    with pytest.raises(IndexLocked, match="replaced meanwhile"):
        slow.append(families(21, 3))
    assert len(made) == 62
    assert made.verify() == []
