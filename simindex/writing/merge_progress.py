"""How far merges are, told to a function of the caller's.

    by_tables   one by the thread of the caller: rows, then each further table
    telling     some that are waited for: rows that are done of all that will be merged
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simindex.records.reports import Progress
    from simindex.writing.merges import Merge

TELL_S = 0.1
"""So often it is told how far merges are that are waited for."""


def by_tables(
    progress: Progress | None, tables: int
) -> tuple[Progress | None, Callable[[], None] | None]:
    """What is told of rows, and at the end of each further table, as a share of all tables."""
    if progress is None:
        return None, None
    ended = total = 0

    def rows(done: int, of: int) -> None:
        nonlocal total
        total = of
        progress(done // tables, total)

    def step() -> None:
        nonlocal ended
        ended += 1
        progress(total * (1 + ended) // tables, total)

    return rows, step


def telling(
    progress: Progress | None, running: Sequence[Merge], done: int, total: int
) -> Callable[[], bool]:
    """Never ends a wait for some merges, and tells how far they are now and then."""
    told = -TELL_S

    def tell() -> bool:
        nonlocal told
        if progress is not None and monotonic() - told >= TELL_S:
            told = monotonic()
            progress(done + round(sum(one.rows * one.done for one in running)), total)
        return False

    return tell
