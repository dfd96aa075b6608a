"""Ctrl-C and SIGTERM, which end a command by an exception, so that what must go is removed.

Both wait for a commit to end, so that what is committed is known.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM, which does all that Ctrl-C does."""


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM raise Terminated within the block, unless the process has its own way."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    # `timeout` sends it twice, and the second must not end what the first has begun.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold both back until the block has ended; the first that came takes effect then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, frame: held.append(number))
        for number in SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])
