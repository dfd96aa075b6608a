"""A file without a buffer of its own, of which each write is whole.

`dedup` hands over hundreds of lines at once, so a buffer saves no calls of the system. And a thread
that waits within a write to a pipe holds the lock of a buffer: who closes the file, as the main
thread does after Ctrl-C, would wait for it.
"""

from __future__ import annotations

import errno
import io
from typing import Any


class Unbuffered(io.FileIO):
    """As `open(..., buffering=0)` gives, but a write that the system has cut short goes on."""

    def write(self, data: Any, /) -> int:
        """Writes all of it. Raises BlockingIOError where that would have to wait, and may not."""
        left = memoryview(data).cast("B")
        size = len(left)
        while len(left):
            written = super().write(left)
            if written is None:
                raise BlockingIOError(errno.EAGAIN, "write could not complete without blocking")
            left = left[written:]
        return size
