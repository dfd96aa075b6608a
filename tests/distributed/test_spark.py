"""Shards on Spark answer as one index does, whatever is run twice, and whatever fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from sharded import SHARDS, answer, answers, families, local_index

import simindex
from simindex.distributed import Shards, build_shard, of_shards, plan_shards, write_map
from simindex.distributed.java import require_java
from simindex.errors import (
    CorruptFile,
    IndexExists,
    IndexNotFound,
    InvalidBatch,
    InvalidOption,
    MissingExtra,
    RecipeMismatch,
)

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'simindex[spark]'")


def _java() -> str | None:
    """Why there is no Java for Spark."""
    try:
        require_java()
    except MissingExtra as error:
        return str(error)
    return None


WHY = _java()
pytestmark = [
    pytest.mark.skipif(WHY is not None, reason=WHY or ""),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from simindex.distributed import spark as on_spark

    session = on_spark.local_session(
        spark_sql_shuffle_partitions="4", spark_driver_memory="1g", spark_log_level="OFF"
    )
    yield session
    session.stop()


def frame_of(spark: Any, batch: simindex.Batch) -> Any:
    import pyarrow as pa

    rows = batch.rows.view(np.int64)
    columns: dict[str, Any] = {
        "fingerprint": pa.array(rows[:, 0] if rows.shape[1] == 1 else list(rows))
    }
    if batch.keys is not None:
        columns["key"] = pa.array(list(batch.keys))
    else:
        assert batch.ids is not None
        columns["id"] = pa.array(batch.ids.view(np.int64))
    return spark.createDataFrame(pa.table(columns))


def plan_of(batch: simindex.Batch, shards: int) -> Any:
    keys: Any = "str" if batch.keys is not None else None
    return plan_shards(
        len(batch), shards, by="prefix",
        options=simindex.IndexOptions(bits=batch.bits, keys=keys),
    )


@pytest.mark.parametrize("shards", SHARDS)
def test_answers_are_those_of_one_index(spark: Any, tmp_path: Path, shards: int) -> None:
    from simindex.distributed import spark as on_spark

    rows = families(3, 400)
    plan = plan_of(simindex.Batch(rows, ids=np.arange(len(rows), dtype=np.uint64)), shards)
    if shards > 1:  # the first one gets no row
        rows = rows[plan.shards_of(simindex.Batch(rows)) != 0]
    batch = simindex.Batch(rows, ids=np.arange(len(rows), dtype=np.uint64) * 3 + 2**63)
    built = on_spark.build(frame_of(spark, batch), plan, tmp_path / "s")
    assert [shard.rows for shard in built.shard_map.shards].count(0) == (shards > 1)
    with local_index(tmp_path / "i.sim", batch) as index:
        queries = families(4, 40)
        queries[:20] = rows[:20]
        assert answers(built, queries, 3, 5) == answers(index, queries, 3, 5)
        found = on_spark.query(spark, tmp_path / "s", queries, h=3).toArrow()
        expected = index.query(queries, h=3)
        named = zip(
            expected.query.tolist(), expected.id.view(np.int64).tolist(),
            expected.distance.tolist(), strict=True,
        )
        told = zip(*(found[name].to_pylist() for name in ("query", "id", "distance")), strict=True)
        assert sorted(told) == sorted(named)
        assert len(expected) > 20
        near = {"similarity": 0.95}
        found = on_spark.query(spark, tmp_path / "s", queries, **near).toArrow()
        assert len(found) == len(index.query(queries, **near)) > len(expected)
    lost = on_spark.dedup(spark, tmp_path / "s", h=3).toArrow()
    truth = simindex.distributed.Shards(tmp_path / "s").losers(h=3)
    assert lost["id"].to_pylist() == truth.id.view(np.int64).tolist()
    assert lost["winner"].to_pylist() == truth.winner.view(np.int64).tolist()
    assert built.verify() == []


def test_texts_become_shards_with_keys(spark: Any, tmp_path: Path) -> None:
    """Also the text of no word, which has no fingerprint, and shards without a row."""
    from simindex.distributed import spark as on_spark

    recipe = simindex.Recipe(bits=128, h=5)
    texts = [f"a page of number {i} with some words of {i * 7}" for i in range(30)] + ["", "?!"]
    rows = [(f"k{i}", text) for i, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "key string, text string")
    options = simindex.IndexOptions(bits=128, keys="str", recipe=recipe)
    plan = plan_shards(30, 7, by="prefix", options=options)
    made = on_spark.with_fingerprints(frame, recipe)
    assert made.where("fingerprint is null").count() == 2
    built = on_spark.build(made, plan, tmp_path / "s")
    assert len(built) == 30
    found = on_spark.query(spark, tmp_path / "s", recipe.batch(texts[:3]), h=0).collect()
    assert sorted((row["query"], row["key"]) for row in found) == [(0, "k0"), (1, "k1"), (2, "k2")]


def test_sketches_of_texts_go_into_shards(spark: Any, tmp_path: Path) -> None:
    """With the sizes of documents, so that resemblance is that of one index; one text is empty."""
    from simindex.distributed import spark as on_spark

    recipe = simindex.Recipe(weighting="binary", sketch_bits=128)
    words = [f"word{number}" for number in range(40)]
    texts = [" ".join(words[number % 3 : 40 - number // 3]) for number in range(24)] + [""]
    frame = spark.createDataFrame(
        [(f"k{number}", text) for number, text in enumerate(texts)], "key string, text string"
    ).coalesce(1)
    options = simindex.IndexOptions(keys="str", recipe=recipe, key_secret=b"0" * 16)
    plan = plan_shards(24, 2, by="ones", options=options)
    made = on_spark.with_fingerprints(frame, recipe)
    assert made.dtypes[-1] == ("sketch", "binary")
    on_spark.build(made, plan, tmp_path / "s")
    batch = recipe.batch(texts, keys=[f"k{number}" for number in range(25)])
    with simindex.open(tmp_path / "i.sim", "c", options=options) as index:
        index.append(batch)
        index.commit()
        for near in ({"similarity": 0.8}, {"similarity": 0.8, "measure": "jaccard"}):
            found = on_spark.query(spark, tmp_path / "s", batch, **near).toArrow()
            told = zip(*(found[name].to_pylist() for name in ("query", "key", "distance")),
                       strict=True)
            expected = index.query(batch, **near, recall=1.0)
            wanted = zip(
                expected.query.tolist(), expected.keys() or (), expected.distance.tolist(),
                strict=True,
            )
            assert sorted(told) == sorted(wanted)
            assert len(expected) > 40
    with pytest.raises(InvalidBatch, match="a column 'fingerprint' already"):
        on_spark.with_fingerprints(made, recipe)
    with pytest.raises(InvalidBatch, match="no column 'body'"):
        on_spark.with_fingerprints(frame, recipe, text="body")


def test_keys_of_bytes_come_back(spark: Any, tmp_path: Path) -> None:
    from simindex.distributed import spark as on_spark

    keys = [b"\xff", b"\xfe", b""]
    frame = spark.createDataFrame(
        [(row, bytearray(key)) for row, key in zip((1, 3, -3), keys, strict=True)],
        "fingerprint bigint, key binary",
    ).coalesce(1)
    options = simindex.IndexOptions(keys="bytes")
    on_spark.build(frame, plan_shards(3, 2, by="prefix", options=options), tmp_path / "s")
    rows = np.array([1, 3, 2**64 - 3, 7 << 40], np.uint64)
    found = on_spark.query(spark, tmp_path / "s", rows, h=0)
    assert dict(found.dtypes)["key"] == "binary"
    told = sorted((row["query"], bytes(row["key"])) for row in found.collect())
    assert told == list(enumerate(keys))
    assert on_spark.dedup(spark, tmp_path / "s", h=1).count() == 1


def test_columns_that_are_not_of_rows_are_refused(spark: Any, tmp_path: Path) -> None:
    """By their types before a job starts; by their values in a task, before a shard is built."""
    from simindex.distributed import spark as on_spark

    wide, keyed = simindex.IndexOptions(bits=128), simindex.IndexOptions(keys="str")

    def refused(rows: Any, schema: str, message: str, options: Any = None) -> InvalidBatch:
        frame = spark.createDataFrame(rows, schema).coalesce(1)
        plan = plan_shards(3, 2, by="prefix", options=options)
        with pytest.raises(InvalidBatch, match=message) as raised:
            on_spark.build(frame, plan, tmp_path / "s")
        assert not (tmp_path / "s").exists()
        return raised.value

    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    refused([(1.5, 5)], "fingerprint double, id bigint", "'fingerprint' is DOUBLE")
    refused([(1, "a")], "fingerprint bigint, id string", "'id' is STRING")
    assert len(tracker.getJobIdsForGroup(None)) == before
    lists = "fingerprint array<bigint>, id int"
    ragged = [([1, 2], 5), ([3], 6), ([4, 5, 6], 7)]
    error = refused(ragged, lists, r"row 1 of a block \(id 6\) does not have the 2 numb", wide)
    assert error.data["column"] == "fingerprint" and error.remedy
    texts = spark.createDataFrame([("k", "a b c"), ("l", None)], "key string, text string")
    with pytest.raises(InvalidBatch, match="is null"):
        made = on_spark.with_fingerprints(texts.coalesce(1), simindex.Recipe())
        on_spark.build(made, plan_shards(2, 1, by="prefix", options=keyed), tmp_path / "s")


def killed_once(folder: Path) -> Any:
    """Makes of a function one whose process is killed when it has done its work, the first time.

    Functions in functions: workers cannot import this module.
    """
    def wrapped(function: Any) -> Any:
        def killed(*task: Any, **named: Any) -> Any:
            import os
            import signal

            result = function(*task, **named)
            try:
                (folder / "killed").touch(exist_ok=False)
            except FileExistsError:
                return result
            return os.kill(os.getpid(), signal.SIGKILL)

        return killed

    return wrapped


def test_a_worker_is_killed_in_the_middle_of_a_build(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its shard was published, so that the second run finds it there."""
    from simindex.distributed import spark as on_spark

    rows = families(5, 200)
    batch = simindex.Batch(rows, ids=np.arange(len(rows), dtype=np.uint64))
    monkeypatch.setattr(on_spark, "build_shard", killed_once(tmp_path)(on_spark.build_shard))
    built = on_spark.build(frame_of(spark, batch), plan_of(batch, 3), tmp_path / "s")
    assert (tmp_path / "killed").exists()
    assert built.verify() == []
    with local_index(tmp_path / "i.sim", batch) as index:
        assert answers(Shards(tmp_path / "s"), rows, 3, 5) == answers(index, rows, 3, 5)


@pytest.mark.parametrize("call", ["query", "clusters", "ingest"])
def test_a_worker_is_killed_in_the_middle_of_a_call(
    spark: Any, tmp_path: Path, call: str
) -> None:
    from simindex.distributed import spark as on_spark

    rows = families(6, 120)
    queries = np.concatenate([rows[:10], families(7, 20)])
    for name in ("s", "t"):
        Shards.build(tmp_path / name, simindex.Batch(rows), 2)
    run = on_spark.tasks(spark)
    kill = killed_once(tmp_path)
    shards = Shards(tmp_path / "s", run=lambda function, *values: run(kill(function), *values))
    (tmp_path / "killed").unlink()  # of looking at the shards
    questions: dict[str, Any] = {
        "query": lambda held: held.query(queries, h=3),
        "clusters": lambda held: held.clusters(h=3),
        "ingest": lambda held: held.ingest(queries, h=3),
    }
    found = answer(questions[call](shards))
    assert (tmp_path / "killed").exists()
    assert found == answer(questions[call](Shards(tmp_path / "t")))
    assert Shards(tmp_path / "s").verify() == []


def test_a_task_that_is_run_twice_at_once_gives_one_shard(spark: Any, tmp_path: Path) -> None:
    """As speculation does: both runs have begun before either goes on."""
    from simindex.distributed import spark as on_spark

    rows = families(8, 200)
    batch = simindex.Batch(rows, ids=np.arange(len(rows), dtype=np.uint64))
    plan = plan_of(batch, 2)
    parts = [[plan.part(number, batch)] for number in (0, 1)]
    root = tmp_path / "s"

    def together(copy: int, number: int, part: Any) -> Any:
        import time

        (tmp_path / f"{number}-{copy}").touch()
        end = time.monotonic() + 30
        while not (tmp_path / f"{number}-{1 - copy}").exists():
            assert time.monotonic() < end
            time.sleep(0.001)
        return build_shard(plan, number, part, root)

    run = on_spark.tasks(spark)
    one, other, third, fourth = run(
        together, [0, 1, 0, 1], [0, 0, 1, 1], [parts[0], parts[0], parts[1], parts[1]]
    )
    assert one == other and third == fourth
    assert len(list((root / "shards").iterdir())) == 2
    write_map(of_shards(root, (one, third)))
    assert Shards(root).verify() == []
    with local_index(tmp_path / "i.sim", batch) as index:
        assert answers(Shards(root), rows, 3, 5) == answers(index, rows, 3, 5)


def test_the_example_of_the_page_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/shards.md").read_text(encoding="utf-8")
    code = page.partition("## On Spark")[2].partition("```python no-run\n")[2].partition("```")[0]
    assert "spark.dedup" in code
    monkeypatch.chdir(tmp_path)  # Java stays where it was
    exec(code.replace('"dropped"', repr(str(tmp_path / "dropped"))), {})  # noqa: S102
    assert list((tmp_path / "dropped").glob("*.json"))


def test_a_run_that_failed_is_completed_by_the_next(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simindex.distributed import spark as on_spark

    rows = oracle.uniform(np.random.default_rng(1), 200, 1)
    ids = np.arange(200, dtype=np.uint64)
    batch = simindex.Batch(rows, ids=ids)
    plan = plan_of(batch, 4)
    same_shard = ids[plan.shards_of(batch) == plan.shards_of(batch)[199]]
    twice = simindex.Batch(rows, ids=np.where(ids == 199, same_shard[0], ids))
    with pytest.raises(InvalidOption, match="id"):
        on_spark.build(frame_of(spark, twice), plan, tmp_path / "s")
    assert not (tmp_path / "s" / "shards.json").exists()
    published = {path.name for path in (tmp_path / "s" / "shards").glob("0*")}
    apart = ids[plan.shards_of(batch) != plan.shards_of(batch)[199]]
    both = simindex.Batch(rows, ids=np.where(ids == 199, apart[0], ids))
    with pytest.raises(InvalidOption, match="both have the id"):
        on_spark.build(frame_of(spark, both), plan, tmp_path / "t")
    assert not (tmp_path / "t" / "shards.json").exists()
    built = on_spark.build(frame_of(spark, batch), plan, tmp_path / "s")
    now = {shard.folder.name for shard in built.shard_map.shards}
    assert len(built) == 200 and published <= now and built.verify() == []
    with pytest.raises(IndexExists, match="already"):
        on_spark.build(frame_of(spark, batch), plan, tmp_path / "s")


def test_a_shard_of_another_recipe_is_refused_before_any_job(spark: Any, tmp_path: Path) -> None:
    """The map says that both shards have one recipe, and one of them has another."""
    from simindex.distributed import spark as on_spark

    texts = [f"a text of some words and number {number}" for number in range(6)]
    made = {}
    for seed in (5, 6):
        recipe = simindex.Recipe(seed=seed)
        batch = recipe.batch(texts, ids=np.arange(6, dtype=np.uint64) + 10 * seed)
        made[seed] = Shards.build(tmp_path / str(seed), batch, 1).shard_map.shards[0]
    lying = replace(made[6], number=1, facts=made[5].facts)
    name = f"00001-{lying.rows_digest}/{lying.seal}"
    path = tmp_path / "5" / "shards" / name
    path.parent.mkdir()
    shutil.copytree(made[6].path, path)
    lying = replace(lying, path=str(path))
    write_map(of_shards(tmp_path / "5", (made[5], lying), generation=2))
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    for call in (
        lambda: on_spark.query(spark, tmp_path / "5", simindex.Recipe(seed=5).batch(texts)),
        lambda: on_spark.dedup(spark, tmp_path / "5"),
    ):
        with pytest.raises(RecipeMismatch, match=rf"shard 1 \(.*{name}\) has recipe") as raised:
            call()
        assert raised.value.data["shard"] == 1
    assert len(tracker.getJobIdsForGroup(None)) == before


def test_what_is_wrong_is_said_before_anything_runs(spark: Any, tmp_path: Path) -> None:
    from simindex.distributed import spark as on_spark

    rows = oracle.uniform(np.random.default_rng(2), 40, 1)
    batch = simindex.Batch(rows, ids=np.arange(40, dtype=np.uint64))
    frame = frame_of(spark, batch)
    by_rows = plan_shards(40, 2, options=simindex.IndexOptions())
    with pytest.raises(InvalidBatch, match="by rows"):
        on_spark.build(frame, by_rows, tmp_path / "s")
    with pytest.raises(InvalidBatch, match="no column 'id'"):
        on_spark.build(frame.drop("id"), plan_of(batch, 2), tmp_path / "s")
    assert not (tmp_path / "s").exists()
    built = on_spark.build(frame, plan_of(batch, 2), tmp_path / "s")
    other = simindex.Batch(oracle.uniform(np.random.default_rng(3), 4, 2))
    with pytest.raises(InvalidBatch, match="128"):
        on_spark.query(spark, tmp_path / "s", other)
    recipe = simindex.Recipe(seed=5)
    Shards.build(tmp_path / "t", recipe.batch(["a text of some words"] * 2, keys=["a", "b"]), 1)
    foreign = Path(Shards(tmp_path / "t").shard_map.shards[0].path)

    def jobs() -> int:
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    def refused(error: type[Exception], message: str) -> None:
        for call in (on_spark.query, on_spark.dedup):
            arguments: Any = (rows[:3],) if call is on_spark.query else ()
            before = jobs()
            with pytest.raises(error, match=message):
                call(spark, tmp_path / "s", *arguments)
            assert jobs() == before

    assert jobs() > 0
    first, second = built.shard_map.shards
    file, size = second.files[-1]
    whole = (Path(second.path) / file).read_bytes()
    (Path(second.path) / file).write_bytes(whole[: size // 2])
    refused(CorruptFile, rf"shard 1 .* is not whole: {file}")
    (Path(second.path) / file).write_bytes(whole)
    Path(first.path).rename(tmp_path / "away")
    refused(IndexNotFound, "shard 0")
    shutil.copytree(foreign, first.path)
    refused(CorruptFile, "shard 0")
    with pytest.raises(RecipeMismatch):
        on_spark.query(spark, tmp_path / "t", simindex.Recipe(seed=6).batch(["a text of words"]))
    of_two = (Shards(tmp_path / "t").shard_map.shards[0], second)
    with pytest.raises((RecipeMismatch, InvalidOption), match="shard 1"):
        of_shards(tmp_path / "s", of_two)
