"""Handles in many threads, over forks, in pickles and at the end of the process."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import in_child

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import ClosedIndex, IndexLocked, ReadOnlyIndex

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

OPTIONS = IndexOptions(
    batch_rows=64, min_merge=2, structures=("psm", "bphs:G=3,g=1,r=2", "issl"), reservoir_rows=16
)
FIRST = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """Errors that threads raised keep what their calls had open, until they are collected."""
    yield
    gc.collect()


@pytest.fixture
def filled(index_path: Path) -> Path:
    """An index of forty rows, in segments and pending."""
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        index.append(FIRST[:30], ids=np.arange(30))
        index.commit()
        index.append(FIRST[30:36], ids=np.arange(30, 36))
        index.commit()
        index.append(FIRST[36:], ids=np.arange(36, 40))
    return index_path


def calls(index: simindex.Index) -> dict[str, Callable[[], Any]]:
    """Everything a handle can be asked for."""
    one = Batch(FIRST[:1], ids=[99])
    return {
        "query": lambda: index.query(FIRST[:2]),
        "query_stream": lambda: list(index.query_stream(FIRST[:2])),
        "gate": lambda: index.gate(FIRST[:2]),
        "top": lambda: index.top(FIRST[:2], k=1),
        "contains": lambda: index.contains(ids=[1]),
        "get": lambda: index.get(1),
        "advice": lambda: index.advice,
        "calibrate": lambda: index.calibrate(["one two", "one three"]),
        "explain_pair": lambda: index.explain_pair(ids=(1, 2)),
        "pairs": lambda: list(index.pairs()),
        "clusters": lambda: index.clusters(),
        "explain": lambda: index.explain(FIRST[:1]),
        "explain_top": lambda: index.explain_top(FIRST[:1], k=1),
        "stats": lambda: index.stats(),
        "metrics": lambda: index.metrics(),
        "check": lambda: index.check(),
        "backup": lambda: index.backup(index.path.with_name("backup")),
        "audit": lambda: index.audit(),
        "tune": lambda: index.tune(),
        "machine": lambda: index.machine,
        "rows": lambda: list(index.rows()),
        "len": lambda: len(index),
        "generation": lambda: index.generation,
        "refresh": lambda: index.refresh(),
        "append": lambda: index.append(one),
        "replace": lambda: index.replace(one),
        "delete": lambda: index.delete(ids=[1]),
        "expire": lambda: index.expire(older_than=1),
        "commit": lambda: index.commit(),
        "compact": lambda: index.compact(),
        "discard": lambda: index.discard(),
        "ingest": lambda: index.ingest(one),
        "seen_or_add": lambda: index.seen_or_add(one),
    }


WRITING = (
    "append", "replace", "delete", "expire", "commit", "discard", "compact", "ingest",
    "seen_or_add",
)


def everything_is_refused(index: simindex.Index, error: type[Exception]) -> None:
    """Every call raises this error."""
    for name, call in calls(index).items():
        try:
            call()
        except error:
            continue
        raise AssertionError(f"{name} did not raise {error.__name__}")


def test_list_of_calls_is_complete() -> None:
    """What is missing below would not be tested: add it to `calls`."""
    public = {name for name in dir(simindex.Index) if not name.startswith("_")}
    assert public - {"close", "options", "recipe", "h"} <= set(calls(None))  # type: ignore[arg-type]


# Forks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "w"])
def test_every_call_on_an_inherited_handle_is_refused(mode: Any, filled: Path) -> None:
    """The parent's handle is as before: it reads, writes, and has its lock and its rows."""
    index = simindex.open(filled, mode)
    if mode == "w":
        index.append(FIRST[:1] + np.uint64(1), ids=[77])

    def child() -> None:
        everything_is_refused(index, ClosedIndex)
        index.close()
        index.close()
        with simindex.open(filled) as own:
            assert len(own) == 40
            assert len(own.query(FIRST, h=0)) == 40
        if mode == "w":
            with pytest.raises(IndexLocked):
                simindex.open(filled, "w")

    for _ in range(3):
        assert in_child(child) == 0
    assert len(index.query(FIRST, h=0)) == 40
    if mode == "w":
        index.commit()
        assert len(index) == 41
        with pytest.raises(IndexLocked):
            simindex.open(filled, "w")
    index.close()
    with simindex.open(filled, "w") as again:
        assert again.check() == []


def test_children_that_end_in_any_way_harm_no_writer(filled: Path) -> None:
    """By leaving, by an exception, by a signal; with and without closing what they inherited."""
    def leave() -> None:
        return

    def fail() -> None:
        os._exit(3)

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with simindex.open(filled, "w") as index:
        for number in range(12):
            way = (leave, fail, kill, index.close)[number % 4]
            index.append(FIRST[:4] + np.uint64(number), ids=np.arange(4) + 100 + 4 * number)
            assert in_child(way) in (0, 3, -9)
            index.commit()
        assert len(index) == 40 + 48
        assert index.check() == []
        readers = str(index._handle.catalog.environment._env.readers())
        assert readers.count("\n") <= 3, readers


def test_child_forked_while_merges_run_leaves_them_to_the_parent(index_path: Path) -> None:
    """The child has none of their threads, and must neither wait for them nor end them."""
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        for number in range(16):
            index.append(
                np.arange(64, dtype=np.uint64) + np.uint64(1000 * number),
                ids=np.arange(64) + 64 * number,
            )
            index.commit()
            if number % 4 == 3:
                assert in_child(lambda: index.close()) == 0
        index.compact()
        assert len(index) == 16 * 64
        assert index.check() == []


# Threads -----------------------------------------------------------------------------------------


def together(works: list[Callable[[], None]]) -> list[BaseException]:
    """Runs functions in threads that begin at once; returns what they raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait(60)
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return raised


@pytest.mark.parametrize("round_", range(4))
def test_queries_refreshes_and_a_close_side_by_side(round_: int, filled: Path) -> None:
    """Each call answers rightly or says that the handle is closed; nothing else happens."""
    index = simindex.open(filled, refresh=round_ % 2 == 0)
    asked = threading.Event()

    def query() -> None:
        for number in range(10_000):
            place = number % 40
            if len(index.query(FIRST[place : place + 1], h=0)) != 1:
                raise AssertionError(f"row {place} was not found")
            if number == 3:
                asked.set()

    def look() -> None:
        while True:
            index.refresh()
            assert sum(len(part) for part in index.rows(chunk_rows=5)) == 40
            assert index.top(FIRST[:3], k=1).distance.tolist() == [[0], [0], [0]]

    def close() -> None:
        asked.wait(60)
        index.close()
        index.close()

    raised = together([query, query, look, look, close])
    assert len(raised) == 4, raised
    assert all(isinstance(error, ClosedIndex) for error in raised), raised
    everything_is_refused(index, ClosedIndex)


def test_readers_of_a_handle_while_another_thread_commits_and_compacts(filled: Path) -> None:
    """What was there is found in every call; what comes is found from its commit on."""
    with simindex.open(filled, "w") as index:
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(12):
                    index.append(
                        FIRST + np.uint64(number + 1), ids=np.arange(40) + 1000 * (number + 1)
                    )
                    index.commit()
                    index.compact(full=number % 4 == 3)
            finally:
                done.set()

        def read() -> None:
            least = 0
            while not done.is_set():
                found = index.query(FIRST, h=0)
                assert set(found.id[found.id < 1000].tolist()) == set(range(40))
                rows = len(index)
                assert rows >= least
                assert rows % 40 == 0
                least = rows

        assert together([write, read, read, read]) == []
        assert len(index) == 13 * 40
        assert index.check() == []


def test_many_threads_that_write_lose_nothing(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        def write(first: int) -> None:
            for number in range(first, first + 8):
                ids = np.arange(5, dtype=np.uint64) + np.uint64(5 * number)
                index.append(ids * np.uint64(0x9E3779B97F4A7C15), ids=ids)
                index.commit()

        assert together([lambda first=8 * n: write(first) for n in range(6)]) == []  # type: ignore[misc]
        ids = sorted(int(name) for part in index.rows() for name in part.ids.tolist())
        assert ids == list(range(240))
        assert index.check() == []


def test_iteration_goes_on_over_a_close(filled: Path) -> None:
    """What was begun has its files; what begins later is refused."""
    index = simindex.open(filled)
    parts = index.rows(chunk_rows=4)
    pairs = index.pairs(h=64)
    first = next(parts)
    index.close()
    ids = [*first.ids.tolist(), *(name for part in parts for name in part.ids.tolist())]
    assert sorted(ids) == list(range(40))
    assert sum(len(part) for part in pairs) == 40 * 39 // 2
    with pytest.raises(ClosedIndex):
        next(index.rows())


# Closing, copying, pickling -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "w"])
def test_closing_twice_is_closing_once(mode: Any, filled: Path) -> None:
    index = simindex.open(filled, mode)
    index.close()
    index.close()
    everything_is_refused(index, ClosedIndex)
    with simindex.open(filled, "w") as another:
        index.close()  # it must not take away what is another handle's now
        assert len(another) == 40
    with index:  # nothing is committed, nothing raised
        pass


@pytest.mark.parametrize("duplicate", [
    lambda index: pickle.loads(pickle.dumps(index)),  # noqa: S301
    copy.copy,
    copy.deepcopy,
])
def test_copies_of_a_writer_are_readers(duplicate: Any, filled: Path) -> None:
    """So no copy writes beside it; a pickle holds the path, nothing of what is buffered."""
    with simindex.open(filled, "w") as index:
        index.append(FIRST[:1], ids=[500])
        with duplicate(index) as other:
            assert (other.mode, other.path, len(other)) == ("r", index.path, 40)
            for name in WRITING:
                with pytest.raises(ReadOnlyIndex):
                    calls(other)[name]()
        index.commit()
        assert len(index) == 41


def test_pickle_of_a_closed_handle_opens_the_index_anew(filled: Path) -> None:
    index = simindex.open(filled)
    index.close()
    with pickle.loads(pickle.dumps(index)) as again:  # noqa: S301
        assert len(again) == 40


# The end of the process ---------------------------------------------------------------------------

ENDS = {
    "a handle that is still open": "index = simindex.open(path, mode); index.query(values)",
    "a handle in a cycle": """
class Node: pass
node = Node(); node.own = node; node.index = simindex.open(path, mode); node.index.query(values)
""",
    "a handle asked in __del__": """
class Last:
    def __init__(self): self.index = simindex.open(path, mode)
    def __del__(self):
        try: self.index.query(values); self.index.close()
        except Exception as error: print(type(error).__name__)
last = Last(); last.cycle = last
""",
    "threads that go on asking": """
index = simindex.open(path, mode)
recipe = simindex.Recipe()
def ask():
    while True: index.query(values); index.refresh()
def read():
    while True: recipe.batch(["a b c d e f g h " * 50] * 40)
def pair():
    while True: simindex.find_all(values, h=3)
for work in (ask, ask, read, pair): threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""",
    "rows that were discarded": """
index = simindex.open(path, mode)
if mode == "w":
    index.append(numpy.arange(500, dtype=numpy.uint64))
    index.discard()
""",
    "an exit within a block": """
with simindex.open(path, mode) as index:
    if mode == "w": index.append(numpy.arange(500, dtype=numpy.uint64))
    sys.exit(0)
""",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_process_may_end_with(how: str, filled: Path) -> None:
    """It ends well, by no signal and with no word, and leaves the index as it was."""
    for mode in ("r", "w"):
        code = (
            "import sys, threading, time, numpy, simindex\n"
            f"path, mode, values = {str(filled)!r}, {mode!r}, numpy.arange(3, dtype=numpy.uint64)\n"
            + ENDS[how]
        )
        ended = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        with simindex.open(filled, "w") as index:
            assert len(index) == 40
            assert index.check() == []


CHILD_THAT_ENDS = """
import os, signal, sys, numpy, simindex
options = simindex.IndexOptions(batch_rows=32, min_merge=2)
index = simindex.open(sys.argv[1], "c", options=options)
for first in (0, 4):
    values = numpy.arange(first, first + 4, dtype=numpy.uint64)
    index.append(values, ids=values)
    index.commit()
assert index._handle.writer.await_merges(), "one has ended and is not installed"
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    sys.exit(0)  # as a child of multiprocessing does, with what is registered for the end
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
index.compact()
assert index.stats().segments == 1
assert len(index) == 8
assert index.check() == []
index.close()
"""


def test_child_that_ends_leaves_the_parents_merges(index_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD_THAT_ENDS, str(index_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
