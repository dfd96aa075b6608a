"""A writer that dies or meets a full disk at any step leaves the last commit, or the one in flight.

A script runs through everything a writer does. Each call that changes the disk is counted; for
many of the counts the script is run again and stopped there, by an exception or by ending the
process. The long forms, `tools/torture.py syscalls`, `interrupts` and `errors`, take every one.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb
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
from leftovers import left_over, pages_named, pages_stored

import simindex
from simindex import IndexOptions
from simindex.errors import CommitFailed, ReadOnlyIndex, StorageFailed, StorageFull
from simindex.storage import segment_files

# Forks are what is tested here; from Python 3.12 on they warn of the threads that numpy keeps.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]
__all__ = ["merges_run_at_once"]
"""Every run takes the same steps."""

OPTIONS = IndexOptions(
    batch_rows=16, min_merge=2, reservoir_rows=4, structures=("psm", "bphs:G=2,g=1", "issl")
)


Step = tuple[Callable[[simindex.Index], Any], Callable[[State], State]]

SCRIPT: list[Step] = [
    (lambda index: index.append(rows(0, 1)), lambda state: added(state, 0, 1)),  # pending
    (lambda index: index.append(rows(100, 1)), lambda state: added(state, 100, 1)),  # and merged
    (lambda index: index.append(rows(200, 3)), lambda state: added(state, 200, 3)),  # sealed
    (lambda index: index.delete(ids=[0, 201]), lambda state: without(state, {0, 201})),
    (lambda index: index.append(rows(300, 40)), lambda state: added(state, 300, 40)),  # spilled
    (lambda index: index.replace(rows(300, 2)), lambda state: state),
    (lambda index: index.append(rows(0, 1)), lambda state: added(state, 0, 1)),  # an id comes back
    (lambda index: index.compact(), lambda state: state),
    (lambda index: index.compact(full=True), lambda state: state),
    (lambda index: index.compact(structures=("bphs:G=2,g=1,r=1",)), lambda state: state),
    (lambda index: index.delete(ids=list(range(300, 340))),
     lambda state: without(state, set(range(300, 340)))),
    (lambda index: index.compact(), lambda state: state),  # what lost many rows is written again
    (lambda index: index.compact(full=True), lambda state: state),
]

STATES: list[State] = [{}]
for _, change in SCRIPT:
    STATES.append(change(STATES[-1]))


def run(path: Path, acknowledge: Callable[[int], None]) -> None:
    """The script, one commit a step; `acknowledge` is told how many steps are committed."""
    with simindex.open(path, "w") as index:
        for number, (act, _) in enumerate(SCRIPT, 1):
            act(index)
            index.commit()
            acknowledge(number)


def examine(path: Path, acknowledged: int) -> None:
    """The index holds what was acknowledged, or the step after it; a writer can go on with it."""
    with simindex.open(path) as reader:
        state = state_of(reader)
        steps = [n for n in (acknowledged, acknowledged + 1) if n < len(STATES)]
        assert state in [STATES[n] for n in steps], (acknowledged, state)
        assert [f for f in reader.check() if f.severity == "error"] == []
    with simindex.open(path, "w") as index:
        assert index.check() == [], "the next writer removes what was left"
        assert pages_stored(index) == pages_named(index)
        index.append(rows(10_000, 20))
        index.commit()
        index.compact(full=True)
        assert state_of(index) == added(state, 10_000, 20)
        assert pages_stored(index) == pages_named(index)
        assert index.check() == []


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that is empty, to be copied."""
    path = tmp_path_factory.mktemp("template") / "index"
    simindex.open(path, "c", options=OPTIONS).close()
    return path


@pytest.fixture(scope="module")
def steps(template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of all calls of an undisturbed run."""
    names: list[str] = []
    path = fresh(template, tmp_path_factory.mktemp("steps") / "index")
    acknowledged: list[int] = []
    with counted(lambda number, name: names.append(name)):
        run(path, acknowledged.append)
    assert acknowledged[-1] == len(SCRIPT)
    examine(path, acknowledged[-1])
    assert {"rename", "unlink", "fsync", "lmdb commit", "lmdb delete"} <= set(names)
    return names


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_process_that_ends_at_any_step_loses_no_commit(
    template: Path, steps: list[str], tmp_path: Path, after: bool
) -> None:
    """A quarter of the steps that `met` gives, which are half of those that are not mere puts."""
    for stop, name in islice(met(steps, after=after, puts=7), int(after), None, 4):
        path = fresh(template, tmp_path / "index")
        readable, writable = os.pipe()
        pid = os.fork()
        if pid == 0:
            def die(number: int, name: str, stop: int = stop) -> None:
                if number == stop:
                    os._exit(9)

            with counted(die, after=after):
                run(path, partial(acknowledge, writable))
            os._exit(0)
        os.close(writable)
        acknowledged = 0
        while more := os.read(readable, 1000):
            acknowledged += len(more)
        os.close(readable)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, (stop, name)
        examine(path, acknowledged)


def test_full_disk_at_any_step_is_typed_and_the_next_try_succeeds(
    template: Path, steps: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Merges that a commit makes by itself are put off instead, and say so in the log.

    At every fourth step that needs space; `tools/torture.py errors` refuses each.
    """
    refused = 0
    needing = [step for step in met(steps, after=False, puts=3) if step[1] in NO_SPACE]
    for stop, name in needing[::2]:
        path = fresh(template, tmp_path / "index")
        failed = False

        def fail(number: int, name: str, stop: int = stop) -> None:
            nonlocal failed
            if number == stop:
                failed = True
                raise NO_SPACE[name]

        caplog.clear()
        with counted(fail), simindex.open(path, "w") as index:
            for act, _ in SCRIPT:
                for call in (lambda act=act: act(index), index.commit):
                    try:
                        call()
                    except StorageFull:
                        refused += 1
                        call()
            assert state_of(index) == STATES[-1], (stop, name)
            assert index.check() == [], (stop, name)
        assert failed
        examine(path, len(SCRIPT))
    assert refused > len(steps) / 24


@pytest.mark.parametrize("error", [lmdb.DiskError("No space left on device"), OSError(5, "EIO")])
@pytest.mark.parametrize("done", [False, True])
def test_failed_commit_stops_the_handle_until_it_is_opened_anew(
    template: Path, steps: list[str], tmp_path: Path, error: Exception, done: bool
) -> None:
    """Whether the transaction had come through or not, nothing it names is unlinked.

    Each commit fails with each error, either before it or after it.
    """
    for stop, name in met(steps, after=done, puts=1):
        if name != "lmdb commit":
            continue
        path = fresh(template, tmp_path / "index")
        acknowledged = 0

        def fail(number: int, name: str, stop: int = stop) -> None:
            if number == stop:
                raise error

        with counted(fail, after=done):
            index = simindex.open(path, "w")
            try:
                for number, (act, _) in enumerate(SCRIPT, 1):
                    act(index)
                    index.commit()
                    acknowledged = number
            except CommitFailed:
                pass
            for call in (
                index.commit, partial(index.append, rows(0, 1)), partial(index.delete, ids=[1]),
                partial(index.compact, full=True),
            ):
                with pytest.raises(ReadOnlyIndex):
                    call()
            assert state_of(index) in STATES
            index.close()
        with simindex.open(path, "w") as again:
            # A merge after a commit may have failed, so one more step can be there.
            assert state_of(again) in STATES[acknowledged : acknowledged + 2]
            assert again.check() == []


def test_creation_that_dies_at_any_step_can_be_repeated(tmp_path: Path) -> None:
    stop = 0
    while True:
        stop += 1
        path = tmp_path / f"made{stop}"
        pid = os.fork()
        if pid == 0:
            def die(number: int, name: str, stop: int = stop) -> None:
                if number == stop:
                    os._exit(9)

            with counted(die):
                simindex.open(path, "c", options=OPTIONS).close()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with simindex.open(path, "c", options=OPTIONS) as index:
            index.append(rows(0, 30))
            index.commit()
            assert index.check() == []
        if code == 0:
            break
        assert code == 9
    assert stop > 8


def test_files_of_a_discarded_append_are_removed(template: Path, tmp_path: Path) -> None:
    path = fresh(template, tmp_path / "index")
    with pytest.raises(KeyError), simindex.open(path, "w") as index:
        index.append(rows(0, 50))
        assert len(list((path / "segments").iterdir())) == 9  # with tables and lists
        raise KeyError
    assert list((path / "segments").iterdir()) == []
    with simindex.open(path) as reader:
        assert len(reader) == 0


def test_strays_are_notes_for_readers_and_removed_by_writers(
    template: Path, tmp_path: Path
) -> None:
    path = fresh(template, tmp_path / "index")
    for name in (".tmp-0123456789abcdef", "0000000000000002-00000001.rows", "README"):
        (path / "segments" / name).write_bytes(b"left")
    with simindex.open(path) as reader:
        assert [f.severity for f in reader.check()] == ["note"] * 3
        assert len(list((path / "segments").iterdir())) == 3
    with simindex.open(path, "w"):
        pass
    assert [p.name for p in (path / "segments").iterdir()] == ["README"]


FULL = """
import sys, numpy as np, simindex
from pathlib import Path
from simindex.errors import SimindexError, StorageFull, CommitFailed
path = Path(sys.argv[1]) / "index"
rng = np.random.default_rng(0)
options = simindex.IndexOptions(batch_rows=1 << 13, min_merge=4)
index = simindex.open(path, "c", options=options)
committed, errors = 0, 0
for _ in range(400):
    try:
        index.append(rng.integers(0, 2**64, 3000, dtype=np.uint64))
        index.commit()
        committed += 3000
    except (StorageFull, CommitFailed) as error:
        errors += 1
        index.discard()
        index.close()
        break
assert errors == 1, "the disk never filled"
with simindex.open(path) as reader:
    assert len(reader) in (committed, committed + 3000), (len(reader), committed)
    assert [f for f in reader.check() if f.severity == "error"] == []
try:
    with simindex.open(path, "w") as writer:
        rows = len(writer)
        writer.delete(ids=np.arange(10, dtype=np.uint64))
except (StorageFull, CommitFailed):
    pass
print("survived", rows)
"""


def test_disk_that_really_fills_keeps_every_commit(tmp_path: Path) -> None:
    """On a small tmpfs, mounted in a namespace of its own."""
    mount = f"mount -t tmpfs -o size=3m none {tmp_path}"
    command = ["unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run(
        [*command, mount], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs in a namespace")
    script = tmp_path.parent / "full.py"
    script.write_text(FULL)
    done = subprocess.run(
        [*command, f"{mount} && {sys.executable} {script} {tmp_path}"],
        capture_output=True, text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("survived")


def test_merged_segment_that_cannot_be_opened_is_removed(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    options = IndexOptions(batch_rows=4, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        index.append(np.arange(8, dtype=np.uint64))
        index.commit()
        with monkeypatch.context() as patch:
            patch.setattr(segment_files, "open_segment", fail)
            with pytest.raises(StorageFailed):
                index.compact(full=True)
        assert left_over(index_path) == []
        assert len(index) == 8
