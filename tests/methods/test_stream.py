"""A stream gives the rows slice by slice, and the error of a thread to the caller."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from simindex.methods.stream import Stream
from simindex.storage.tables.table import sort_table


def test_slices_cover_the_rows_in_order() -> None:
    """One thread looks at a chunk at a time; several at slices of it."""
    table = sort_table(
        "rows", np.zeros((1001, 2), np.uint64), np.zeros(1001, np.uint64), None, horizon=0
    )
    for threads, most in ((1, 100), (3, 34)):
        stream = Stream(chunk_bytes=1600, threads=threads)
        slices = list(stream.over(table, lambda start, stop: (start, stop)))
        assert slices[0][0] == 0 and slices[-1][1] == 1001
        assert all(one[1] == following[0] for one, following in pairwise(slices))
        assert max(stop - start for start, stop in slices) == most


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_thread_is_the_callers(threads: int) -> None:
    """And the pass is over."""
    table = sort_table(
        "rows", np.zeros((100, 1), np.uint64), np.zeros(100, np.uint64), None, horizon=0
    )

    def look(start: int, stop: int) -> int:
        if start:
            raise KeyboardInterrupt
        return stop

    given = Stream(chunk_bytes=80, threads=threads).over(table, look)
    assert next(given) > 0
    with pytest.raises(KeyboardInterrupt):
        list(given)
