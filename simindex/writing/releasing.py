"""What merged segments and files of tombstones held: it is given back by a thread of its own.

    release     begins to give it back
    wait        for a caller that leaves: nothing of it is open any more
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

from simindex.resources.threads import begin
from simindex.storage.files import removal
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.tables.segment import Segment

THREAD_NAME = "simindex release"


class Releases:
    """Those of one writer, which are at work."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []
        self._awaited = False

    def release(self, segments: list[Segment], descriptors: list[Descriptor]) -> None:
        """Gives up some segments and the space of their unlinked files, in a thread.

        Their pages are freed when the last map is closed, which takes 0.9 s for 400 MB.
        """
        def work() -> None:
            segments.clear()
            while descriptors:
                with suppress(OSError, IndexError):  # it is closed all the same, and has no name
                    removal.free(descriptors.pop(), lambda: self._awaited)

        thread = Thread(target=work, name=THREAD_NAME, daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()]
        try:
            begin(thread)
        except BaseException as error:
            segments.clear()
            descriptors.clear()
            if not isinstance(error, RuntimeError):  # no thread could be had
                raise
            return
        self._threads.append(thread)

    def wait(self) -> None:
        """Returns once the space of all of them is given back, without pauses for commits."""
        self._awaited = True
        try:
            while self._threads:
                self._threads[-1].join()
                self._threads.pop()
        finally:
            self._awaited = False
