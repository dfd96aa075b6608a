"""Interrupts: exceptions that a trace function raises before an operation of Python's byte code.

Two sets of places:

    any         before every operation; what opens must lose nothing there
    possible    where Python handles signals: at the entry of a function, after a call, and after a
                jump backwards. Code that leaves a `with` block of a lock is safe at these only: an
                exception before the call of `__exit__` would keep the lock, but cannot come there.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from simindex.errors import SimindexError

SIGNALS_ARE_HANDLED_AFTER = {"RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD"}


class Stop(Exception):
    """What the signal handler raises."""


class Interrupt:
    """Raises at one place of all that some modules pass.

    Parameters
    ----------
    modules : tuple[ModuleType, ...]
        Where an interrupt may come.
    place : int
        How many of the places are passed before it comes.
    possible : bool
        Whether only those count at which Python handles signals.
    """

    def __init__(self, modules: tuple[ModuleType, ...], place: int, *, possible: bool) -> None:
        self._files = {module.__file__ for module in modules}
        self._place, self._possible = place, possible
        self.passed = 0
        """Places that it has passed."""
        self._last: dict[FrameType, str] = {}
        self.where: str | None = None
        """Where it came, if it did."""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._operation

    def _operation(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return":
            self._last.pop(frame, None)
        if event != "opcode":
            return self._operation
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        last = self._last.get(frame, "RESUME")
        self._last[frame] = name
        if not self._possible or last in SIGNALS_ARE_HANDLED_AFTER or "BACKWARD" in last:
            self.passed += 1
            if self.passed > self._place:
                self._last.clear()
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise Stop
        return self._operation

    def during(self, work: Callable[[], object]) -> None:
        """Does some work; what comes of the interrupt is dropped."""
        sys.settrace(self)
        try:
            work()
        except (Stop, SimindexError):
            pass
        finally:
            sys.settrace(None)


def interrupted_everywhere(work: Callable[[], object], modules: tuple[ModuleType, ...]) -> int:
    """Does some work with an interrupt at each possible place of some modules, one at a time.

    Returns how many places there are. Raises what the work raises, unless it is the interrupt.
    """
    places = 0
    while True:
        interrupt = Interrupt(modules, places, possible=True)
        sys.settrace(interrupt)
        try:
            work()
        except Stop:
            assert interrupt.where is not None
        finally:
            sys.settrace(None)
        if interrupt.where is None:
            return places
        places += 1
