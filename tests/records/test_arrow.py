"""Results go to other libraries as Arrow streams, without a copy of their numbers."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.records import arrow

ROWS = np.array([0b0, 0b1, 0b11, 0b1, 1 << 60, 0b0], np.uint64)
KEYS = ["α", "b", "", "d" * 300, "e", "e"]
"""The last two rows are of one document."""


@pytest.fixture(params=[None, "str", "bytes"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[simindex.Index]:
    """Some rows, with ids, or with keys of either type."""
    kind: str | None = request.param
    options = IndexOptions(keys=kind)  # type: ignore[arg-type]
    with simindex.open(tmp_path / "x.sim", "n", options=options) as opened:
        if kind is None:
            opened.append(Batch(ROWS, ids=[0, 1, 2, 3, 4, 4]))
        else:
            opened.append(ROWS, keys=KEYS if kind == "str" else [key.encode() for key in KEYS])
        opened.commit()
        yield opened


Columns = dict[str, list[Any]]


def of_matches(found: Any) -> Columns:
    """Read one by one, by iteration."""
    read = list(found)
    columns: Columns = {"query": [m.query for m in read], "id": [m.id for m in read]}
    if found.keys() is not None:
        columns["key"] = [m.key for m in read]
    return columns | {"distance": [m.distance for m in read]}


def of_pairs(found: Any) -> Columns:
    read = list(found)
    columns: Columns = {"a": [p.a for p in read], "b": [p.b for p in read]}
    if found.keys() is not None:
        columns["a_key"], columns["b_key"] = found.keys()
    return columns | {"distance": [p.distance for p in read]}


def of_clusters(found: Any) -> Columns:
    read = list(found)
    columns: Columns = {"id": [c.id for c in read]}
    if found.keys() is not None:
        columns["key"] = found.keys()
    columns["cluster"] = [c.cluster for c in read]
    if found.keys() is not None:
        columns["cluster_key"] = found.cluster_keys()
    columns["representative"] = [c.representative for c in read]
    if found.keys() is not None:
        columns["representative_key"] = found.representative_keys()
    return columns | {"distance": [c.distance for c in read], "size": [c.size for c in read]}


RESULTS: dict[str, tuple[Callable[[simindex.Index], Any], Callable[[Any], Columns]]] = {
    "Matches": (lambda index: index.query(ROWS[:4], h=1), of_matches),
    "no Matches": (lambda index: index.query(np.array([1 << 40], np.uint64), h=0), of_matches),
    "TopMatches": (lambda index: index.top(ROWS[:4], k=3), of_matches),
    "TopMatches with empty places": (lambda index: index.top(ROWS[:4], k=6), of_matches),
    "Pairs": (lambda index: next(iter(index.pairs(h=1))), of_pairs),
    "Clusters": (lambda index: index.clusters(h=1), of_clusters),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_tables(index: simindex.Index, name: str) -> None:
    """Of pyarrow, polars, pandas and DuckDB, with the values that iteration gives."""
    call, columns_of = RESULTS[name]
    found = call(index)
    expected = columns_of(found)
    table = pa.table(found)
    table.validate(full=True)
    assert table.to_pydict() == expected
    assert pl.DataFrame(found).to_dict(as_series=False) == expected
    frame = pd.DataFrame.from_arrow(found)  # type: ignore[attr-defined]
    assert frame.to_dict(orient="list") == expected
    rows = duckdb.sql("from found").fetchall()
    assert rows == list(zip(*expected.values(), strict=True))


@pytest.mark.parametrize("words", [1, 2, 16])
def test_a_batch_is_a_table(words: int) -> None:
    """Wide fingerprints and weights are lists of a fixed length."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((5, 64 * words)).astype(np.float32)
    bits = np.packbits(weights >= 0, axis=1).view(">u8").astype(np.uint64)
    batch = Batch(bits, keys=list("abcde"), weights=weights, features=np.arange(5))
    table = pa.table(batch)
    table.validate(full=True)
    assert table.column_names == ["key", "fingerprint", "weights", "features"]
    assert table["fingerprint"].to_pylist() == batch.fingerprints.tolist()
    assert table["weights"].to_pylist() == weights.tolist()
    assert pl.DataFrame(batch)["fingerprint"].to_list() == batch.fingerprints.tolist()
    assert pa.table(Batch(bits, ids=range(5))).column_names == ["id", "fingerprint"]
    assert pa.table(Batch(bits[:0])).num_rows == 0


def test_numbers_are_not_copied() -> None:
    batch = Batch(np.arange(1000, dtype=np.uint64), ids=np.arange(1000))
    table = pa.table(batch)
    for name, values in (("fingerprint", batch.rows), ("id", batch.ids)):
        (chunk,) = table[name].chunks
        assert values is not None
        assert chunk.buffers()[1].address == values.ctypes.data


@pytest.mark.slow
def test_columns_outlive_what_they_came_with() -> None:
    """And nothing is kept longer than they are."""
    values = np.arange(1000, dtype=np.uint64)
    rows = weakref.ref(values)
    column = pa.table(Batch(values))["fingerprint"]
    del values
    gc.collect()
    assert rows() is not None
    assert column.to_pylist() == list(range(1000))
    del column
    gc.collect()
    assert rows() is None


@pytest.mark.slow
def test_a_stream_that_nobody_reads_is_released() -> None:
    values = np.arange(10, dtype=np.uint64)
    rows = weakref.ref(values)
    capsule = Batch(values).__arrow_c_stream__()
    del values
    gc.collect()
    assert rows() is not None
    del capsule
    gc.collect()
    assert rows() is None


def test_tables_are_released_by_any_thread() -> None:
    rows = [np.arange(10, dtype=np.uint64) for _ in range(200)]
    tables = [pa.table(Batch(values)) for values in rows]
    alive = [weakref.ref(values) for values in rows]
    rows.clear()

    def release() -> None:
        while tables:
            try:
                tables.pop()
            except IndexError:  # another thread had the last one
                return

    threads = [threading.Thread(target=release) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(one() for one in alive)


@pytest.mark.parametrize("short", [np.arange(4), np.arange(10).reshape(5, 2)[:4], list("abcd")])
def test_columns_are_of_one_length(short: Any) -> None:
    with pytest.raises(ValueError, match="as many values as the table has rows"):
        arrow.stream({"id": np.arange(5), "other": short})


@pytest.mark.slow
def test_a_program_may_end_with_a_table() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", """
import numpy, polars, pyarrow, simindex
table = pyarrow.table(simindex.Batch(numpy.arange(5, dtype=numpy.uint64), keys=list("abcde")))
frame = polars.DataFrame(table)
left = simindex.Batch(numpy.arange(5, dtype=numpy.uint64)).__arrow_c_stream__()
"""], capture_output=True, text=True, timeout=60, check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_parts_without_rows_have_the_columns_of_the_others(tmp_path: Path) -> None:
    """Also those of keys that are bytes."""
    texts = [" ".join(f"word{(start + number) % 90}" for number in range(80)) for start in (0, 1)]
    recipe = simindex.Recipe()
    options = simindex.IndexOptions(keys="bytes", recipe=recipe)
    with (
        simindex.open(tmp_path / "e.sim", "n", options=options) as empty,
        simindex.open(tmp_path / "b.sim", "n", options=options) as index,
    ):
        index.append(recipe.batch(texts, keys=[b"a", b"b"]))
        index.commit()
        batch = next(iter(index.rows()))
        found, none = index.query(texts), index.query("another text that is near to nothing here")
        (pairs,) = index.pairs(h=64)
        clusters = index.clusters(h=64)
        parts: list[tuple[Any, Any]] = [
            (found, none), (found, found.take(np.empty(0, np.int64))),
            (found, pickle.loads(pickle.dumps(none))),  # noqa: S301
            (found, index.query([])),
            (found, empty.query(texts)), (clusters, index.clusters(h=0, singletons=False)),
            *((pairs, part) for part in index.pairs(h=0)),
            (batch, batch.take(np.empty(0, np.int64))),
        ]
        for some, nothing in parts:
            assert not len(pa.table(nothing)) and len(pa.table(some))
            assert pa.table(some).schema == pa.table(nothing).schema
