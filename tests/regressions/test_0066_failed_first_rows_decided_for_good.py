"""Rows that never came decided whether a new index has keys, and by which recipe it reads texts.

The kind of keys was committed in the middle of the call that brought the first rows. If the rest of
the call failed, or its rows were discarded, the index refused ids for ever. If the system refused
to read the catalog right after that commit, the handle hashed keys without their secret.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, Index, IndexOptions, Recipe
from simindex.errors import InvalidBatch, StorageFull
from simindex.planning.machine import Machine
from simindex.writing.recent import Recent
from simindex.writing.waiting import Waiting

ROWS = np.arange(4, dtype=np.uint64)
KEYS = ["a", "b", "c", "d"]
TEXT = "a page of some length, which nobody has seen before in this crawl"

FIRST: dict[str, Callable[[Index], Any]] = {
    "append": lambda index: index.append(ROWS, keys=KEYS),
    "replace": lambda index: index.replace(Batch(ROWS, keys=KEYS)),
    "ingest": lambda index: index.ingest(ROWS, keys=KEYS),
    "seen_or_add": lambda index: index.seen_or_add(TEXT, "a"),
    "append with a recipe": lambda index: index.append(Recipe(ngram=2).batch([TEXT])),
}


def refuse(*args: Any, **named: Any) -> Any:
    raise StorageFull("no space is left", remedy="make room")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing can be added until it is undone."""
    monkeypatch.setattr(Waiting, "_hold", refuse)
    monkeypatch.setattr(Recent, "add", refuse)
    return monkeypatch


@pytest.mark.parametrize("call", FIRST)
def test_rows_that_could_not_be_added_decide_nothing(
    index_path: Path, call: str, refused: pytest.MonkeyPatch
) -> None:
    with simindex.open(index_path, "n") as index:
        index.delete(ids=[7])
        with pytest.raises(StorageFull):
            FIRST[call](index)
        refused.undo()
        assert (index.options.keys, index.recipe) == (None, None)
        assert index.append(ROWS).tolist() == [0, 1, 2, 3]
    with simindex.open(index_path, "w") as index:
        assert len(index) == 4
        assert (index.options.keyed, index.recipe) == (False, None)
        assert index.check() == []


@pytest.mark.parametrize("call", [call for call in FIRST if call != "ingest"])
def test_discarded_rows_decide_nothing(index_path: Path, call: str) -> None:
    with simindex.open(index_path, "n") as index:
        FIRST[call](index)
        assert index.options.keyed == ("recipe" not in call)
        index.discard()
        assert (index.options.keys, index.recipe) == (None, None)
        index.append(ROWS)
        with pytest.raises(InvalidBatch):
            index.append(ROWS, keys=KEYS)


@pytest.mark.parametrize("call", FIRST)
def test_a_reader_sees_keys_and_recipe_with_the_rows(index_path: Path, call: str) -> None:
    with simindex.open(index_path, "n") as index:
        generation = index.generation
        FIRST[call](index)
        if call != "ingest":
            with simindex.open(index_path) as reader:
                assert (reader.options.keys, reader.recipe, len(reader)) == (None, None, 0)
        index.commit()
        assert index.generation == generation + 1
        with simindex.open(index_path) as reader:
            assert reader.options == index.options
            assert reader.recipe == index.recipe
            assert len(reader)
            assert reader.check() == []


def test_what_waits_for_a_commit_is_kept_beside_keys(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the constants of the machine, here those of another one."""
    found = Machine(table_ns=20.0, measured=True)
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: found)
    with simindex.open(index_path, "n") as index:
        index.tune(machine=True)
        index.delete(ids=[7])
        index.append(ROWS, keys=KEYS)
        assert index.machine == found
    with simindex.open(index_path) as index:
        assert index.machine == found
        assert "a" in index
        assert [part.keys for part in index.rows()] == [KEYS]


def test_waiting_rows_are_known_by_their_keys(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(ROWS, keys=KEYS)
        assert "a" in index
        found = index.get("b")
        assert found is not None
        assert found.rows.tolist() == [[1]]
        assert index.stats().keys == "str"
        assert index.delete(keys=["a", "z"]) == 1
        assert len(index.query(ROWS, h=0)) == 0
        index.commit()
        assert sorted(index.query(ROWS, h=0).keys() or ()) == ["b", "c", "d"]


@pytest.mark.parametrize("damage", ["older", "half"])
def test_a_catalog_from_before_the_first_rows_costs_no_keys(
    index_path: Path, damage: str
) -> None:
    """Repair took the segments for those of another index, because the catalog had no keys yet."""
    options = IndexOptions(batch_rows=2)
    simindex.open(index_path, "n", options=options).close()
    data = index_path / "catalog" / "data.mdb"
    before = data.read_bytes()
    with simindex.open(index_path, "w") as index:
        for part in (0, 2):
            index.append(ROWS[part : part + 2], keys=KEYS[part : part + 2])
            index.commit()
    if damage == "older":
        data.write_bytes(before)
    else:  # the newest meta page is damaged
        content = bytearray(data.read_bytes())
        numbers = [int.from_bytes(content[at + 144 : at + 152], "little") for at in (0, 4096)]
        at = 4096 * numbers.index(max(numbers))
        content[at + 16 : at + 152] = bytes(136)
        data.write_bytes(content)
    simindex.repair(index_path, apply=True)
    with simindex.open(index_path, "w") as index:
        assert sorted(key for part in index.rows() for key in part.keys or ()) == KEYS
        assert index.options.keys == "str"
        assert [finding for finding in index.check() if finding.severity == "error"] == []
