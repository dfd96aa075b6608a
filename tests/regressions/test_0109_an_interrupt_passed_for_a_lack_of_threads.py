"""An exception of a signal handler came while `threading` waited for a thread to start. Leaving its
condition it gave back a lock that it had not taken again, and raised RuntimeError for that: Ctrl-C
was taken for a system that gives no more threads, and the call went on. The log's record of it
referred to the error, and so to segments that stayed open.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest
from interrupts import Stop, interrupted_everywhere

from simindex.resources.threads import Pool, begin
from simindex.writing import merges


def begin_a_thread() -> None:
    begin(threading.Thread(target=lambda: None, daemon=True))


def within_a_handler_of_an_error() -> None:
    try:
        raise ValueError
    except ValueError:
        begin_a_thread()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", [begin_a_thread, within_a_handler_of_an_error])
def test_an_interrupt_of_a_start_is_raised(work: Callable[[], None]) -> None:
    assert interrupted_everywhere(work, (threading,)) > 10


def test_an_interrupt_of_a_pool_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without places within `threading`: a pool's semaphore may stay taken at some of them."""
    def start(thread: threading.Thread) -> None:
        try:
            raise Stop
        finally:
            raise RuntimeError("release unlocked lock")

    done: list[int] = []
    with Pool(1) as pool, monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(Stop):
            pool.submit(done.append, 9)
    assert done == []


@pytest.mark.parametrize("handled", [False, True])
def test_a_lack_of_threads_is_none(monkeypatch: pytest.MonkeyPatch, handled: bool) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise RuntimeError("can't start new thread")

    for name in ("_start_new_thread", "_start_joinable_thread"):  # the second from Python 3.13 on
        monkeypatch.setattr(threading, name, refuse, raising=False)

    def work() -> None:
        with pytest.raises(RuntimeError, match="new thread"):
            begin(threading.Thread(target=print))
        with Pool(1) as pool:
            assert pool.submit(lambda: 9).result() == 9

    if not handled:
        work()
        return
    try:
        raise KeyError
    except KeyError:
        work()


def test_a_record_of_the_log_keeps_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        merges.Merges().put_off(OSError(28, "No space left on device"))
    record = caplog.records[-1]
    assert "No space left on device" in record.getMessage()
    assert not any(isinstance(one, BaseException) for one in record.args or ())
