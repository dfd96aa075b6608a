"""`--wait`: commands that write wait for their turn, and say whom they wait for."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli import lock_wait
from simindex.cli.lock_wait import LockWait

Run = Callable[..., Any]
Spawn = Callable[..., Any]

WRITERS = [
    "build i.sim more.jsonl --append", "build i.sim more.jsonl --overwrite",
    "dedup more.jsonl --index i.sim", "delete i.sim --key a", "compact i.sim",
]
"""Calls that write the index i.sim; `tune` does, too, and takes ten seconds."""


@pytest.fixture
def index(run: Run, write_jsonl: Callable[..., Path]) -> str:
    text = "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood"
    write_jsonl("first.jsonl", [{"id": "a", "text": text}])
    write_jsonl("more.jsonl", [{"id": "b", "text": text.replace("fox", "cat")}])
    run("build", "i.sim", "first.jsonl", "-q")
    return "i.sim"


class Writer:
    """A process that writes an index until it is told to end."""

    def __init__(self, spawn: Spawn, path: str, folder: Path) -> None:
        self.folder = folder
        os.mkfifo(folder / "lines.jsonl")
        self.process = spawn("dedup", "lines.jsonl", "--index", path, "--id-field", "id", "-q")
        self.lines = (folder / "lines.jsonl").open("wb", buffering=0)
        while True:
            try:
                simindex.open(folder / path, "w").close()
            except simindex.IndexLocked:
                return
            time.sleep(0.01)

    def end(self) -> None:
        self.lines.write(b'{"id": "z", "text": "sphinx of black quartz judge my vow"}\n')
        self.lines.close()
        with self.process:
            assert self.process.wait(timeout=60) == 0, self.process.stderr.read()


@pytest.mark.parametrize("call", WRITERS)
def test_a_command_waits_for_the_writer(
    spawn: Spawn, tmp_path: Path, index: str, call: str
) -> None:
    writer = Writer(spawn, index, tmp_path)
    with spawn(*call.split(), "--wait", 60) as process:
        line = process.stderr.readline().decode()
        while "waiting" not in line:  # names of files may be told before
            assert line, process.poll()
            line = process.stderr.readline().decode()
        assert "simindex: waiting for another process: " in line
        assert f"{index} is locked by a writer: " in line and str(writer.process.pid) in line
        writer.end()
        assert process.wait(timeout=60) == 0, process.stderr.read()
    with simindex.open(tmp_path / index) as opened:
        if "overwrite" in call:
            assert ("b" in opened, "z" in opened) == (True, False)
        else:
            assert "z" in opened, "what the writer added is there, and was seen"
            assert ("a" in opened) == ("delete" not in call)


@pytest.mark.parametrize("call", [*WRITERS, "tune i.sim"])
def test_the_wait_ends_with_the_usual_error(
    run: Run, spawn: Spawn, tmp_path: Path, index: str, call: str, tree: Any
) -> None:
    writer = Writer(spawn, index, tmp_path)
    began = time.monotonic()
    result = run(*call.split(), "--wait", 0.2, code=3)
    assert 0.2 <= time.monotonic() - began < 10
    assert "is locked by a writer" in result.stderr
    assert "waiting" not in result.stderr
    assert "is locked by a writer" in run(*call.split(), code=3).stderr
    writer.end()


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.slow
def test_it_is_said_once_after_a_second(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    quiet: bool,
) -> None:
    monkeypatch.setattr(lock_wait, "SILENT_S", 0.05)
    simindex.open(tmp_path / "i.sim", "n").close()
    opened, done = Event(), Event()

    def write() -> None:
        with simindex.open(tmp_path / "i.sim", "w") as index:
            opened.set()
            done.wait(0.3)
            index.append(np.arange(3, dtype=np.uint64))

    thread = Thread(target=write)
    thread.start()
    opened.wait()
    with LockWait(60, quiet).open(tmp_path / "i.sim") as index:
        assert len(index) == 3
    thread.join()
    assert capsys.readouterr().err.count("waiting for another process") == (not quiet)


def test_an_interrupt_ends_the_wait(spawn: Spawn, tmp_path: Path, index: str) -> None:
    writer = Writer(spawn, index, tmp_path)
    with spawn("compact", index, "--wait", "inf") as process:
        assert b"waiting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    writer.end()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("build new.sim more.jsonl --wait 5", "--wait needs --append or --overwrite"),
        ("dedup more.jsonl --wait 5", "--wait needs --index"),
        ("compact i.sim --wait -1", "'-1' is not a number of seconds of 0 or more"),
        ("compact i.sim --wait soon", "'soon' is not a number of seconds of 0 or more"),
        ("compact i.sim --wait nan", "'nan' is not a number of seconds of 0 or more"),
    ],
)
def test_a_wrong_wait_is_refused(run: Run, index: str, call: str, said: str) -> None:
    assert said in " ".join(run(*call.split(), code=2).stderr.split())
