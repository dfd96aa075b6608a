"""Readers that are stopped, slow, killed, or too many, beside a writer that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import IndexOptions

ROWS, COMMITS = 64, 30

READER = """
import sys, numpy, simindex
index = simindex.open(sys.argv[1], refresh=False)
values = numpy.arange(64, dtype=numpy.uint64) * 0x9E3779B97F4A7C15
print("open", index.generation, flush=True)
for line in sys.stdin:
    if line == "refresh\\n":
        index.refresh()
    if line == "transaction\\n":
        reading = index._handle.catalog.reading()
        reading.__enter__()
    ids = sorted(int(name) for part in index.rows() for name in part.ids)
    found = index.query(values, h=0)
    print(index.generation, ids[0], ids[-1], len(ids), len(found), flush=True)
"""

MANY = """
import sys, simindex
index = simindex.open(sys.argv[1])
environment = index._handle.catalog.environment._env
held = [environment.begin() for _ in range(int(sys.argv[2]))]
print("held", flush=True)
sys.stdin.read()
"""

Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def spawn(index_path: Path) -> Iterator[Spawn]:
    """Starts processes on the index, and kills them at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(index_path), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        started.append(process)
        assert process.stdout is not None
        process.first = process.stdout.readline().split()  # type: ignore[attr-defined]
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


@pytest.fixture
def writer(index_path: Path) -> Iterator[simindex.Index]:
    """Of an index of one segment."""
    options = IndexOptions(batch_rows=8 * ROWS, min_merge=2)
    with simindex.open(index_path, "n", options=options) as index:
        churn(index, 0, 1)
        yield index


def churn(index: simindex.Index, first: int, count: int) -> None:
    """Commits that each replace the rows of the one before by as many others."""
    for number in range(first, first + count):
        ids = np.arange(ROWS, dtype=np.uint64) + np.uint64(ROWS * number)
        if number:
            index.delete(ids=ids - np.uint64(ROWS))
        index.append(ids * np.uint64(0x9E3779B97F4A7C15), ids=ids)
        index.commit()


def ask(process: subprocess.Popen[str], line: str) -> list[int]:
    """What a reader says: generation, first and last id, rows, matches of the first rows."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return [int(word) for word in process.stdout.readline().split()]


def stop(process: subprocess.Popen[str]) -> None:
    """Stops a process, and waits until it is."""
    process.send_signal(signal.SIGSTOP)
    while "T" not in Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]:
        time.sleep(0.001)


def disk(path: Path) -> int:
    """Bytes of all files of an index."""
    return sum(
        file.stat().st_blocks * 512 for file in path.rglob("*")
        if file.is_file() and file.name != "lock.mdb"
    )


def unlinked(process: subprocess.Popen[str]) -> list[str]:
    """Files that only a process's descriptors keep."""
    folder = Path(f"/proc/{process.pid}/fd")
    names = [str(fd.readlink()) for fd in folder.iterdir()]
    return sorted(name for name in names if "pages.sim" in name and "(deleted)" in name)


def catalog(path: Path) -> int:
    """Bytes of the catalog's file."""
    return (path / "catalog" / "data.mdb").stat().st_blocks * 512


def test_stopped_reader_with_a_snapshot_holds_nothing_but_its_files(
    writer: simindex.Index, index_path: Path, spawn: Spawn
) -> None:
    """Catalog and disk stop growing, though the reader lives through all commits."""
    reader = spawn(READER)
    before = ask(reader, "look")
    assert before[1:] == [0, ROWS - 1, ROWS, ROWS]
    stop(reader)
    churn(writer, 1, COMMITS)
    writer.compact(full=True)
    catalog_then, disk_then = catalog(index_path), disk(index_path)
    churn(writer, 1 + COMMITS, 3 * COMMITS)
    writer.compact(full=True)
    held = unlinked(reader)
    assert len(held) <= 2, held  # rows and tables of the segment it saw, if there was one
    assert catalog(index_path) <= catalog_then + (1 << 18)
    assert disk(index_path) <= disk_then + (1 << 18)
    reader.send_signal(signal.SIGCONT)
    assert ask(reader, "look") == before
    last = 4 * COMMITS
    assert ask(reader, "refresh")[1:] == [ROWS * last, ROWS * last + ROWS - 1, ROWS, 0]
    assert unlinked(reader) == []


def test_killed_reader_gives_back_what_it_held_in_the_catalog(
    writer: simindex.Index, index_path: Path, spawn: Spawn
) -> None:
    """Also one that was killed within a transaction, which kept all pages since."""
    reader = spawn(READER)
    ask(reader, "transaction")
    churn(writer, 1, COMMITS // 2)
    grown = catalog(index_path)
    reader.kill()
    reader.wait()
    churn(writer, 1 + COMMITS // 2, COMMITS)
    assert catalog(index_path) <= grown + (1 << 18)
    environment = writer._handle.catalog.environment._env
    assert str(reader.pid) not in environment.readers()


def test_reader_stopped_within_a_transaction_lets_the_catalog_grow_until_it_goes_on(
    writer: simindex.Index, index_path: Path, spawn: Spawn
) -> None:
    """The limit of what is bounded: nobody can know what a stopped transaction still reads.

    Transactions take microseconds, so a stop seldom falls into one. What it saw stays right.
    """
    reader = spawn(READER)
    before = ask(reader, "transaction")
    stop(reader)
    churn(writer, 1, COMMITS)
    reader.send_signal(signal.SIGCONT)
    assert ask(reader, "look") == before
    reader.kill()
    reader.wait()
    grown = catalog(index_path)
    churn(writer, 1 + COMMITS, COMMITS)
    assert catalog(index_path) <= grown + (1 << 18)


def test_more_readers_than_there_are_places_get_a_typed_error(
    writer: simindex.Index, index_path: Path, spawn: Spawn
) -> None:
    """And places of a process that was killed are free again for the next that asks."""
    code = """
import sys, simindex
try:
    with simindex.open(sys.argv[1]) as index:
        print(len(index))
except simindex.UnsupportedStorage as error:
    print("refused", "1024" in str(error))
"""
    many = spawn(MANY, 1024)
    assert many.first == ["held"]  # type: ignore[attr-defined]
    assert spawn(code).first == ["refused", "True"]  # type: ignore[attr-defined]
    with pytest.raises(simindex.UnsupportedStorage, match="close some"):
        churn(writer, 1, 1)
    many.kill()
    many.wait()
    writer.commit()
    assert len(writer) == ROWS
    assert spawn(code).first == [str(ROWS)]  # type: ignore[attr-defined]


def test_slow_reader_that_follows_sees_everything_afterwards(
    writer: simindex.Index, index_path: Path, spawn: Spawn
) -> None:
    """It takes one step over many commits, merges and files that came and went."""
    readers = [spawn(READER) for _ in range(2)]
    seen = [ask(reader, "look") for reader in readers]
    for reader in readers:
        stop(reader)
    churn(writer, 1, COMMITS)
    for reader, before in zip(readers, seen, strict=True):
        reader.send_signal(signal.SIGCONT)
        now = ask(reader, "refresh")
        assert now[0] == writer.generation > before[0]
        assert now[1:4] == [ROWS * COMMITS, ROWS * COMMITS + ROWS - 1, ROWS]


def test_forked_readers_that_are_killed_leave_no_places_taken(
    writer: simindex.Index, index_path: Path, spawn: Spawn
) -> None:
    environment: Any = writer._handle.catalog.environment._env
    children = [spawn(READER) for _ in range(2)]
    for child in children:
        ask(child, "transaction")
    assert all(str(child.pid) in environment.readers() for child in children)
    for child in children:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    churn(writer, 1, 1)
    assert not any(str(child.pid) in environment.readers() for child in children)
