"""Progress of a measurement, printed for the person who waits."""

from __future__ import annotations

import sys
import time

_START = time.monotonic()


def say(line: str) -> None:
    """Prints a line on standard error, with the seconds since the start."""
    print(f"{time.monotonic() - _START:6.0f} s  {line}", file=sys.stderr, flush=True)
