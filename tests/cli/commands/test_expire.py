"""`expire` takes old rows away; `build --times` and `merge --times` store how old they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exported import keys_of

import simindex
from simindex.storage.tables import times

Run = Callable[..., Any]
DAY = 86_400


@pytest.fixture
def aged(run: Run, write_jsonl: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """Three documents a day, on three days; now is the fourth day."""
    for day in range(3):
        monkeypatch.setattr(times, "clock", lambda day=day: 1_767_225_600.0 + day * DAY)
        texts = [{"id": f"{day}.{n}", "text": f"{day} text {n} of a day"} for n in range(3)]
        run("build", "i.sim", write_jsonl(f"{day}.jsonl", texts), "-q",
            *(["--append"] if day else ["--times"]))
    monkeypatch.setattr(times, "clock", lambda: 1_767_225_600.0 + 3 * DAY)
    return "i.sim"


def test_old_rows_go(run: Run, aged: str, objects: Any) -> None:
    assert run("expire", aged, "--older-than", "2d").stderr == (
        "simindex: 3 rows expired; i.sim holds 6 rows\n"
    )
    assert keys_of(run, objects, aged) == ["1.0", "1.1", "1.2", "2.0", "2.1", "2.2"]
    assert run("expire", aged, "--older-than", "2d").stderr == (
        "simindex: 0 rows expired; i.sim holds 6 rows\n"
    )
    (answer,) = objects(run("expire", aged, "--older-than", "36h", "--json").stdout)
    assert answer == {"expired": 3, "rows": 3}


def test_stats_tell_the_oldest(run: Run, aged: str, objects: Any) -> None:
    for more in ([], ["--verbose"]):
        lines = run("stats", aged, *more).stdout.splitlines()
        assert "oldest      2026-01-01 00:00:00 UTC" in lines
    (answer,) = objects(run("stats", aged, "--json").stdout)
    assert answer["oldest"] == 1_767_225_600


@pytest.mark.parametrize(("age", "left"), [
    ("172800", 6), ("172799s", 3), ("2880m", 6), ("48H", 6), ("2 d", 6), ("0.4w", 6), ("1.5d", 3),
    ("999999999999w", 9), ("0", 0),
])
def test_an_age_has_a_unit(run: Run, aged: str, age: str, left: int) -> None:
    run("expire", aged, "--older-than", age)
    with simindex.open(aged) as index:
        assert len(index) == left


@pytest.mark.parametrize("bad", ["", "d", "-1d", "1y", "1e3", "nan", "1d2h", "٣d", "9" * 13])
def test_what_is_no_age_is_a_wrong_call(run: Run, aged: str, bad: str) -> None:
    assert "is not an age" in run("expire", aged, "--older-than", bad, code=2).stderr
    run("expire", aged, code=2)


def test_an_index_without_times_is_merged_into_one(
    run: Run, keyed: str, objects: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "simindex merge" in run("expire", keyed, "--older-than", "1d", code=2).stderr
    monkeypatch.setattr(times, "clock", lambda: 1e9)
    run("merge", keyed, "--times", "-o", "new.sim")
    monkeypatch.setattr(times, "clock", lambda: 1e9 + DAY)
    run("expire", "new.sim", "--older-than", "23h")
    with simindex.open("new.sim") as index:
        assert len(index) == 0


def test_merged_documents_keep_their_times(run: Run, aged: str, objects: Any) -> None:
    with simindex.open(aged, "w") as index:
        assert index.expire(older_than=2 * DAY) == 3
    run("build", "other.sim", "--recipe", aged, "0.jsonl")
    run("merge", aged, "other.sim", "-o", "new.sim")
    run("expire", "new.sim", "--older-than", "36h")
    assert keys_of(run, objects, "new.sim") == ["0.0", "0.1", "0.2", "2.0", "2.1", "2.2"]


def test_times_are_for_new_indexes(run: Run, keyed: str) -> None:
    result = run("build", keyed, "a.jsonl", "--append", "--times", code=2)
    assert "it has no times: leave out --times" in result.stderr
