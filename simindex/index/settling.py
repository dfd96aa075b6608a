"""Few segments in the end: what a writer goes on merging that is idle, or leaves.

    committed   segments are more than a settled index has: somebody looks in `IDLE_S`
    idle        no call has changed the index since: a part of what has ended is installed, the next
                merge begins, and somebody looks again; a call that comes meanwhile goes first, and
                its commits go on beside a merge that runs
    leaving     the same at once; the log tells what is waited for, and how long

Nothing is merged in this way where commits merge nothing (`min_merge=0`), nor by a writer that has
committed nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from simindex.errors import SimindexError
from simindex.index.deadline import Deadline
from simindex.index.writing_call import WritingCall

if TYPE_CHECKING:
    from simindex.index.handle import Handle
    from simindex.writing.writer import Writer

IDLE_S = 2.0
"""Without a call that changes the index, until a writer is taken to be idle."""

LOOK_S = 0.2
"""So often it is looked, by an idle writer, whether a merge has ended."""

FIRST_TOLD_S, TOLD_S = 1.0, 10.0
"""When and how often the log tells what a writer that leaves waits for."""

log: logging.Logger = logging.getLogger(__package__)


class Settling:
    """Of one handle, under whose lock its methods are called."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._deadline = Deadline(self._look)
        self._own_change = 0.0

    def expect(self, writer: Writer) -> None:
        """Has somebody look once the writer is idle; called after each commit."""
        try:
            settled = writer.is_settled
        except (SimindexError, OSError, MemoryError) as error:
            writer.merges.put_off(error)  # what is committed stays: it is not to be repeated
            return
        if not settled:
            self._deadline.expect(monotonic() + IDLE_S)

    def leave(self, writer: Writer) -> None:
        """Goes on until the index is settled, or something fails, of which the log warns."""
        try:
            writer.finish_merges(settle=True, progress=_telling(self._handle.path))
        except (SimindexError, OSError, MemoryError) as error:
            if writer.committer.failed is not None:
                raise
            writer.merges.put_off(error)  # what is committed stays: it is not to be repeated

    def _look(self) -> None:
        handle = self._handle
        with handle.turns, handle.lock:
            self._deadline.reached()
            writer = handle.writer
            if handle.closed or writer is None or writer.merges.over or handle.note is not None:
                return
            if handle.last_change != self._own_change:
                due = handle.last_change + IDLE_S
                if due > monotonic():
                    self._deadline.expect(due)
                    return
            if writer.committer.failed is not None or not writer.committer.waiting.empty:
                return  # of what waits a commit comes, which installs what has ended
            try:
                with WritingCall(handle, "settle") as writer:
                    writer.install_next()
                    settled = writer.is_settled
            except (SimindexError, OSError, MemoryError) as error:
                log.warning("segments of %s were not merged: %s", handle.path, error)
                return
            self._own_change = handle.last_change
            if not settled:
                self._deadline.expect(monotonic() + LOOK_S)


def _telling(path: Path) -> Callable[[int, int], None]:
    """Tells the log now and then what is waited for."""
    began = monotonic()
    due = began + FIRST_TOLD_S

    def tell(done: int, total: int) -> None:
        nonlocal due
        if (now := monotonic()) < due:
            return
        due = now + TOLD_S
        left = f", about {(now - began) * (total / done - 1):,.0f} s left" if done else ""
        log.info(
            "%s is closed once its segments are merged: %s of %s rows are%s", path, f"{done:,}",
            f"{total:,}", left,
        )

    return tell
