"""Documents are found by their names, wherever their rows are and whatever waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.errors import ClosedIndex, InvalidBatch
from simindex.storage.tables import row_names

ROWS = np.arange(40, dtype=np.uint64)
KEYS = [f"k{n}" for n in range(40)]


@pytest.fixture(params=["looked through", "in order"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How rows are found by their ids."""
    monkeypatch.setattr(row_names, "LOOKED_THROUGH", 1 << 30 if "look" in request.param else 0)
    return str(request.param)


def spread(path: Path) -> Any:
    """A writer: rows in segments, pending, spilled, waiting, just added, and deleted ones."""
    index = simindex.open(path, "n", options=IndexOptions(keys=True, batch_rows=8))
    index.append(ROWS[:16], keys=KEYS[:16])
    index.commit()
    index.append(ROWS[16:19], keys=KEYS[16:19])
    index.commit()
    index.append(ROWS[19:30], keys=KEYS[19:30])
    index.delete(keys=["k0", "k17", "k19", "k29"])
    index.append(ROWS[30:31], keys=["k0"])
    return index


@pytest.mark.usefixtures("way")
def test_a_writer_sees_what_waits_and_a_reader_its_commit(index_path: Path) -> None:
    with spread(index_path) as index, simindex.open(index_path) as reader:
        gone = {"k17", "k19", "k29"}
        there = [key in index for key in KEYS]
        assert there == [n < 30 and key not in gone for n, key in enumerate(KEYS)]
        assert [key in reader for key in KEYS] == [n < 19 for n in range(40)]
        assert index.contains(keys=KEYS).tolist() == there
        assert index.get("k0").rows.tolist() == [[30]]
        assert reader.get("k0").rows.tolist() == [[0]]
        assert index.get("k22").keys == ["k22"]
        assert index.get("k17") is None
        assert index.get("k17", 5) == 5
        index.commit()
        assert [key in reader for key in KEYS] == there


@pytest.mark.usefixtures("way")
def test_what_seen_or_add_has_added_is_there_at_once(index_path: Path) -> None:
    options = IndexOptions(keys=True, recipe=Recipe())
    with simindex.open(index_path, "n", options=options) as index:
        for number in range(3):
            index.seen_or_add(f"a text about the number {number} and {number * 7}", f"k{number}")
        assert ["k0" in index, "k2" in index, "k3" in index] == [True, True, False]
        assert index.get("k1").rows.tolist() == index.recipe.batch(  # type: ignore[union-attr]
            ["a text about the number 1 and 7"]
        ).rows.tolist()
        assert index.delete(keys=["k1", "k1", "k9"]) == 1
        assert "k1" not in index
        assert index.delete(keys=["k1"]) == 0


def test_a_document_may_have_several_rows(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(ROWS[:4], ids=[5, 6, 5, 2**64 - 1])
        index.commit()
        assert index.get(5).rows.tolist() == [[0], [2]]
        assert index.get(5).ids.tolist() == [5, 5]
        assert 2**64 - 1 in index
        assert index.delete(ids=[5, 5, 6, 7]) == 2


def test_names_of_the_other_kind_are_refused(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(keys=True)) as index:
        for call in (
            lambda: 5 in index, lambda: index.get(5), lambda: index.contains(ids=[5]),
            lambda: index.contains(), lambda: b"k" in index,
        ):
            with pytest.raises(InvalidBatch):
                call()
        assert index.contains(keys=[]).tolist() == []
    with pytest.raises(ClosedIndex):
        assert "k" in index


@pytest.mark.parametrize("keys", [True, False, None, "bytes"])
def test_a_name_that_is_none_is_called_so(index_path: Path, keys: Any) -> None:
    """Without the number of a row: one name was given."""
    with simindex.open(index_path, "n", options=IndexOptions(keys=keys)) as index:
        wrong: list[Any] = [["k1"], None, 1.5, -1, 2**64, True, ("k1",)]
        wrong += ["k"] if keys is False else [] if keys is None else [5]
        for name in wrong:
            for call in (index.get, index.__contains__):
                with pytest.raises(InvalidBatch) as caught:
                    call(name)
                assert "row 0" not in str(caught.value)
                assert caught.value.remedy is not None
        with pytest.raises(InvalidBatch, match="list") as caught:
            index.get(["k1"])
        assert "Index.contains" in str(caught.value.remedy)


def test_a_batch_that_was_got_can_be_asked_and_appended(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(keys=True)) as index:
        index.append(ROWS[:3], keys=KEYS[:3])
        index.commit()
        found = index.get("k1")
        assert isinstance(found, Batch)
        assert [match.key for match in index.query(found, h=0)] == ["k1"]
        index.replace(found)
        index.commit()
        assert len(index) == 3
