"""Forked children of a test."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable


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
