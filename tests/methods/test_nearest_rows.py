"""The nearest rows of a pass, whatever chunks they come in."""

from __future__ import annotations

import numpy as np
import pytest

from simindex.methods.base import Found, joined, take
from simindex.methods.nearest_rows import NearestRows


def some_found(rng: np.random.Generator, rows: int, queries: int) -> Found:
    """Matches whose distances and ids repeat, of rows in order."""
    return Found(
        rng.integers(0, queries, rows), np.arange(rows, dtype=np.uint32),
        rng.integers(0, 3, rows).astype(np.uint16), rng.integers(0, 4, rows).astype(np.uint64),
        probes=5, compared=7,
    )


@pytest.mark.parametrize("chunks", [1, 7])
def test_the_nearest_of_the_lowest_id_that_came_first_stays(
    rng: np.random.Generator, chunks: int
) -> None:
    every = some_found(rng, 500, 20)
    nearest = NearestRows(21)
    for places in np.array_split(np.arange(500), chunks):
        nearest.add(take(every, rng.permutation(places)))
    found = nearest.found()
    assert found.query.tolist() == list(range(20))
    assert (found.probes, found.compared) == (5 * chunks, 7 * chunks)
    columns = (every.query, every.distance, every.id, every.row)
    best = {match[0]: match for match in sorted(zip(*columns, strict=True), reverse=True)}
    assert list(zip(found.query, found.distance, found.id, found.row, strict=True)) == [
        best[query] for query in range(20)
    ]


def test_nothing_is_found_without_rows() -> None:
    nearest = NearestRows(3)
    nearest.add(joined([]))
    assert [len(column) for column in nearest.found()[:4]] == [0, 0, 0, 0]
