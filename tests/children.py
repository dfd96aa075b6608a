"""Processes that a test starts."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

import numpy as np

import simindex


def in_child(work: Callable[[], object]) -> int:
    """Exit code of a forked child: 0 if `work` returns; it is killed if it hangs."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(30)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def leave_open(path: str, number: int) -> None:
    """Appends a row to an index that stays open until the process ends."""
    index = simindex.open(path, "c")
    index.append(np.array([number], np.uint64))
    _open.append(index)


_open: list[simindex.Index] = []
