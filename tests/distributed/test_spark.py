"""Shards on Spark answer as one index does, whatever is run twice, and whatever fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from sharded import SHARDS, answers, families, local_index

import simindex
from simindex.distributed import plan_shards
from simindex.errors import IndexExists, IndexNotFound, InvalidBatch, InvalidOption

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'simindex[spark]'")


def _java() -> str | None:
    """Why there is no Java for Spark."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else str(Path(home) / "bin" / "java")
    if java is None:
        return "Spark needs Java 17, and there is no java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.partition('"')[2].partition(".")[0].strip('"\n')
    return None if version.isdigit() and int(version) >= 17 else f"Spark needs Java 17: {told[:60]}"


WHY = _java()
pytestmark = [
    pytest.mark.skipif(WHY is not None, reason=WHY or ""),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "1g")
        .config("spark.log.level", "OFF").getOrCreate()
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
    batch = simindex.Batch(rows, ids=np.arange(len(rows), dtype=np.uint64) * 3 + 2**63)
    built = on_spark.build(frame_of(spark, batch), plan_of(batch, shards), tmp_path / "s")
    with local_index(tmp_path / "i.sim", batch) as index:
        queries = families(4, 40)
        queries[:20] = rows[:20]
        if shards in (1, 3):  # each question is a job or more
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
    now = {Path(shard.path).name for shard in built.shard_map.shards}
    assert len(built) == 200 and published <= now and built.verify() == []
    with pytest.raises(IndexExists, match="already"):
        on_spark.build(frame_of(spark, batch), plan, tmp_path / "s")


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
    path = Path(built.shard_map.shards[0].path)
    path.rename(path.with_name("away"))

    def jobs() -> int:
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    assert jobs() > 0
    for call in (on_spark.query, on_spark.dedup):
        arguments: Any = (rows[:3],) if call is on_spark.query else ()
        before = jobs()
        with pytest.raises(IndexNotFound, match="shard 0"):
            call(spark, tmp_path / "s", *arguments)
        assert jobs() == before
