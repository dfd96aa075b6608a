"""One deletion, of any id, made `first=True` collect every match of a hot text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.query import search

ROWS = 20_000
HOT = np.uint64(0x1234_5678_9ABC_DEF0)


@pytest.mark.parametrize("gone", [[10**9], [0], list(range(0, ROWS, 2)), list(range(ROWS))])
@pytest.mark.parametrize("limit", [None, 1 << 28])
def test_first_of_a_hot_text_is_a_live_row_and_few_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: list[int], limit: int | None
) -> None:
    most = 0
    looked = search.search_by

    def counted(*arguments: Any) -> Any:
        nonlocal most
        found = looked(*arguments)
        most = max(most, len(found.query))
        return found

    monkeypatch.setattr(search, "search_by", counted)
    with simindex.open(tmp_path / "hot.sim", "n") as index:
        index.append(np.full(ROWS, HOT), ids=np.arange(ROWS, dtype=np.uint64))
        index.commit()
        index.delete(ids=gone)
        index.commit()
        queries = np.full(400, HOT ^ np.uint64(1))
        found = index.query(queries, h=3, first=True, memory_limit=limit)
    live = ROWS - len([name for name in gone if name < ROWS])
    if live == 0:
        assert len(found) == 0
        return
    assert found.query.tolist() == list(range(400))
    assert not np.isin(found.id, np.array(gone, np.uint64)).any()
    bound = max(search.AGAIN * ROWS, 2 * search.MOST_AGAIN)
    assert most <= (bound if gone != [10**9] else 400)
