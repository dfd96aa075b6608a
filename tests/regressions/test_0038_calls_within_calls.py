"""Calls within a call, beside another that closes the handle, and arrays that lie awkwardly."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import ClosedIndex, InvalidOption

ROWS = np.arange(1, 401, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
OPTIONS = IndexOptions(batch_rows=100, min_merge=0, structures=("psm", "bphs:G=3,g=1,r=2"))


@pytest.fixture
def filled(index_path: Path) -> Path:
    """An index of four segments."""
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        index.append(ROWS, ids=np.arange(400))
    return index_path


def unaligned(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same, one byte beside where words begin."""
    moved = np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:].view(values.dtype)
    assert not moved.flags.aligned
    return moved.reshape(values.shape)


CHANGES: dict[str, Callable[[simindex.Index], Any]] = {
    "append": lambda index: index.append(ROWS[:1]),
    "replace": lambda index: index.replace(Batch(ROWS[:1], ids=[3])),
    "delete": lambda index: index.delete(ids=[3]),
    "seen_or_add": lambda index: index.seen_or_add(Batch(ROWS[:1] + np.uint64(1), ids=[999])),
    "commit": lambda index: index.commit(),
    "ingest": lambda index: index.ingest(ROWS[:1] + np.uint64(1)),
    "compact": lambda index: index.compact(full=True),
    "structures": lambda index: index.compact(structures=["psm"]),
    "close": lambda index: index.close(),
    "with": lambda index: index.__exit__(None, None, None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_compacted_does_not_change_meanwhile(filled: Path, change: str) -> None:
    index = simindex.open(filled, "w")
    files = sorted(path.name for path in (filled / "segments").iterdir())
    with pytest.raises(InvalidOption, match="once `compact` has returned"):
        index.compact(full=True, progress=lambda done, count: CHANGES[change](index))
    assert sorted(path.name for path in (filled / "segments").iterdir()) == files
    index.compact(full=True)
    assert len(index) == 400
    assert index.check() == []
    index.close()


def test_a_compaction_may_be_asked_meanwhile(filled: Path) -> None:
    found: list[int] = []
    with simindex.open(filled, "w") as index:
        index.compact(full=True, progress=lambda *_: found.append(len(index.query(ROWS, h=0))))
        assert found and set(found) == {400}
        index.append(ROWS[:1] + np.uint64(1), ids=[999])
    with simindex.open(filled) as again:
        assert len(again) == 401
        assert again.check() == []


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.query(ROWS[:2]),
        lambda index: index.top(ROWS[:2], k=1),
        lambda index: list(index.pairs()),
        lambda index: index.clusters(),
        lambda index: list(index.rows()),
        lambda index: len(index),
        lambda index: index.generation,
        lambda index: index.stats(),
        lambda index: index.check(),
        lambda index: index.refresh(),
    ],
)
def test_a_handle_that_another_thread_closes_in_the_middle_says_so(
    filled: Path, call: Callable[[simindex.Index], Any], refresh: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = simindex.open(filled, refresh=refresh)
    check = index._check_open

    def close_after_the_check() -> None:
        check()
        closing = threading.Thread(target=index.close)
        closing.start()
        closing.join()

    monkeypatch.setattr(index, "_check_open", close_after_the_check)
    with simindex.open(filled), pytest.raises(ClosedIndex, match="is closed"):
        call(index)


@pytest.mark.parametrize("chunk_rows", [0, -1, 3.0, "3", None, True])
def test_rows_come_in_chunks_of_at_least_one(filled: Path, chunk_rows: Any) -> None:
    with simindex.open(filled) as index, pytest.raises(InvalidOption, match="chunk_rows"):
        next(index.rows(chunk_rows=chunk_rows))


@pytest.mark.parametrize(
    "call",
    [
        lambda index, value: simindex.open(index.path, value),
        lambda index, value: simindex.open(index.path, verify=value),
        lambda index, value: simindex.open(index.path, refresh=value),
        lambda index, value: simindex.open(index.path, "n", overwrite=value),
        lambda index, value: simindex.open(value),
        lambda index, value: index.compact(full=value),
        lambda index, value: index.ingest(ROWS, first=value),
        lambda index, value: index.stats(skew=value),
    ],
)
def test_an_array_is_neither_true_nor_a_name(filled: Path, call: Callable[..., Any]) -> None:
    with simindex.open(filled, "w") as index:
        with pytest.raises(InvalidOption):
            call(index, np.array([True, False]))
        assert len(index) == 400


def test_arrays_may_begin_at_any_byte(filled: Path) -> None:
    rows, ids = unaligned(ROWS), unaligned(np.arange(400, dtype=np.uint64))
    weights = unaligned(np.where(np.arange(400 * 64).reshape(400, 64) % 3, 1, -1).astype("f4"))
    with simindex.open(filled, "w") as index:
        for method in ("psm", "scan", "bphs"):
            assert index.query(rows, h=0, method=method).id.tolist() == list(range(400))
        assert index.query(rows, h=0, memory_limit=1 << 28).id.tolist() == list(range(400))
        assert index.top(rows, k=1).id[:, 0].tolist() == list(range(400))
        assert index.seen_or_add(Batch(rows[5:6])) is not None
        assert len(index.ingest(rows, ids=ids, h=0)) == 400
        assert index.delete(ids=ids) == 400
        index.append(rows, ids=ids, weights=weights)
        index.commit()
        assert len(index.query(Batch(rows, weights=weights), h=0, recall=0.9)) == 400
    with simindex.open(filled) as again:
        assert len(again) == 400


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_output_that_cannot_be_written_is_named(filled: Path, tmp_path: Path) -> None:
    import subprocess

    command = [sys.executable, "-m", "simindex", "stats", str(filled)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "simindex: the output: No space left on device\n"
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("simindex: standard output is closed")
