"""Waiting for what another thread does: in a handle, and in its threads that look at times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from simindex.index import deadline

PATIENCE_S = 30.0


def happens(what: Callable[[], bool]) -> bool:
    """Whether it becomes so within a time that is long for any machine."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.01)
    return what()


def looking() -> list[threading.Thread]:
    """The threads that sleep until a time."""
    return [thread for thread in threading.enumerate() if thread.name == deadline.NAME]
