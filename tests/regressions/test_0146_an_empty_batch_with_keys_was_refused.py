"""A new index whose first batch had keys but no rows, as of texts without words, raised an error:
"this index has no keys". The first rows decide that, and there were none yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe, Skipped
from simindex.errors import InvalidBatch

EMPTY = np.zeros(0, np.uint64)
RECIPE = Recipe()
CALLS: dict[str, Callable[[simindex.Index], object]] = {
    "append": lambda index: index.append(EMPTY, keys=[]),
    "append of texts": lambda index: index.append(RECIPE.batch(["", "."], keys=["a", "b"])),
    "replace": lambda index: index.replace(RECIPE.batch(["", "."], keys=["a", "b"])),
    "ingest": lambda index: index.ingest(RECIPE.batch(["", "."], keys=[b"a", b"b"])),
    "ingest of no rows": lambda index: index.ingest(EMPTY, keys=[]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("keys", [["a"], [b"a"], None])
def test_an_empty_batch_leaves_the_kind_of_keys_open(
    tmp_path: Path, call: Callable[[simindex.Index], object], keys: list[str] | None
) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        assert len(call(index)) == 0  # type: ignore[arg-type]
        index.commit()
        call(index)
        batch = RECIPE.batch(["some words of a text"], keys=keys)
        assert len(index.append(batch)) == 1
        index.commit()
        assert len(index) == 1
        assert index.check() == []


def test_an_index_that_was_told_it_has_no_keys_refuses_them_in_an_empty_batch(
    tmp_path: Path,
) -> None:
    options = IndexOptions(keys=False)
    with (
        simindex.open(tmp_path / "i.sim", "n", options=options) as index,
        pytest.raises(InvalidBatch, match="has no keys"),
    ):
        index.append(Batch(EMPTY, keys=[]))


def test_an_index_whose_rows_came_without_keys_refuses_them_in_an_empty_batch(
    tmp_path: Path,
) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append([7])
        skipped = Batch(EMPTY, keys=[], skipped=[Skipped(0, "a", "empty")])
        for name in ("append", "ingest of no rows"):
            with pytest.raises(InvalidBatch, match="has no keys"):
                CALLS[name](index)
        with pytest.raises(InvalidBatch, match="has no keys"):
            index.replace(skipped)
        assert len(index.append([8])) == 1
        index.commit()
        assert len(index) == 2
