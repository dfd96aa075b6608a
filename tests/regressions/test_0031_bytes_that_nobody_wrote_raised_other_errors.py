"""What fuzzing found: values of options, and stored ones, that ended in ValueError or TypeError."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import simindex
from simindex import IndexOptions, Recipe
from simindex.errors import CorruptFile, InvalidBatch, InvalidOption
from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.leases import acquire
from simindex.storage.catalog.records import stored_options
from simindex.storage.tables import reservoir, structure

ONE = np.ones(1, np.uint64)
TWO = np.zeros(2)
NONE = np.zeros(0)

CALLS: dict[str, Callable[[simindex.Index], object]] = {
    "method of a query": lambda index: index.query(ONE, method=TWO),  # type: ignore[arg-type]
    "method of no value": lambda index: index.query(ONE, method=NONE),  # type: ignore[arg-type]
    "method explained": lambda index: index.explain(ONE, method=TWO),  # type: ignore[arg-type]
    "first": lambda index: index.query(ONE, first=TWO),  # type: ignore[arg-type]
    "mode of clusters": lambda index: index.clusters(mode=TWO),  # type: ignore[arg-type]
    "singletons": lambda index: index.clusters(singletons=TWO),  # type: ignore[arg-type]
    "method of pairs": lambda index: index.pairs(method=TWO),  # type: ignore[arg-type]
    "collapse_equal": lambda index: index.pairs(collapse_equal=TWO),  # type: ignore[arg-type]
    "bits": lambda index: IndexOptions(bits=TWO),  # type: ignore[arg-type]
    "stop words": lambda index: Recipe(stop_words=np.array(1)),
}


@pytest.fixture
def index(index_path: Path) -> Any:
    with simindex.open(index_path, "n", options=IndexOptions(reservoir_rows=4)) as index:
        index.append(np.arange(4, dtype=np.uint64), weights=np.full((4, 64), -1, "f4") + 2 * (
            np.arange(4)[:, None] >> np.arange(63, -1, -1) & 1))
        index.commit()
        yield index


@pytest.mark.parametrize("name", CALLS)
def test_an_array_is_no_option(index: simindex.Index, name: str) -> None:
    with pytest.raises(InvalidOption):
        CALLS[name](index)


def test_a_limit_beyond_all_memory_is_one_that_is_never_reached(index: simindex.Index) -> None:
    for limit in (1 << 64, 10**400):
        assert sum(map(len, index.pairs(h=1, memory_limit=limit))) == 4
        assert index.clusters(h=1, mode="components", memory_limit=limit).cluster.tolist() == (
            [0, 0, 0, 0]
        )


def test_an_array_of_no_dimension_holds_no_texts() -> None:
    with pytest.raises(InvalidBatch, match="list of texts"):
        Recipe().batch(np.array("text"))


@pytest.mark.parametrize(
    "values", [[], "text", None, {"bits": 63}, {"bits": "64"}, {"more": 1}, {"structures": [[]]}]
)
def test_stored_options_that_are_none_are_damage(values: object) -> None:
    with pytest.raises(CorruptFile, match="meta/options"):
        stored_options(msgpack.packb(values))


def test_a_sample_of_another_width_is_damage(index_path: Path, index: simindex.Index) -> None:
    """It would be joined with samples of the index's own width."""
    from simindex.storage.catalog.records import encode_pending
    from simindex.storage.tables.table import sort_table

    index.close()
    with acquire(index_path / "catalog", writable=True) as environment:
        catalog = Catalog(environment)
        with catalog.reading() as reading:
            value, head = reading.head()
        edit = Edit(value, head)
        wide = reservoir.Reservoir(ONE, np.ones((1, 2), np.uint64), np.ones((1, 128), np.float16))
        table = sort_table("more", np.ones((1, 1), np.uint64), ONE, None, horizon=1)
        edit.add_rows(1)
        edit.add_run("pending", encode_pending(table, wide), 1)
        catalog.commit(edit)
    with pytest.raises(CorruptFile, match="pending run"):
        simindex.open(index_path)


def test_a_description_is_short(tmp_path: Path) -> None:
    """One of megabytes would take sixty times as much memory once it is decoded."""

    class Long:
        path = "long"

        def section(self, kind: int, dtype: str) -> Any:
            return np.full(structure.MAX_DESCRIPTION_BYTES + 1, 0x80, dtype)

    with pytest.raises(CorruptFile, match="description"):
        structure.description_of(Long())  # type: ignore[arg-type]
