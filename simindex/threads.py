"""How many threads a call uses."""

from __future__ import annotations

import os

from simindex.errors import InvalidOption

VARIABLE = "SIMINDEX_THREADS"
"""Environment variable: threads of calls that name none."""


def thread_count(threads: int | None, items: int, *, worth: int) -> int:
    """Threads for `items` pieces of work: as many as asked for, else one for each processor.

    Without an answer in `threads`, `SIMINDEX_THREADS` is asked first, and fewer than `worth` items
    get one thread. Never more threads than items. Raises InvalidOption on a number below 1.
    """
    if threads is None:
        if items <= 1:
            return 1
        given = os.environ.get(VARIABLE)
        if given is None:
            threads = len(os.sched_getaffinity(0)) if items >= worth else 1
        elif given.isdecimal() and int(given) >= 1:
            threads = int(given)
        else:
            raise InvalidOption(
                f"{VARIABLE}={given!r} in the environment: give a whole number, 1 or more",
                option=VARIABLE, found=given, expected="1 or more",
            )
    elif isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidOption(
            f"threads={threads!r}: give a whole number, 1 or more",
            option="threads", found=threads, expected="1 or more",
        )
    return max(1, min(threads, items))
