"""Where a call can be interrupted, and the raising there.

    events         the lines and returns that a call passes when nothing disturbs it
    Point          one of them, which a repetition of the call finds again
    Interruption   raises an error at a point

Watched are lines of the package, of `contextlib`, and of `threading` and `concurrent.futures`,
which a call passes while it joins or waits for threads; and returns, where what is returned is
lost.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import simindex

PACKAGE = str(Path(simindex.__file__).parent) + "/"
FUTURES = str(Path(futures.__file__).parent) + "/"
WATCHED = (PACKAGE, threading.__file__, contextlib.__file__)
"""Folders and files. Pools of threads are not among them: they do not survive interrupts, see
docs/explanation/reliability.md."""

Event = tuple[CodeType, int, str, CodeType | None, int]
"""Where a call was: line, or return, and the line that called its function."""


def _watched(code: CodeType) -> bool:
    return code.co_filename.startswith(WATCHED)


def _of_a_pool(frame: FrameType | None) -> bool:
    """Whether a function of `threading` works for a pool of threads."""
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(FUTURES)


def traced(work: Callable[[], Any], meet: Callable[[FrameType, str], None]) -> Any:
    """Does some work, and tells of each event of this thread that is watched."""
    seen: dict[CodeType, bool] = {}

    def within_it(frame: FrameType, event: str, argument: Any) -> Any:
        # Within the library only lines: what returns as a lock of its own is taken keeps that lock
        # for ever, and nobody but the library could give it back.
        if event == "line" or (
            event == "return" and argument is not None
            and frame.f_code.co_filename.startswith(PACKAGE)
        ):
            meet(frame, event)
        return within_it

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code not in seen:
            seen[code] = _watched(code)
        return within_it if seen[code] and not _of_a_pool(frame) else None

    def apart() -> Iterator[Any]:
        yield work()

    sys.settrace(called)
    try:
        # An error that is raised as an `except` clause ends leaves what was handled there behind,
        # with its frames; no signal arrives at that place. A generator forgets it at its end.
        return next(apart())
    finally:
        sys.settrace(None)


def events(work: Callable[[], Any]) -> list[Event]:
    """What a call passes when nothing disturbs it."""
    found: list[Event] = []

    def meet(frame: FrameType, event: str) -> None:
        caller = frame.f_back
        found.append((
            frame.f_code, frame.f_lineno, event, None if caller is None else caller.f_code,
            0 if caller is None else caller.f_lineno,
        ))

    traced(work, meet)
    return found


@dataclass(frozen=True, slots=True)
class Point:
    """Where to raise; not after so many events, as a call that waits looks round now and then."""

    at: int
    """Its number among the events when they were counted."""
    file: str
    line: int
    event: str
    caller: str
    caller_line: int
    passage: int
    """From 1, of this line with this caller."""


class Interruption:
    """Raises an error at one point of a call."""

    def __init__(self, point: Point, error: BaseException) -> None:
        self.point, self.error = point, error
        self.left = point.passage
        self.where = ""
        self.frame: FrameType | None = None
        """Where it was raised: no traceback leads there if that was at a return."""

    def meet(self, frame: FrameType, event: str) -> None:
        """Raises if this is the point."""
        point, code, caller = self.point, frame.f_code, frame.f_back
        if (
            frame.f_lineno != point.line or event != point.event
            or code.co_filename != point.file or caller is None
            or caller.f_lineno != point.caller_line or caller.f_code.co_filename != point.caller
        ):
            return
        self.left -= 1
        if self.left == 0:
            self.where = f"{Path(code.co_filename).name}:{frame.f_lineno} {event} {code.co_name}"
            self.frame = frame
            raise self.error

    def forget(self) -> None:
        """Drops the frames that the error went through; each has this as what traces it."""
        self.error.__traceback__ = self.error.__context__ = self.frame = None
