"""When rows came: in an index with times, u4 seconds since 1970 (UTC) for each row.

    a table     times (n,), in the order of its rows
    the file    times (n + 1,): the last is the least of the others

1. A time is that of the writer's clock when it took the row. What a writer gives never falls: where
   the clock went back, the last time is given again. So no row is older than one committed before.
2. The head has the time before which rows have expired. It never falls, and no row that comes later
   is older. So the clock going back makes no row expire too early.
3. The least time says of most tables, without a look at their rows, that none has expired.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 8
"""Kind of the section."""

LAST_TIME = (1 << 32) - 1
"""In 2106; later ones are given as this one."""

clock: Callable[[], float] = time.time
"""Seconds since 1970; tests put another one in its place."""


def now() -> int:
    """The time of a row that comes now."""
    return min(max(0, int(clock())), LAST_TIME)
