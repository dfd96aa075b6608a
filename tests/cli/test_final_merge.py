"""The end of a command that writes: merging behind a bar, which Ctrl-C ends without harm."""

from __future__ import annotations

import signal
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import simindex
from simindex import IndexOptions
from simindex.cli.final_merge import merge_behind_a_bar
from simindex.cli.progress import Progress
from simindex.errors import StorageFull
from simindex.storage.segment_files import SegmentFiles

Run = Callable[..., Result]


@pytest.fixture
def index(index_path: Path) -> simindex.Index:
    """Three segments of four rows."""
    made = simindex.open(index_path, "n", options=IndexOptions(batch_rows=32))
    for first in (0, 4, 8):
        made.append(np.arange(first, first + 4, dtype=np.uint64))
        made.commit()
    return made


def left(path: Path) -> list[int]:
    with simindex.open(path, "w") as again:
        assert again.check() == []
        assert len(again) == 12
        return [len(segment) for segment in again._current().segments]


def test_index_is_merged_before_it_is_left(index: simindex.Index, index_path: Path) -> None:
    with index:
        merge_behind_a_bar(index, "a.sim", Progress("adding", quiet=True), quiet=True)
        assert len(index._current().segments) == 1
    assert left(index_path) == [12]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_waiting_and_the_command_goes_on(
    index: simindex.Index, index_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], how: signal.Signals,
) -> None:
    real = SegmentFiles.merge

    def merge(self: SegmentFiles, *given: Any, **named: Any) -> Any:
        signal.raise_signal(how)
        signal.raise_signal(how)
        return real(self, *given, **named)

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    with index:
        merge_behind_a_bar(index, "a.sim", Progress("adding", quiet=True), quiet=False)
        with pytest.raises(simindex.ClosedIndex):
            len(index)
    told = capsys.readouterr().err
    assert "a.sim is complete, but merging its files was interrupted" in told
    assert "`simindex compact a.sim` merges them" in told
    assert left(index_path) == [4, 4, 4]


def test_full_disk_leaves_the_index_in_more_files(
    index: simindex.Index, index_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def merge(*given: Any, **named: Any) -> Any:
        raise StorageFull("no space left")

    with monkeypatch.context() as patch, index:
        patch.setattr(SegmentFiles, "merge", merge)
        merge_behind_a_bar(index, "a.sim", Progress("adding", quiet=True), quiet=False)
    assert "is complete, but its files were not merged: no space left" in capsys.readouterr().err
    assert left(index_path) == [4, 4, 4]


def lines(first: int, count: int) -> str:
    return "".join(
        f'{{"id": "k{n}", "text": "{n} some text of number {n} and {n * n}"}}\n'
        for n in range(first, first + count)
    )


def segments(run: Run, objects: Any, path: str) -> int:
    (held,) = objects(run("stats", path, "--json").stdout)
    return int(held["segments"])


def test_commands_that_write_leave_few_segments(run: Run, objects: Any) -> None:
    run("build", "i.sim", "-", "--batch-rows", 8, "--commit-every", 2, input=lines(0, 10))
    assert segments(run, objects, "i.sim") == 1
    run("build", "i.sim", "-", "--append", "--commit-every", 2, input=lines(10, 6))
    assert segments(run, objects, "i.sim") == 1
    run("dedup", "--index", "i.sim", "--buffer", 2, input=lines(20, 6))
    assert segments(run, objects, "i.sim") == 1
    run("check", "i.sim")


def test_temporary_index_of_dedup_is_not_merged(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def merge(*given: Any, **named: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    place = import_module("simindex.cli.dedup.matched_index")
    monkeypatch.setattr(place, "TEMPORARY_BATCH_ROWS", 8)
    assert len(run("dedup", "--buffer", 2, input=lines(0, 8)).stdout.splitlines()) == 8


def test_merging_is_shown_on_a_terminal(
    on_terminal: Callable[..., tuple[int, bytes]], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(lines(0, 40))
    code, shown = on_terminal("build", "i.sim", "a.jsonl", "--batch-rows", 8)
    assert code == 0
    assert b"merging files" in shown
    assert b"100%" in shown
