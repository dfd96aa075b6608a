"""A call that changes an index, from its beginning to an end that is known.

    begun      the handle keeps a note of the call before anything of it is done
    ended      the call returned, or raised an error that says what is kept: the note goes
    cut off    something else ended it, such as Ctrl-C or what a signal handler raised. That may
               come between any two steps, so nobody knows which were done. The note stays, and
               the handle changes nothing any more until the index is opened again.

The refusal needs no step of its own once the note is there, so a further interrupt cannot prevent
it. What the call has done without a commit is removed by the next writer, which reads from the
catalog what is live.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Protocol

from simindex.errors import SimindexError, raised_by_a_handler
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.records.reports import Progress
    from simindex.writing.writer import Writer

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


@dataclass(slots=True)
class CallNote:
    """The note of a call that has begun."""

    call: str
    """Name of the method."""
    code: CodeType
    """Its code, by which its frame is known."""
    disturbed: bool = False
    """Whether another change was refused within it. Where a signal handler asked for that, the
    refusal comes out of this call at a place that nobody foresaw."""

    def under_way(self, handle: object) -> bool:
        """Whether the caller was itself called from within it, on this thread.

        A call is a method of the handle, or of what has it as `handle`.
        That is so for the `progress` function of `compact`, and for signal handlers.
        """
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            frame = frame.f_back  # of the call that asks
        while frame is not None:
            if frame.f_code is self.code:
                owner = frame.f_locals["self"]
                if getattr(owner, "handle", owner) is handle:
                    return True
            frame = frame.f_back
        return False


class Changeable(Protocol):
    """What a call changes: a handle."""

    note: CallNote | None
    last_change: float

    def check_may_change(self) -> Writer:
        """The writer, unless an error says why it may change nothing now."""


def foreseen(error: BaseException) -> bool:
    """Whether it is an error of ours, or the system's, after which what is kept is known."""
    return isinstance(error, (SimindexError, OSError, MemoryError)) and (
        not raised_by_a_handler(error)
    )


class WritingCall:
    """The `with` block of a method that changes the index; gives its writer. Under the lock.

    It may be begun again, by the same method, once it has ended.
    """

    __slots__ = ("_call", "_handle", "_note", "_told")

    def __init__(self, handle: Changeable, call: str) -> None:
        self._handle, self._call = handle, call
        self._note: CallNote | None = None
        self._told: BaseException | None = None

    def __enter__(self) -> Writer:
        writer = self._handle.check_may_change()
        note = self._note
        if note is None or note.disturbed:
            self._note = note = CallNote(self._call, sys._getframe(1).f_code)
        self._handle.note = note
        return writer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.last_change = monotonic()
        note = self._handle.note
        disturbed = note is not None and note.disturbed
        if error is None or error is self._told or (foreseen(error) and not disturbed):
            self._handle.note = None

    def reporting(self, progress: Progress | None) -> Progress | None:
        """The caller's function of progress; what it raises ends the call where that is foreseen.
        """
        if progress is None:
            return None

        def report(done: int, total: int) -> None:
            try:
                progress(done, total)
            except BaseException as error:
                self._told = error
                raise

        return report
