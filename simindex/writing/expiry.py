"""From an age, or a point in time, to the time of the rows that expire."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

import numpy as np

from simindex.errors import InvalidOption
from simindex.options import IndexOptions
from simindex.storage.tables import times

EXPECTED = "seconds from 0 on, a timedelta, or a past datetime with a time zone"


def checked_time(older_than: Any, options: IndexOptions) -> int:
    """Rows of earlier times expire: whole seconds since 1970, rounded down, at most now.

    Raises InvalidOption if the index has no times, or `older_than` is no such age or time.
    """
    if not options.times:
        raise InvalidOption(
            "the index does not store when its rows came",
            remedy="create it with IndexOptions(times=True) or `simindex build --times`; "
            "`simindex merge INDEX --times -o NEW` copies it into one that does",
            option="times", found=False, expected=True,
        )
    now = times.clock()
    if isinstance(older_than, datetime):
        if older_than.utcoffset() is None:
            raise _refused(older_than, "has no time zone")
        before = older_than.timestamp()
        if before > now:
            raise _refused(older_than, "is in the future")
    else:
        before = now - _seconds(older_than)
    return max(0, min(int(before), times.LAST_TIME))


def _seconds(age: Any) -> float:
    if isinstance(age, timedelta):
        seconds = age.total_seconds()
    elif isinstance(age, np.timedelta64):
        seconds = float(age / np.timedelta64(1, "s"))
    else:
        seconds = -1.0
        if isinstance(age, (int, float, np.integer, np.floating)) and not isinstance(age, bool):
            with suppress(OverflowError):
                seconds = float(age)
    if not (isfinite(seconds) and seconds >= 0):
        raise _refused(age, "is not an age")
    return seconds


def _refused(found: Any, why: str) -> InvalidOption:
    return InvalidOption(
        f"older_than={found!r:.80} {why}", remedy=f"give {EXPECTED}", option="older_than",
        found=found, expected=EXPECTED,
    )
