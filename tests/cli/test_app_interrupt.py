"""Ctrl-C and SIGTERM: they wait for a commit to end, and the second changes nothing."""

from __future__ import annotations

import signal

import pytest

from simindex.cli.app import Terminated, terminable, uninterrupted


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


def test_own_way_with_sigterm_is_kept() -> None:
    """Of a program that runs a command within itself."""
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with terminable(), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, previous)
