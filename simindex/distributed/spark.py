"""Shards on Spark: functions for `mapInArrow`, thin over those that any engine can run.

    a DataFrame of texts   -> with_fingerprints -> a column of fingerprints
    fingerprints and names -> build             -> shards, and the map
    a batch, broadcast     -> query             -> a DataFrame of matches, one task for each shard
    pairs of shards        -> dedup             -> a DataFrame of the rows that lose

`spark_columns` says which columns these are. Spark may run a task twice, also at once: a shard is
built under a name that its rows decide, so that the second one finds it there.
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simindex.distributed.collection import Shards
from simindex.distributed.creation import Run, require_new, write_first_map
from simindex.distributed.java import require_java
from simindex.distributed.nearness import Near
from simindex.distributed.publication import build_shard
from simindex.distributed.question import query_shard, question
from simindex.distributed.shard import opened
from simindex.distributed.shard_plan import ShardPlan
from simindex.distributed.spark_columns import (
    FINGERPRINT,
    SKETCH,
    batch_of,
    columns_of,
    fingerprints_column,
    require_columns,
    require_named,
    sketches_column,
    type_of_keys,
    words_of,
)
from simindex.errors import InvalidBatch, MissingExtra, SimindexError
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe

try:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.serializers import CloudPickleSerializer
except ImportError as _error:
    raise MissingExtra(
        f"shards on Spark need PySpark ({_error})", remedy="pip install 'simindex[spark]'",
        extra="spark",
    ) from _error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARD = "shard"

Batches = Iterator[Any]
"""Arrow record batches, as `mapInArrow` gives and takes them."""


def local_session(cores: int = 2, **settings: Any) -> SparkSession:
    """A session of Spark on this machine alone, without its web pages; or the one that runs.

    `settings` are those of Spark, with ``_`` for ``.``: ``spark_driver_memory="4g"``. A failed task
    is run again up to three times. Raises MissingExtra if there is no Java 17.
    """
    require_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores},4]")
    chosen = {
        "spark_ui_enabled": "false", "spark_driver_bindAddress": "127.0.0.1",
        "spark_driver_host": "127.0.0.1", **settings,
    }
    for name, value in chosen.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.getOrCreate()


def with_fingerprints(frame: DataFrame, recipe: Recipe, *, text: str = "text") -> DataFrame:
    """The rows of a DataFrame with a column `fingerprint`, null where a text has no feature.

    With a recipe that has ``sketch_bits`` also a column `sketch`, BINARY, of the bits of the sketch
    and the size of the document. The recipe goes to each task, with its learned weights. A null
    text is an error of the task, which `build` raises as InvalidBatch.

    Raises
    ------
    InvalidBatch
        If there is no column of texts, or a column that is to be made is there already.
    """
    _require_texts(frame, recipe, text)

    def called(batches: Batches) -> Batches:
        for block in batches:
            with _sent():
                made = recipe.batch(block.column(text))
            kept = np.ones(len(block), np.bool_)
            kept[[one.position for one in made.skipped]] = False
            rows = np.zeros((len(block), recipe.bits // 64), np.uint64)
            rows[kept] = made.rows
            told = block.append_column(FINGERPRINT, fingerprints_column(rows, ~kept))
            if made.sketches is not None:
                records = np.zeros((len(block), made.sketches.shape[1]), np.uint8)
                records[kept] = made.sketches
                told = told.append_column(SKETCH, sketches_column(records, ~kept))
            yield told

    kind = "bigint" if recipe.bits == 64 else "array<bigint>"
    fields = ", ".join(f"`{name}` {told}" for name, told in frame.dtypes)
    sketch = f", {SKETCH} binary" if recipe.sketch_bits else ""
    return frame.mapInArrow(called, f"{fields}, {FINGERPRINT} {kind}{sketch}")


def build(frame: DataFrame, plan: ShardPlan, root: str | os.PathLike[str]) -> Shards:
    """Builds the shards of a plan from a DataFrame, and writes their map.

    Parameters
    ----------
    frame : DataFrame
        A column `fingerprint`, and one that names the rows: `key`, STRING, or BINARY for
        ``keys="bytes"``, or `id`, BIGINT. If the options of the plan have ``sketch_bits``, a column
        `sketch`, as `with_fingerprints` makes it. The rows of a shard are in the memory of its
        task. Rows without a fingerprint are left out.
    plan : ShardPlan
        By prefix: rows of a DataFrame have no order to be divided by.
    root : path
        A folder that all machines have under this path.

    Raises
    ------
    IndexExists
        If there is a map in `root`. Nothing was done.
    InvalidBatch
        If a column is missing or of another type, or the plan is by rows: no job was started. Or
        if a task met a row with a null, or with numbers or bytes of another count than the options
        have: no shard was built. The error names the column and the first such row of a block.
    InvalidOption, InvalidBatch, StorageFull, StorageFailed
        What `build_shard` raised in a task. Shards that were built stay, and a second call finds
        them there. Other errors of a task are those of PySpark.
    """
    folder = require_new(root)
    _require_by_regions(plan)
    options = plan.options
    require_columns(dict(frame.dtypes), options)
    spark = frame.sparkSession

    def placed(batches: Batches) -> Batches:
        for block in batches:
            with _sent():
                places = plan.shards_of(Batch(words_of(block, options)))
            yield block.append_column(SHARD, pa.array(places, pa.int64()))

    def built(table: Any) -> Any:
        number = table.column(SHARD)[0].as_py()
        return _outcome(number, build_shard, plan, number, [batch_of(table, options)], folder)

    named = frame.select(*columns_of(options)).dropna(subset=[FINGERPRINT])
    kinds = ", ".join(f"`{column}` {told}" for column, told in named.dtypes)
    groups = named.mapInArrow(placed, f"{kinds}, {SHARD} bigint").groupBy(SHARD)
    made = _results(groups.applyInArrow(built, _OUTCOME))
    run = tasks(spark)
    empty = [number for number in range(len(plan)) if number not in made]
    made.update(zip(
        empty, run(partial(build_shard, plan, batches=[], root=folder), empty), strict=True
    ))
    write_first_map(folder, tuple(made[number] for number in range(len(plan))), run)
    return Shards(folder, run=run)


def query(
    spark: SparkSession, root: str | os.PathLike[str], batch: Batch | Any, *, h: int | None = None,
    similarity: float | None = None, measure: str = "cosine", recall: float = 1.0,
) -> DataFrame:
    """The rows within h of each query: BIGINT `query`, `id` and `distance`, and `key` if there is.

    Keys are STRING, or BINARY of shards with ``keys="bytes"``.

    The batch is broadcast, and each shard is asked by a task of its own, so that no answer has to
    fit the driver. Looks at all shards first, and raises what `Shards` raises. The answer is of the
    shards at the time of the call: its tasks end with an error if they are removed before that.
    """
    now = Shards(root).check()
    asked, near, shards = question(now, batch, Near(h, similarity, measure, recall))
    with opened(shards[0]) as index:
        options = index.options
    kind = type_of_keys(options)
    sent = spark.sparkContext.broadcast(asked)
    how = {"recall": recall, **near.options}

    def answered(number: int) -> Any:
        found = query_shard(shards[number], sent.value, **how, threads=1)
        columns: dict[str, Any] = {
            "query": found.query, "id": found.id.view(np.int64),
            "distance": found.distance.astype(np.int64),
        }
        if options.keyed:
            columns["key"] = pa.array(found.keys(), kind)
        return pa.table(columns)

    schema = "query bigint, id bigint, distance bigint" + (f", key {kind}" if options.keyed else "")
    return _each(spark, len(shards)).mapInArrow(partial(_answers, answered), schema)


def dedup(
    spark: SparkSession, root: str | os.PathLike[str], *, h: int | None = None,
    similarity: float | None = None, measure: str = "cosine", recall: float = 1.0,
) -> DataFrame:
    """The rows to drop so that no two within h are left: BIGINT `id`, `winner` and `distance`.

    Tasks find the pairs of each two shards. Who loses is decided on the driver, in the memory that
    `Shards.losers` takes. Looks at all shards first, and raises what `Shards` raises.
    """
    Shards(root)  # what is wrong with a shard is said before a job starts
    found = Shards(root, run=tasks(spark)).losers(
        h=h, similarity=similarity, measure=measure, recall=recall, threads=1
    )
    return spark.createDataFrame(pa.table({
        "id": found.id.view(np.int64), "winner": found.winner.view(np.int64),
        "distance": found.distance.astype(np.int64),
    }))


def tasks(spark: SparkSession) -> Run:
    """Runs tasks as `map` does, each as a task of Spark: for ``Shards(root, run=tasks(spark))``.

    The function and its values are broadcast, and the results come to the driver, at most 2 GB each
    and `spark.driver.maxResultSize` in all.
    """
    def run(function: Callable[..., Any], *values: Iterable[Any]) -> list[Any]:
        listed = list(zip(*values, strict=True))
        if not listed:
            return []
        # As bytes: a broadcast value itself cannot be a function of a script or a notebook.
        sent = spark.sparkContext.broadcast(_SERIALIZER.dumps((function, listed)))

        def called(number: int) -> Any:
            function, listed = _SERIALIZER.loads(sent.value)
            return _outcome(number, function, *listed[number])

        frame = _each(spark, len(listed)).mapInArrow(partial(_answers, called), _OUTCOME)
        results = _results(frame)
        sent.unpersist()
        return [results[number] for number in range(len(listed))]

    return run


_SERIALIZER: Any = CloudPickleSerializer()

_OUTCOME = "number bigint, failed boolean, result binary"


def _outcome(number: int, function: Callable[..., Any], *values: Any) -> Any:
    """What a function returns, or an error of simindex, as a row for `_results`."""
    try:
        failed, result = False, function(*values)
    except SimindexError as error:
        failed, result = True, error
    row = {"number": [number], "failed": [failed], "result": [_SERIALIZER.dumps(result)]}
    return pa.table(row)


def _results(frame: DataFrame) -> dict[int, Any]:
    """The results of tasks by number. Raises the error of the first one that failed."""
    with _received():
        told = frame.toArrow().sort_by("number").to_pydict()
    found = {}
    for number, failed, result in zip(*told.values(), strict=True):
        found[number] = _SERIALIZER.loads(result)
        if failed:
            raise found[number]
    return found


_SENT = re.compile(r"<simindex:([A-Za-z0-9+/=]+)>")
"""An error of simindex in the text of one of PySpark, which is all that it has of a task's."""


@contextmanager
def _sent() -> Iterator[None]:
    """Raises errors of simindex so that `_received` finds them in what PySpark says of them."""
    try:
        yield
    except SimindexError as error:
        pickled = b64encode(_SERIALIZER.dumps(error)).decode("ascii")
        raise RuntimeError(f"{error} <simindex:{pickled}>") from error


@contextmanager
def _received() -> Iterator[None]:
    """Raises the error of simindex that ended a job; others as they are."""
    try:
        yield
    except PySparkException as error:
        found = _SENT.search(str(error))
        if found is None:
            raise
        raise _SERIALIZER.loads(b64decode(found[1])) from error


def _each(spark: SparkSession, number: int) -> DataFrame:
    """A DataFrame of the numbers below one, each in a partition of its own."""
    return spark.range(0, number, 1, number)


def _answers(answer: Callable[[int], Any], batches: Batches) -> Batches:
    for block in batches:
        for number in block.column(0).to_pylist():
            yield from answer(number).to_batches()


def _require_by_regions(plan: ShardPlan) -> None:
    if plan.starts is not None:
        raise InvalidBatch(
            "the plan is by rows, and rows of a DataFrame have no order",
            remedy='make the plan with plan_shards(rows, shards, by="prefix", options=...)',
        )


def _require_texts(frame: DataFrame, recipe: Recipe, text: str) -> None:
    """Raises InvalidBatch unless a DataFrame has texts, and no column of those to be made."""
    kinds = dict(frame.dtypes)
    require_named(kinds, text, "name the column of texts: text=...")
    if kinds[text].partition(" ")[0] not in ("string", "binary"):
        raise InvalidBatch(
            f"the column {text!r} is {kinds[text].upper()}, not STRING", remedy="cast it to STRING",
            found=kinds[text], expected="STRING", column=text,
        )
    for name in (FINGERPRINT, *((SKETCH,) if recipe.sketch_bits else ())):
        if name in kinds:
            raise InvalidBatch(
                f"the DataFrame has a column {name!r} already", remedy="drop it, or rename it",
                found=[*kinds], column=name,
            )
