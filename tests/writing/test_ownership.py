"""Writers that meet, directories that cannot be written, and writers that are killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from permissions import protect, unprivileged

import simindex
from simindex import IndexOptions
from simindex.errors import IndexLocked

FILES = len(IndexOptions().structures)
"""Of a segment."""

TreeOf = Callable[[Path], dict[str, tuple[int, str]]]

VALUES = np.arange(10, dtype=np.uint64)

HOLD = """
import sys, simindex
with simindex.open(sys.argv[1], "w") as index:
    print("held", flush=True)
    sys.stdin.read()
"""

READ = """
import sys, numpy, simindex
from simindex.errors import SimindexError
with simindex.open(sys.argv[1]) as index:
    found = index.query(numpy.arange(3, dtype=numpy.uint64), h=0)
    rows = sum(len(part) for part in index.rows())
    print(len(index), rows, len(found), index.stats().rows, index.check())
for mode in "wc":
    try:
        simindex.open(sys.argv[1], mode).close()
    except SimindexError as error:
        assert sys.argv[1] in str(error), str(error)
        print("refused")
    else:
        print("opened for writing")
"""
READ_ANSWER = "10 10 3 10 []"

WRITE = """
import sys, numpy, simindex
path, first = sys.argv[1], int(sys.argv[2])
with simindex.open(path, "w") as index:
    for number in range(first, first + 10_000):
        ids = numpy.arange(7, dtype=numpy.uint64) + 7 * number
        index.append(ids * 0x9E3779B97F4A7C15, ids=ids)
        if number % 5 == 4:
            index.compact()
        index.commit()
        print(number, flush=True)
"""


@pytest.fixture
def filled(index_path: Path) -> Path:
    """An index of ten rows, in a segment and in the catalog."""
    fill(index_path)
    return index_path


def fill(path: Path) -> None:
    with simindex.open(path, "n", options=IndexOptions(batch_rows=64, min_merge=0)) as index:
        index.append(VALUES[:8], ids=VALUES[:8])
        index.commit()
        index.append(VALUES[8:], ids=VALUES[8:])


@pytest.fixture
def other_writer(filled: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the index open for writing."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(filled)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_writer_learns_which_process_holds_the_index(
    filled: Path, other_writer: subprocess.Popen[str], tree: TreeOf
) -> None:
    before = tree(filled)
    for mode in ("w", "c"):
        with pytest.raises(IndexLocked) as caught:
            simindex.open(filled, mode)
        assert str(other_writer.pid) in str(caught.value)
        assert str(filled) in str(caught.value)
        assert str(other_writer.pid) in str(caught.value.data["holder"])
    with pytest.raises(IndexLocked):
        simindex.open(filled, "n", overwrite=True)
    assert tree(filled) == before
    with simindex.open(filled) as reader:
        assert len(reader) == 10


def test_a_writer_that_was_killed_holds_nothing(
    filled: Path, other_writer: subprocess.Popen[str]
) -> None:
    other_writer.kill()
    other_writer.wait()
    with simindex.open(filled, "w") as index:
        assert index.check() == []
        assert len(index) == 10


def test_a_second_writer_in_one_process_is_refused(filled: Path, tree: TreeOf) -> None:
    with simindex.open(filled, "w") as first:
        before = tree(filled)
        with pytest.raises(IndexLocked, match=str(os.getpid())):
            simindex.open(filled, "w")
        assert tree(filled) == before
        first.append(VALUES[:1], ids=[77])
    with simindex.open(filled, "w") as again:
        assert len(again) == 11


# Directories that cannot be written ---------------------------------------------------------------


def read_there(path: Path, *before: str) -> list[str]:
    """What a process prints that reads the index at `path` and then tries to write."""
    finished = subprocess.run(
        [*before, sys.executable, "-c", READ, str(path)],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_a_read_only_directory_can_be_read_and_nothing_is_made(
    filled: Path, tree: TreeOf
) -> None:
    command = unprivileged()
    protect(filled)
    try:
        before = tree(filled)
        assert read_there(filled, *command) == [READ_ANSWER, "refused", "refused"]
        assert tree(filled) == before
    finally:
        for inside in [filled, *filled.rglob("*")]:
            inside.chmod(0o755)


@pytest.mark.parametrize("lock_file", ["with lock.mdb", "without lock.mdb"])
@pytest.mark.slow
def test_a_read_only_file_system_can_be_read(
    lock_file: str, filled: Path, tree: TreeOf
) -> None:
    """Such as a CD or a snapshot, perhaps copied without LMDB's own lock file."""
    if lock_file == "without lock.mdb":
        (filled / "catalog" / "lock.mdb").unlink()
    mount = (
        'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    )
    alone = ["unshare", "-rm", "sh", "-c", mount, str(filled)]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare command")
    tried = subprocess.run([*alone, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no mounts in a name space of one's own: {tried.stderr.strip()}")
    before = tree(filled)
    assert read_there(filled, *alone) == [READ_ANSWER, "refused", "refused"]
    assert tree(filled) == before


# Kills -------------------------------------------------------------------------------------------


def committed(path: Path) -> int:
    """How many of WRITE's commits the index holds; they must be the first ones, and whole."""
    with simindex.open(path) as index:
        assert [finding for finding in index.check() if finding.severity == "error"] == []
        ids = np.sort(np.concatenate([np.empty(0, np.uint64), *(p.ids for p in index.rows())]))
        assert len(ids) % 7 == 0
        assert np.array_equal(ids, np.arange(len(ids), dtype=np.uint64))
        values = np.arange(len(ids), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        found = index.query(values, h=0, recall=1.0)
        assert np.array_equal(found.id, ids)
    return len(ids) // 7


@pytest.mark.slow
def test_a_killed_writer_leaves_exactly_its_acknowledged_commits(index_path: Path) -> None:
    """Or one more: the commit that was durable when the kill came before its acknowledgement."""
    rng = np.random.default_rng(9)
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=128, min_merge=2)):
        pass
    acknowledged = 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, str(index_path), str(acknowledged)],
            stdout=subprocess.PIPE, text=True,
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=float(rng.uniform(0, 0.15)))
            process.kill()
            lines += process.stdout.readlines()
        numbers = [int(line) for line in lines if line.endswith("\n")]
        assert numbers == list(range(acknowledged, acknowledged + len(numbers)))
        assert numbers, "the writer must have committed at least once"
        now = committed(index_path)
        assert now - (numbers[-1] + 1) in (0, 1)
        acknowledged = now
    with simindex.open(index_path, "w") as index:
        assert index.check() == []
        named = index.stats().segments
        assert len(list((index_path / "segments").glob("*.rows"))) == named
        assert len(list((index_path / "segments").iterdir())) == named * FILES
