"""`tune` took any distance, `rows` gave empty batches, and an empty index was false."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex


@pytest.mark.parametrize("h", [99, 65, -1, 1.5, True, "3"])
def test_tune_refuses_the_distances_that_query_refuses(index_path: Path, h: Any) -> None:
    """Nothing is measured first, so the error comes at once."""
    with simindex.open(index_path, "n") as index:
        index.append(np.arange(3, dtype=np.uint64))
        index.commit()
        with pytest.raises(simindex.InvalidOption) as asked:
            index.query(np.zeros(1, np.uint64), h=h)
        with pytest.raises(simindex.InvalidOption) as tuned:
            index.tune(h=h)
        assert str(tuned.value) == str(asked.value)
        assert tuned.value.data == asked.value.data


@pytest.mark.parametrize("keyed", [False, True])
def test_rows_gives_no_empty_batch(index_path: Path, keyed: bool) -> None:
    """Neither where all rows of a chunk are deleted, nor of an index without rows."""
    options = simindex.IndexOptions(keys=keyed)
    with simindex.open(index_path, "n", options=options) as index:
        assert list(index.rows()) == []
        rows, names = np.arange(10, dtype=np.uint64), range(10)
        named: dict[str, Any] = {"keys": [f"k{i}" for i in names]} if keyed else {"ids": names}
        index.append(rows, **named)
        index.commit()
        dead: Any = range(4)
        index.delete(**({"keys": [f"k{i}" for i in dead]} if keyed else {"ids": dead}))
        index.commit()
        assert {len(batch) for batch in index.rows(chunk_rows=2)} <= {1, 2}
        assert np.concatenate([batch.rows for batch in index.rows()]).ravel().tolist() == [
            4, 5, 6, 7, 8, 9
        ]  # fmt: skip
        index.delete(**named)
        index.commit()
        assert list(index.rows()) == []
        assert index.check() == []


def test_an_empty_index_is_true(index_path: Path) -> None:
    """`if index:` asks whether there is one, as of a file; also once it is closed."""
    with simindex.open(index_path, "n") as index:
        assert len(index) == 0
        assert index
    assert index
