"""Kernels that return matches stop where there is no room for more of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oracle
import pytest

from simindex._kernels import _native
from simindex.bits.design import BlockDesign
from simindex.methods import bphs, issl
from simindex.methods.base import Asked, TablePlan
from simindex.storage.tables import permuted
from simindex.storage.tables.sorted_rows import SortedRows, header_bits
from simindex.storage.tables.table import Table, sort_table

H = 2
ROWS, EQUAL = 3000, 500
"""Rows, the first of which are equal."""

NONE = np.zeros(1, np.uint64)


def table_of(rng: np.random.Generator, words: int) -> Table:
    rows = oracle.uniform(rng, ROWS, words)
    rows[:EQUAL] = rows[0]
    return sort_table("t", rows, np.arange(ROWS, dtype=np.uint64), None, horizon=0)


def own_headers(table: Table, queries: Any, room: Any) -> int:
    return len(_native.probe_checked(
        table.checked, table.header_bits, queries, NONE, H, False, room=room
    )[0])


def scanned(table: Table, queries: Any, room: Any) -> int:
    return len(_native.scan(table.fingerprints, queries, H, False, room=room)[0])


def permuted_tables(sweep: int) -> Callable[[Table, Any, Any], int]:
    def search(table: Table, queries: Any, room: Any) -> int:
        design = BlockDesign.flat(3, 1, bits=64 * queries.shape[1])
        tables = [bphs.checked_table(table, design, 0, 0)]
        for number in (1, 2):
            rows = permuted.permuted_rows(table.fingerprints, design, number)
            bits = min(design.header_bits[number], header_bits(len(rows)))
            one = SortedRows(rows, header_bits=bits)
            tables.append(bphs.checked_table(one, design, number, 0))
        return len(_native.bphs(
            table.checked, table.header_bits, tables, queries, H, False, sweep, room=room
        )[0])

    return search


KERNELS: dict[str, Callable[[Table, Any, Any], int]] = {
    "probe": own_headers, "scan": scanned, "bphs": permuted_tables(0),
    "bphs swept": permuted_tables(1),
}


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_search_takes_room_for_its_matches_and_no_more(
    kernel: str, words: int, rng: np.random.Generator
) -> None:
    """Some more than the matches is enough, since those of a table are held twice for a while. With
    less than them it stops, and gives back all that it took."""
    search = KERNELS[kernel]
    table = table_of(rng, words)
    row = table.fingerprints[table.ids == 0]
    queries = np.concatenate([row, row, table.fingerprints[-20:]])
    free = search(table, queries, None)
    assert free >= 2 * EQUAL
    room = _native.Room(3 * free)
    assert search(table, queries, room) == free
    assert room.left == 2 * free
    with pytest.raises(_native.NoRoom):
        search(table, queries, _native.Room(free - 1))
    room.take(free + free // 2)
    with pytest.raises(_native.NoRoom):
        search(table, queries, room)
    assert room.left == free - free // 2


def test_slice_lists_take_room(rng: np.random.Generator, tmp_path: Any) -> None:
    import simindex

    rows = oracle.uniform(rng, ROWS, 2)
    rows[:EQUAL] = rows[0]
    options = simindex.IndexOptions(bits=128, structures=("psm", "issl"), batch_rows=1024)
    with simindex.open(tmp_path / "x.sim", "n", options=options) as index:
        index.append(rows)
        index.commit()
        index.compact(full=True)
    with simindex.open(tmp_path / "x.sim") as index:
        (table,) = index._current().tables
        plan = TablePlan("issl", 0, 0, exact=True, nanoseconds=0.0)
        room = _native.Room(EQUAL)
        assert len(issl.within(table, plan, Asked(rows[:1], 0, room=room)).query) == EQUAL
        assert room.left == 0
        with pytest.raises(_native.NoRoom):
            issl.within(table, plan, Asked(rows[:1], 0, room=room))


def test_room_is_taken_whole_or_not_at_all() -> None:
    room = _native.Room(10)
    room.take(4)
    with pytest.raises(MemoryError, match="no room"):
        room.take(7)
    assert room.left == 6
    room.give(2)
    room.take(8)
    assert room.left == 0
