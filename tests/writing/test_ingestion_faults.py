"""An ingest that is interrupted, killed or meets a full disk leaves all of its batch or none.

The steps that change the disk are counted and disturbed as in `test_writer_faults`. Its checks hold
here too: nothing acknowledged is lost, no file is left over, and a writer can go on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disk_steps import (
    NO_SPACE,
    State,
    acknowledge,
    added,
    counted,
    fresh,
    merges_run_at_once,
    met,
    rows,
    state_of,
    without,
)

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CommitFailed, ReadOnlyIndex, StorageFull
from simindex.planning.question import Question
from simindex.writing import recent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]
__all__ = ["merges_run_at_once"]
"""For this module too: every run takes the same steps."""

OPTIONS = IndexOptions(
    batch_rows=128, min_merge=2, reservoir_rows=4, structures=("psm", "bphs:G=2,g=1")
)


def ingest(first: int, count: int) -> Callable[[simindex.Index], Any]:
    return lambda index: index.ingest(rows(first, count), h=0)


def see(first: int, count: int) -> Callable[[simindex.Index], Any]:
    """Documents one at a time, committed by themselves or by the commit after the step."""

    def act(index: simindex.Index) -> None:
        for value in range(first, first + count):
            index.seen_or_add(
                Batch(np.array([value], dtype=np.uint64), ids=[value],
                      weights=np.ones((1, 64), np.float32)),
                h=0, commit_s=None,
            )

    return act


Step = tuple[Callable[[simindex.Index], Any], Callable[[State], State]]

INGESTS: list[Step] = [
    (ingest(0, 1), lambda state: added(state, 0, 1)),  # pending
    (ingest(100, 5), lambda state: added(state, 100, 5)),  # sealed
    (ingest(0, 1), lambda state: added(state, 0, 1)),
    (ingest(200, 140), lambda state: added(state, 200, 140)),  # spilled, sealed and merged
    (lambda index: (index.delete(ids=[0, 201]), index.commit()),
     lambda state: without(state, {0, 201})),
    (ingest(1000, 130), lambda state: added(state, 1000, 130)),
]
"""Steps of one commit."""


def states_of(script: list[Step]) -> list[State]:
    states: list[State] = [{}]
    for _, change in script:
        states.append(change(states[-1]))
    return states


INGESTED = states_of(INGESTS)


def run(path: Path, script: list[Step], acknowledged: Callable[[int], None]) -> None:
    with simindex.open(path, "w") as index:
        for number, (act, _) in enumerate(script, 1):
            act(index)
            acknowledged(number)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that is empty, to be copied."""
    path = tmp_path_factory.mktemp("template") / "index"
    simindex.open(path, "c", options=OPTIONS).close()
    return path


@pytest.fixture(scope="module")
def steps(template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of all calls of an undisturbed run of INGESTS."""
    names: list[str] = []
    path = fresh(template, tmp_path_factory.mktemp("steps") / "index")
    with counted(lambda number, name: names.append(name)):
        run(path, INGESTS, lambda number: None)
    with simindex.open(path) as reader:
        assert state_of(reader) == INGESTED[-1]
        assert reader.check() == []
    assert {"rename", "unlink", "fsync", "lmdb commit"} <= set(names)
    return names


def examine(path: Path, acknowledged: int) -> None:
    """What was acknowledged is there, and of the batch in flight all or nothing."""
    with simindex.open(path) as reader:
        state = state_of(reader)
        assert state in INGESTED[acknowledged : acknowledged + 2], acknowledged
        assert [f for f in reader.check() if f.severity == "error"] == []
    with simindex.open(path, "w") as writer:
        assert writer.check() == [], "the next writer removes what was left"
        found = writer.ingest(rows(200, 5), h=0)
        assert len(found) == sum(state.get(value, 0) > 0 for value in range(200, 205))
        assert state_of(writer) == added(state, 200, 5)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_process_that_ends_at_any_step_keeps_all_of_a_batch_or_nothing(
    template: Path, steps: list[str], tmp_path: Path, after: bool
) -> None:
    """Each step that is not a mere put, either before it or after it; `met` says which."""
    for stop, name in met(steps, after=after, puts=7):
        path = fresh(template, tmp_path / "index")
        readable, writable = os.pipe()
        pid = os.fork()
        if pid == 0:
            def die(number: int, name: str, stop: int = stop) -> None:
                if number == stop:
                    os._exit(9)

            with counted(die, after=after):
                run(path, INGESTS, partial(acknowledge, writable))
            os._exit(0)
        os.close(writable)
        acknowledged = 0
        while more := os.read(readable, 1000):
            acknowledged += len(more)
        os.close(readable)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, (stop, name)
        examine(path, acknowledged)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_interrupt_at_any_step_keeps_all_of_a_batch_or_nothing(
    template: Path, steps: list[str], tmp_path: Path, after: bool
) -> None:
    """And the handle refuses to change the index until it is opened again."""
    refused = went_on = 0
    for stop, name in met(steps, after=after, puts=5):
        path = fresh(template, tmp_path / "index")

        def interrupt(number: int, name: str, stop: int = stop) -> None:
            if number == stop:
                raise KeyboardInterrupt

        interrupted = None
        with counted(interrupt, after=after):
            index = simindex.open(path, "w")
            for number, (act, _) in enumerate(INGESTS):
                try:
                    act(index)
                except KeyboardInterrupt:
                    interrupted = number
                    kept = state_of(index)
                    try:
                        index.commit()
                        went_on += 1  # it had ended, or not begun
                    except ReadOnlyIndex:
                        refused += 1
                    assert state_of(index) == kept, "it is still read"
                    index.close()
                    index = simindex.open(path, "w")
                    state = state_of(index)
                    if state == INGESTED[number]:
                        act(index)
                    else:
                        assert state == INGESTED[number + 1], (stop, name)
        if interrupted is not None:
            assert state_of(index) == INGESTED[-1], (stop, name)
            assert [f for f in index.check() if f.severity == "error"] == []
        index.close()
        with simindex.open(path, "w") as again:
            assert again.check() == []
    assert refused > 5
    assert went_on == 0


SINGLE: list[Step] = [
    *INGESTS[:2],
    (see(500, 20), lambda state: added(state, 500, 20)),  # 16 committed by themselves
    (see(498, 4), lambda state: added(state, 498, 2)),
    (lambda index: index.append(rows(600, 20)), lambda state: added(state, 600, 20)),
    (see(600, 21), lambda state: added(state, 620, 1)),
    *INGESTS[3:],
]


def test_full_disk_is_typed_and_the_same_call_succeeds_later(
    template: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of batches and of single documents, on the same handle; merges are put off.

    At every other step that needs space; `tools/torture.py errors` refuses each.
    """
    names: list[str] = []
    path = fresh(template, tmp_path / "index")
    with counted(lambda number, name: names.append(name)):
        run(path, SINGLE, lambda number: None)
    expected = states_of(SINGLE)[-1]
    refused = 0
    for stop, name in met(names, after=False, puts=7):
        if name not in NO_SPACE:
            continue
        path = fresh(template, tmp_path / "index")
        failed = False

        def fail(number: int, name: str, stop: int = stop) -> None:
            nonlocal failed
            if number == stop:
                failed = True
                raise NO_SPACE[name]

        caplog.clear()
        with counted(fail), simindex.open(path, "w") as index:
            for act, _ in SINGLE:
                try:
                    act(index)
                except StorageFull:
                    refused += 1
                    act(index)
            try:
                index.commit()
            except StorageFull:
                refused += 1
                index.commit()
            assert state_of(index) == expected, (stop, name)
            assert index.check() == [], (stop, name)
        assert failed
    assert refused > 6


@pytest.mark.parametrize("done", [False, True])
def test_commit_that_fails_stops_the_handle(
    template: Path, steps: list[str], tmp_path: Path, done: bool
) -> None:
    """Single documents are refused too, instead of being buffered for nothing."""
    path = fresh(template, tmp_path / "index")
    stop = steps.index("lmdb commit") + 1

    def fail(number: int, name: str) -> None:
        if number == stop:
            raise OSError(5, "EIO")

    with counted(fail, after=done):
        index = simindex.open(path, "w")
        with pytest.raises(CommitFailed):
            INGESTS[0][0](index)
        for act in (ingest(5, 1), see(5, 1)):
            with pytest.raises(ReadOnlyIndex):
                act(index)
        index.close()
    with simindex.open(path, "w") as again:
        assert state_of(again) == INGESTED[int(done)]
        assert again.check() == []


# Kills -------------------------------------------------------------------------------------------

LOOP = """
import sys, numpy, simindex
path, first = sys.argv[1], int(sys.argv[2])
with simindex.open(path, "w") as index:
    for number in range(first, first + 10_000):
        ids = numpy.arange(9, dtype=numpy.uint64) + 9 * number
        found = index.ingest(ids * 0x9E3779B97F4A7C15, ids=ids, h=0, first=number % 2 == 0)
        assert len(found) == 0
        print(number, flush=True)
"""

CRAWL = """
import sys, numpy, simindex
path, first = sys.argv[1], int(sys.argv[2])
with simindex.open(path, "w") as index:
    for number in range(first, first + 100_000):
        value = numpy.array([number * 0x9E3779B97F4A7C15 % 2**64], dtype=numpy.uint64)
        batch = simindex.Batch(value, ids=[number])
        assert index.seen_or_add(batch, h=0, commit_s=None) is None
        assert index.seen_or_add(batch, h=0, commit_s=None) is not None
        if number % 9 == 8:
            index.commit()
            print(number // 9, flush=True)
"""


@pytest.mark.parametrize("script", [LOOP, CRAWL], ids=["ingest", "seen_or_add"])
def test_a_killed_crawler_leaves_exactly_what_was_acknowledged(
    index_path: Path, script: str
) -> None:
    """Or one batch more: that which was durable when the kill came before its acknowledgement."""
    rng = np.random.default_rng(9)
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=128, min_merge=2)):
        pass
    batches = 0
    for _ in range(6):
        first = batches if script is LOOP else 9 * batches
        with subprocess.Popen(
            [sys.executable, "-c", script, str(index_path), str(first)],
            stdout=subprocess.PIPE, text=True,
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=float(rng.uniform(0, 0.15)))
            process.kill()
            lines += process.stdout.readlines()
        numbers = [int(line) for line in lines if line.endswith("\n")]
        assert numbers == list(range(batches, batches + len(numbers)))
        assert numbers, "at least one batch must have been committed"
        with simindex.open(index_path) as reader:
            assert [f for f in reader.check() if f.severity == "error"] == []
            ids = np.sort(np.concatenate([part.ids for part in reader.rows()]))
            assert np.array_equal(ids, np.arange(len(ids), dtype=np.uint64))
            assert len(ids) % 9 == 0
            now = len(ids) // 9
        assert now - (numbers[-1] + 1) in (0, 1)
        batches = now


# A disk that really fills ------------------------------------------------------------------------

FILLING = """
import sys, numpy as np, simindex
from pathlib import Path
from simindex.errors import StorageFull
folder = Path(sys.argv[1])
ballast = folder / "ballast"
ballast.write_bytes(bytes(1_500_000))
rng = np.random.default_rng(0)
options = simindex.IndexOptions(batch_rows=1 << 13, min_merge=4)
index = simindex.open(folder / "index", "c", options=options)
expected = refused = 0
while refused < 2:
    values = rng.integers(0, 2**64, 3000, dtype=np.uint64)
    try:
        index.ingest(values)
    except StorageFull:
        refused += 1
        assert len(index) == expected, (len(index), expected)
        assert len(index.query(values[:10], h=0)) == 0
        assert [f for f in index.check() if f.severity == "error"] == []
        if ballast.exists():
            ballast.unlink()
            index.ingest(values)
            expected += 3000
    else:
        expected += 3000
try:
    index.compact(full=True)
except StorageFull:
    refused += 1
assert len(index) == expected
assert [f for f in index.check() if f.severity == "error"] == []
index.close()
with simindex.open(folder / "index", "w") as again:
    assert len(again) == expected
    assert again.check() == []
print("survived", expected, refused)
"""


def test_a_disk_that_fills_and_is_cleared_loses_nothing(tmp_path: Path) -> None:
    """While sealing and while compacting, on a small tmpfs in a namespace of its own."""
    mount = f"mount -t tmpfs -o size=4m none {tmp_path}"
    command = ["unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run(
        [*command, mount], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs in a namespace")
    script = tmp_path.parent / "filling.py"
    script.write_text(FILLING)
    done = subprocess.run(
        [*command, f"{mount} && {sys.executable} {script} {tmp_path}"],
        capture_output=True, text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("survived")
    assert done.stdout.split()[2] == "3", "compaction met the full disk, too"


def test_row_that_was_interrupted_as_it_joined_leaves_nothing_to_the_next(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its key and its id."""
    waiting = recent.Recent(IndexOptions(keys=True, key_secret=bytes(16)))

    def interrupted(key: Any, secret: bytes) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recent, "key_hash", interrupted)
        with pytest.raises(KeyboardInterrupt):
            waiting.add(Batch(np.array([1], np.uint64), keys=["lost"]), 0, None)
    waiting.add(Batch(np.array([2], np.uint64), keys=["kept"]), 0, None)
    found = waiting.nearest(Batch(np.array([2], np.uint64)), Question(h=0))
    assert found is not None
    assert found.key == "kept"
    assert waiting.portion()[0].keys == ["kept"]
