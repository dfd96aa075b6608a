"""Whatever a power cut leaves of an index opens, and holds the last commit or the one in flight."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from reliability import crash, power_loss, report, workloads
from reliability.crash import Verdict
from reliability.recorder import (
    Acknowledge,
    Begin,
    Content,
    Name,
    Operation,
    Rename,
    Resize,
    Sync,
    SyncedWrite,
    SyncNames,
    Tree,
    Write,
)
from reliability.replay import Replay
from reliability.workloads import Workload

# Forks are what is tested here; from Python 3.12 on they warn of the threads that numpy keeps.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

SEED = 6

PAIRS = [
    ("seal", "reopen"), ("seal", "merge"), ("append", "recreate"), ("spill", "restructure"),
    ("delete", "compact"), ("restructure", "restructure"), ("compact", "reopen"),
    ("replace", "ingest"),
]


def test_every_state_after_a_power_cut_holds_what_was_promised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each operation alone, some pairs, and a script with merges beside commits.

    All pairs and more states are tried by `make torture`.
    """
    tried = [w for w in workloads.short() if len(w.operations) < 2 and w.base != "keyed"]
    tried += [Workload("keyed", ("seal",)), *(Workload("index", pair) for pair in PAIRS)]
    tried.append(Workload("aged", ("expire", "compact")))
    tried.append(workloads.threaded(SEED, 8))
    began = time.monotonic()
    total = Verdict()
    for workload in tried:
        total.add(power_loss.tried(
            workload, SEED, draws=1, most=13, known=set(total.states), again=64, again_states=24
        ))
    outcome = power_loss.outcome(
        f"power-loss states ({len(tried)} workloads, {total.recoveries} recoveries)", 325, total,
        time.monotonic() - began, SEED,
    )
    with capsys.disabled():
        print("\n" + report.table([outcome]))
    assert total.faults == []
    assert total.recoveries > 3
    outcome.require()


# -- the replay ------------------------------------------------------------------------------------

ROOT, FILE = 0, 1


def left(*trace: Operation, files: dict[int, Content] | None = None) -> set[tuple[str, ...]]:
    """What may be left of a trace in an empty folder, as lines "name: bytes"."""
    named = {f"old{number}": number for number in files or {}}
    replay = Replay(Tree(files or {}, {ROOT: named}), trace)
    return {
        tuple(
            f"{path}: {'directory' if version is None else shown(replay.content(version))}"
            for path, version in state.layout
        )
        for state in replay.states(draws=0, seed=0)
    }


def shown(content: Content) -> str:
    return content.data.decode() + "." * (content.size - len(content.data))


def test_name_and_bytes_last_only_when_each_is_synced() -> None:
    made, written = Name(ROOT, "a", FILE), Write(FILE, 0, b"xyz")
    assert left(made, written) == {
        (), ("a: ",), ("a: x",), ("a: xy",), ("a: xyz",), ("a: ...",)
    }
    after = left(made, written, Sync(FILE), SyncNames(ROOT), Acknowledge(1, 1))
    assert after == left(made, written)
    replay = Replay(Tree({}, {ROOT: {}}), [made, written, Sync(FILE), SyncNames(ROOT),
                                           Acknowledge(1, 1)])
    promised = [
        [replay.content(version).data for _, version in state.layout if version is not None]
        for state in replay.states(draws=0, seed=0)
        if any(promise.acknowledged == 1 for promise in state.promises)
    ]
    assert promised == [[b"xyz"]]


def test_rename_is_whole_and_an_unsynced_one_may_be_lost() -> None:
    states = left(
        Name(ROOT, ".tmp", FILE), Write(FILE, 0, b"xy"), Sync(FILE), SyncNames(ROOT),
        Rename(ROOT, ".tmp", ROOT, "a", FILE),
    )
    assert {(".tmp: xy",), ("a: xy",)} <= states
    assert not any(len(state) > 1 for state in states)


def test_later_write_may_last_without_an_earlier_one() -> None:
    states = left(
        Write(FILE, 0, b"B"), Write(FILE, 2, b"B"), files={FILE: Content(b"aaa", 3)}
    )
    assert states == {("old1: aaa",), ("old1: Baa",), ("old1: aaB",), ("old1: BaB",)}


def test_synced_write_lasts_without_what_was_written_before_it() -> None:
    states = left(
        Write(FILE, 0, b"B"), SyncedWrite(FILE, 1, b"B"), Acknowledge(0, 0),
        files={FILE: Content(b"aa", 2)},
    )
    assert states == {("old1: aa",), ("old1: Ba",), ("old1: aB",), ("old1: BB",)}


def test_space_that_is_taken_never_cuts_a_file_and_a_resize_may() -> None:
    old = {FILE: Content(b"abc", 3)}
    assert left(Resize(FILE, 2, cuts=False), files=old) == {("old1: abc",)}
    assert left(Resize(FILE, 2), files=old) == {("old1: abc",), ("old1: ab",)}
    assert left(Resize(FILE, 5), files=old) == {("old1: abc",), ("old1: abc..",)}


def test_states_between_two_promises_may_be_either() -> None:
    trace = [Begin(1), Write(FILE, 0, b"B"), Sync(FILE), Acknowledge(1, 7)]
    states = Replay(Tree({FILE: Content(b"a", 1)}, {ROOT: {"f": FILE}}), trace).states(
        draws=0, seed=0
    )
    promises = [
        {(promise.acknowledged, promise.begun) for promise in state.promises} for state in states
    ]
    assert promises == [{(0, 0), (0, 1)}, {(0, 1), (1, 1)}]


def test_process_that_a_state_kills_is_counted_and_the_others_are_judged() -> None:
    def work(number: int) -> Verdict:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return Verdict({bytes([number])})

    total = Verdict()
    for verdict in crash.judged(4, work):
        total.add(verdict)
    assert total.states == {bytes([number]) for number in (0, 2, 3)}
    assert [kind for kind, _ in total.faults] == ["signals"]
    assert "-9" in total.faults[0][1]


def test_state_that_hangs_is_counted_and_the_others_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crash, "PATIENCE_S", 0.5)

    def work(number: int) -> Verdict:
        if number == 0:
            signal.pause()
        return Verdict({bytes([number])})

    verdicts = list(crash.judged(2, work))
    assert [kind for verdict in verdicts for kind, _ in verdict.faults] == ["hangs"]
    assert verdicts[-1].states == {b"\x01"}


# -- the recorder ----------------------------------------------------------------------------------

TRACED = (
    "open,openat,creat,write,writev,pwrite64,pwritev,pwritev2,lseek,fsync,fdatasync,"
    "sync_file_range,ftruncate,truncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,mkdir,"
    "mkdirat,rmdir,link,linkat,symlink,symlinkat,copy_file_range,sendfile"
)

RECORDED = """
import pickle, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from reliability import workloads
names = tuple(sys.argv[4:])
recorder, _ = workloads.run(workloads.Workload("nothing", names), Path(sys.argv[2]), 1)
Path(sys.argv[3]).write_bytes(pickle.dumps((recorder.data_files, recorder.trace)))
"""

SCRIPT = (
    "seal", "append", "seal", "spill", "delete", "reopen", "compact", "restructure", "tune",
    "recreate", "replace",
)

Step = tuple[str, *tuple[object, ...]]
"""A change of the disk as both the recorder and strace tell it."""


@pytest.mark.skipif(shutil.which("strace") is None, reason="1 skipped: strace is not installed")
def test_recorder_sees_every_call_that_strace_sees(tmp_path: Path) -> None:
    """In the same order; and LMDB commits as the recorder says it does.

    That is: pages that may be written in any order, fdatasync, then within one sector a meta page,
    through a descriptor opened with O_DSYNC. LMDB may write pages that are as they were before.
    """
    root, log, trace = tmp_path / "root", tmp_path / "log", tmp_path / "trace"
    root.mkdir()
    tools = Path(__file__).resolve().parents[2] / "tools"
    command = [sys.executable, "-c", RECORDED, str(tools), str(root), str(trace), *SCRIPT]
    done = subprocess.run(
        ["strace", "-f", "-y", "-qq", "-s", "0", "-o", str(log), "-e", f"trace={TRACED}", *command],
        capture_output=True, text=True, check=False,
    )
    if "ptrace" in done.stderr.lower() and done.returncode:
        pytest.skip("1 skipped: this machine lets nobody trace a process")
    assert done.returncode == 0, done.stderr
    data_files, operations = pickle.loads(trace.read_bytes())  # noqa: S301
    seen = list(steps_of_strace(log.read_text("utf-8", "replace").splitlines(), root))
    recorded = list(steps_of_trace(operations, data_files))
    assert [step[0] for step in seen] == [step[0] for step in recorded]
    commits = 0
    for real, ours in zip(seen, recorded, strict=True):
        if real[0] == "pages":
            assert ours[1] <= real[1], (real, ours)
            commits += 1
        else:
            assert real == ours
    assert commits > 12


def steps_of_trace(trace: Sequence[Operation], data_files: set[int]) -> Iterator[Step]:
    names: dict[int, str] = {}
    pages: set[int] = set()
    for operation in trace:
        if pages and not isinstance(operation, Write):
            yield "pages", frozenset(pages)
            pages = set()
        match operation:
            case Name(_, name, None):
                yield "remove", name
            case Name(_, name, node, is_directory):
                yield ("mkdir" if is_directory else "create"), name
                names[node] = name
            case Rename(_, name, _, to_name, node):
                yield "rename", name, to_name
                names[node] = to_name
            case SyncNames(_):
                yield ("sync names",)
            case Write(file, offset, data) if file in data_files and offset:
                assert len(data) == 4096
                pages.add(offset // 4096)
            case Write(file, offset, data):
                yield "write", names[file], offset, len(data)
            case SyncedWrite(file, offset, data):
                yield "meta", offset // 4096
            case Sync(file):
                yield "sync", names[file]
            case Resize(file, size, _):
                yield "resize", names[file], size


CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(.*)$")
ON = re.compile(r"^(\d+)<([^>]*)>")
PATHS = re.compile(r'"([^"]*)"')


def steps_of_strace(lines: Sequence[str], root: Path) -> Iterator[Step]:
    known: set[str] = set()
    synced: set[str] = set()
    at: dict[str, int] = {}
    pages: set[int] = set()
    for line in lines:
        found = CALL.match(line)
        if found is None or str(root) not in line or int(found[3]) < 0:
            assert found is not None or str(root) not in line, line
            continue
        call, arguments, result, after = found.groups()
        on = ON.match(arguments)
        fd, path = (on[1], on[2].removesuffix(" (deleted)")) if on else ("", "")
        name = Path(path).name
        if pages and call not in ("pwrite64", "writev", "lseek"):
            yield "pages", frozenset(pages)
            pages = set()
        given = PATHS.findall(arguments)
        if call in ("open", "openat"):
            opened = re.match(r"<(.*)>", after)
            assert opened is not None
            descriptor = result
            synced.discard(descriptor)
            if "O_DSYNC" in arguments or "O_SYNC" in arguments:
                synced.add(descriptor)
            if "O_CREAT" in arguments and opened[1] not in known:
                known.add(opened[1])
                yield "create", Path(opened[1]).name
        elif call == "lseek":
            at[fd] = int(result)
        elif name == "data.mdb" and call in ("pwrite64", "writev"):
            offset = int(arguments.rsplit(",", 1)[1]) if call == "pwrite64" else at[fd]
            size = int(result)
            if fd in synced:
                first, last = offset % 4096, (offset + size - 1) % 4096
                assert offset < 2 * 4096 and first <= last < 512, line
                yield "meta", offset // 4096
            elif offset:
                pages |= set(range(offset // 4096, (offset + size) // 4096))
                at[fd] = offset + size
            else:
                yield "write", name, 0, size
        elif call == "pwrite64":
            yield "write", name, int(arguments.rsplit(",", 1)[1]), int(result)
        elif call in ("fsync", "fdatasync"):
            yield ("sync names",) if Path(path).suffix == "" and name in (
                root.name, "index", "catalog", "segments"
            ) else ("sync", name)
        elif call in ("ftruncate", "fallocate"):
            yield "resize", name, int(arguments.rsplit(",", 1)[1])
        elif call == "truncate":
            yield "resize", Path(given[0]).name, int(arguments.rsplit(",", 1)[1])
        elif call in ("mkdir", "mkdirat"):
            known.add(given[0])
            yield "mkdir", Path(given[0]).name
        elif call in ("unlink", "rmdir"):
            known.discard(given[0])
            yield "remove", Path(given[0]).name
        elif call == "rename":
            known.discard(given[0])
            known.add(given[1])
            yield "rename", Path(given[0]).name, Path(given[1]).name
        elif call != "sync_file_range":  # which promises nothing
            raise AssertionError(f"nothing here should call {line}")
    assert not pages
