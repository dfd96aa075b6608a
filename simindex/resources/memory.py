"""How much memory the machine gives this process, and how much of it one answer may take.

    the machine        its memory, or less where a control group of the process has a limit
    an answer          a quarter of that, unless the call says how much
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

ANSWER_SHARE = 4
"""An answer may take one part in so many of the memory."""

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def answer_bytes() -> int:
    """What an answer may take, where the call does not say."""
    return machine_bytes() // ANSWER_SHARE


@lru_cache(maxsize=1)
def machine_bytes() -> int:
    """Memory of the machine, or the least limit of a control group that the process is in."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *_group_limits(GROUPS, OWN_GROUPS)])


def give_back() -> None:
    """Returns memory that was freed to the system, where the C library keeps it.

    That of GNU keeps what was freed below what is still held.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _trim() -> Callable[[int], int] | None:
    """`malloc_trim` of the GNU C library; others have none."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None


def _group_limits(groups: Path, own: Path) -> Iterator[int]:
    """The limits of the control groups that a file such as /proc/self/cgroup lists, and of those
    around them."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:  # version 2
            top, file = groups, "memory.max"
        elif "memory" in controllers.split(","):
            top, file = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(name.lstrip("/"))
        for one in (group, *group.parents):
            with suppress(OSError, ValueError):  # no such file, or "max"
                yield int((top / one / file).read_text())
