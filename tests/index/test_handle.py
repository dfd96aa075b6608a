"""Nothing that a writer has accepted is dropped when its handle goes, however it goes."""

from __future__ import annotations

import gc
import multiprocessing
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from children import leave_open

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.errors import (
    ClosedIndex,
    CommitFailed,
    IndexNotFound,
    InvalidOption,
    ReadOnlyIndex,
    StorageFull,
)
from simindex.index.handle import Handle
from simindex.storage.catalog.catalog import Catalog

ROWS = np.arange(9, dtype=np.uint64)
TEXT = "a page of some length, which nobody has seen before in this crawl"


def held(path: Path) -> int:
    with simindex.open(path) as reader:
        assert reader.check() == []
        return len(reader)


def test_close_commits_what_waits(index_path: Path) -> None:
    index = simindex.open(
        index_path, "n", options=IndexOptions(keys=True, recipe=Recipe(), batch_rows=4)
    )
    index.append(ROWS, keys=[f"k{n}" for n in range(9)])  # two segments ahead, and a row
    assert index.seen_or_add(TEXT, "page") is None
    index.delete(keys=["k0", "k8"])
    index.close()
    index.close()
    assert held(index_path) == 8
    with pytest.raises(ClosedIndex):
        index.append(ROWS[:1], keys=["late"])


def test_discard_throws_away_all_that_waits(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=4)) as index:
        index.append(ROWS)
        index.commit()
        index.append(ROWS)
        index.delete(ids=[1, 2])
        index.discard()
        index.discard()
        assert index.seen_or_add(Batch(np.array([1 << 60], np.uint64)), h=0) is None
        index.discard()
    assert held(index_path) == 9


def test_leaving_by_an_exception_discards(index_path: Path) -> None:
    with pytest.raises(KeyError), simindex.open(index_path, "n") as index:
        index.append(ROWS)
        raise KeyError
    assert held(index_path) == 0


@contextmanager
def a_commit_that_raises(error: Exception) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        def fail(*_: object) -> None:
            raise error

        patch.setattr(Catalog, "commit", fail)
        yield


@pytest.mark.parametrize(
    "error", [StorageFull("no space left"), OSError(5, "refused"), MemoryError("none left")]
)
def test_a_close_that_the_system_refuses_loses_nothing(
    index_path: Path, error: Exception
) -> None:
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    with a_commit_that_raises(error), pytest.raises((StorageFull, OSError, MemoryError)):
        index.close()
    index.append(ROWS)
    index.close()
    assert held(index_path) == 18


def test_a_close_whose_commit_is_in_doubt_ends_the_handle(index_path: Path) -> None:
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    with a_commit_that_raises(CommitFailed("in doubt")), pytest.raises(CommitFailed):
        index.close()
    with pytest.raises(ClosedIndex):
        len(index)
    simindex.open(index_path, "w").close()


def test_an_interrupted_handle_says_what_it_gives_up(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    with monkeypatch.context() as patch:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(type(index._handle.writer.committer), "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.append(ROWS)
    index.close()
    assert "closed without what waited" in caplog.text
    assert "`append` was interrupted" in caplog.text
    assert held(index_path) == 0


def test_a_close_that_was_interrupted_at_its_end_is_ended_by_the_next(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited had been thrown away by then."""
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    with monkeypatch.context() as patch:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(Handle, "_end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.__exit__(KeyError, KeyError(), None)
    index.close()
    assert held(index_path) == 0


def test_a_dropped_writer_commits_and_warns(index_path: Path) -> None:
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    with pytest.warns(ResourceWarning, match="was dropped and not closed"):
        del index
        gc.collect()
    assert held(index_path) == 9


def test_a_dropped_writer_that_cannot_commit_warns_and_gives_the_lock_back(
    index_path: Path
) -> None:
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    with a_commit_that_raises(StorageFull("no space left")), pytest.warns(
        ResourceWarning, match="is lost: no space left"
    ):
        del index
        gc.collect()
    simindex.open(index_path, "w").close()
    assert held(index_path) == 0


def test_a_dropped_writer_without_anything_waiting_is_silent(index_path: Path) -> None:
    index = simindex.open(index_path, "n")
    index.append(ROWS)
    index.commit()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del index
        gc.collect()
    simindex.open(index_path, "w").close()


LEFT_OPEN = """
import sys, threading, time, numpy as np, simindex
index = simindex.open(sys.argv[1], "n")
index.append(np.arange(9, dtype=np.uint64))
def held():
    with index._handle.lock:
        time.sleep(0.3)
threading.Thread(target=held, daemon=True).start()
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "1 / 0"])
@pytest.mark.slow
def test_a_process_that_ends_commits_what_its_writers_hold(index_path: Path, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LEFT_OPEN.format(end=end), str(index_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )
    assert "ResourceWarning" in done.stderr
    assert "open when its process ended" in done.stderr
    assert held(index_path) == 9
    again = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN.format(end=end).replace('"n"', '"w"'), str(index_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )
    assert "ResourceWarning" not in again.stderr
    assert held(index_path) == 18


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.slow
def test_a_process_of_multiprocessing_commits_too(index_path: Path, method: str) -> None:
    """It ends without what `atexit` calls."""
    context = multiprocessing.get_context(method)
    for number in range(2):
        process = context.Process(target=leave_open, args=(str(index_path), number))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert held(index_path) == 2


@pytest.mark.parametrize("mode", ["r", "w", "c"])
def test_options_with_another_radius_are_refused(index_path: Path, mode: Literal["r", "w"]) -> None:
    """As other options are; a recipe with the radius of the index agrees."""
    made = IndexOptions(keys=True, recipe=Recipe(h=5))
    simindex.open(index_path, "n", options=made).close()
    with pytest.raises(InvalidOption, match="has the radius h=5, and the recipe") as refused:
        simindex.open(index_path, mode, options=IndexOptions(keys=True, recipe=Recipe()))
    assert refused.value.data["option"] == "h"
    assert refused.value.data["differences"] == {"h": (5, Recipe().h)}
    assert "give it h=5" in str(refused.value.remedy)
    with simindex.open(index_path, mode, options=made) as index:
        assert index.h == 5


@pytest.mark.parametrize("how", ["removed", "renamed"])
def test_a_folder_that_goes_under_an_open_handle_is_missed(
    index_path: Path, tmp_path: Path, how: str
) -> None:
    """By what needs a file, and by every commit; queries go on in what is mapped."""
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=4)) as index:
        index.append(ROWS)
    reader, writer = simindex.open(index_path), simindex.open(index_path, "w")
    if how == "removed":
        shutil.rmtree(index_path)
    else:
        index_path.rename(tmp_path / "elsewhere")
    with pytest.raises(IndexNotFound, match="removed or renamed while it was open") as missed:
        reader.stats()
    assert "open the index where it is now" in str(missed.value.remedy)
    assert len(reader.query(ROWS, h=0)) == 9
    reader.close()
    with pytest.raises(IndexNotFound, match="removed or renamed while it was open"):
        writer.append(ROWS)  # more than are buffered, so a file is to be made
    writer.append(ROWS[:1])
    for _ in range(2):
        with pytest.raises((CommitFailed, ReadOnlyIndex), match="removed or renamed while") as told:
            writer.commit()
        assert "LOCK" not in str(told.value)
    writer.close()
