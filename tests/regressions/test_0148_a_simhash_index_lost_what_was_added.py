"""`simindex.compat.simhash.SimhashIndex` lost all that waited after an error: a commit that the
system refused, or a name that no index stores, which `add` took and only `close` refused. It took
rows after `close` without a word, and one that could not be made kept its index locked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from simindex.compat import named_rows
from simindex.compat.simhash import Simhash, SimhashIndex
from simindex.errors import ClosedIndex, InvalidBatch, InvalidOption, StorageFull
from simindex.index.index import Index


def full(_: Index) -> NoReturn:
    raise StorageFull("the disk is full", remedy="free some space")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_rows, "RECENT", 4)


def far(number: int) -> Simhash:
    return Simhash(number << 32)


def names(path: Path, count: int) -> list[list[str]]:
    with SimhashIndex([], k=0, path=path) as index:
        return [index.get_near_dups(far(number)) for number in range(count)]


def test_a_refused_commit_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sim"
    index = SimhashIndex(((str(one), far(one)) for one in range(6)), k=0, path=path)
    index.delete("1", far(1))
    index.add("6", far(6))
    with monkeypatch.context() as refusing:
        refusing.setattr(Index, "commit", full)
        index.add("7", far(7))
        for _ in range(3):
            with pytest.raises(StorageFull):
                index.add("8", far(8))
            with pytest.raises(StorageFull):
                index.close()
        assert index.get_near_dups(far(7)) == ["7"]
        assert index.get_near_dups(far(8)) == []
    index.add("8", far(8))
    index.close()
    index.close()
    assert names(path, 9) == [[str(one)] if one != 1 else [] for one in range(9)]
    with SimhashIndex([], path=path) as index:
        assert len(index._rows._index) == 8


def test_deletions_wait_for_a_refused_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sim"
    SimhashIndex(((str(one), far(one)) for one in range(6)), k=0, path=path).close()
    with SimhashIndex([], k=0, path=path) as index:
        for one in range(4):
            index.delete(str(one), far(one))
        with monkeypatch.context() as refusing:
            refusing.setattr(Index, "commit", full)
            with pytest.raises(StorageFull):
                index.delete("4", far(4))
        assert index.get_near_dups(far(4)) == ["4"]
        index.delete("4", far(4))
    assert names(path, 6) == [[], [], [], [], [], ["5"]]


@pytest.mark.parametrize("name", ["\ud800", "x" * 65_536])
def test_a_name_that_no_index_stores_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with SimhashIndex([("a", far(0))], k=0, path=tmp_path / "s.sim") as index:
        for call in (index.add, index.delete):
            with pytest.raises(InvalidBatch):
                call(name, far(1))
    assert names(tmp_path / "s.sim", 2) == [["a"], []]


def test_a_closed_one_refuses_rows(tmp_path: Path) -> None:
    index = SimhashIndex([], path=tmp_path / "s.sim")
    index.close()
    for call in (index.add, index.delete):
        with pytest.raises(ClosedIndex):
            call("a", far(0))
    with pytest.raises(ClosedIndex):
        index.get_near_dups(far(0))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (("b", Simhash(1, f=128)), InvalidOption), (("b", "a text"), InvalidBatch),
        (("b",), InvalidBatch), (5, InvalidBatch), (("\ud800", far(1)), InvalidBatch),
    ],
)
def test_one_that_cannot_be_made_frees_its_index(
    tmp_path: Path, given: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        SimhashIndex([("a", far(0)), given], path=tmp_path / "s.sim")
    assert names(tmp_path / "s.sim", 2) == [[], []]


def test_what_is_no_fingerprint_is_refused(tmp_path: Path) -> None:
    with SimhashIndex([], path=tmp_path / "s.sim") as index:
        for given in ("a text", 5, None):
            with pytest.raises(InvalidBatch, match="no fingerprint"):
                index.get_near_dups(given)  # type: ignore[arg-type]
