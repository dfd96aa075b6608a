"""Ctrl-C and SIGTERM: they wait for a commit to end, and the second changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simindex.cli.app import AGAIN_S, Terminated, insistent, terminable, uninterrupted


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_wait_for_a_commit_to_end(how: signal.Signals) -> None:
    reached = False
    with terminable(), pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(how)
        reached = True
    assert reached
    with uninterrupted():
        pass


def test_second_sigterm_does_not_end_what_the_first_has_begun() -> None:
    removed = False
    with terminable():
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        removed = True
    assert removed
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


class Interrupted:
    """Python ignores what is raised when it goes away."""

    def __init__(self, how: signal.Signals) -> None:
        self.how = how

    def __del__(self) -> None:
        signal.raise_signal(self.how)


@pytest.mark.parametrize(
    ("how", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_an_interrupt_that_python_ignores_comes_again(
    how: signal.Signals, raised: type[KeyboardInterrupt]
) -> None:
    went_on = False
    with terminable(), insistent(), pytest.raises(KeyboardInterrupt) as caught:
        Interrupted(how)
        went_on = True
        time.sleep(10)
    assert went_on and caught.type is raised


@pytest.mark.parametrize(
    ("how", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_an_interrupt_comes_again_where_a_thread_is_slow_to_start(
    how: signal.Signals, raised: type[KeyboardInterrupt], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: what comes while the thread starts would be ignored, too."""
    start = threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(20 * AGAIN_S)

    monkeypatch.setattr(threading.Thread, "start", slowly)
    with terminable(), insistent(), pytest.raises(KeyboardInterrupt) as caught:
        Interrupted(how)
        time.sleep(2)
    assert caught.type is raised


def test_other_exceptions_that_python_ignores_are_told_as_usual(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: told.append(ignored.exc_type))

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    usual = sys.unraisablehook
    with insistent():
        Failing()
    assert told == [ValueError]
    assert sys.unraisablehook is usual


def test_own_way_with_sigterm_is_kept() -> None:
    """Of a program that runs a command within itself."""
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with terminable(), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_an_interrupt_within_text_that_is_executed_has_the_same_exit_code(tmp_path: Path) -> None:
    """Python executes text when a dataclass is imported. It matters to `python -m` alone."""
    (tmp_path / "program.py").write_text(
        "from simindex.cli.app import program\n"
        "program.command('text')(lambda: exec('raise KeyboardInterrupt'))\n"
        "program(['text'])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "program"], check=False, capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert (ended.returncode, ended.stderr) == (130, b"simindex: interrupted\n")
