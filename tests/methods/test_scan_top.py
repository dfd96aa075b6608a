"""The scan's top K of a table against brute force."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

from simindex.methods import scan
from simindex.methods.base import TopTablePlan
from simindex.storage.tables.table import sort_table

SCAN = TopTablePlan("scan", True, 0.0)


@pytest.mark.parametrize("words", [1, 2, 16, 64])
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.slow
def test_the_nearest_documents_of_a_table(words: int, deleted: bool) -> None:
    rng = np.random.default_rng(words)
    rows = oracle.skewed(rng, 900, words, templates=40)
    table = sort_table("t", rows, rng.integers(0, 300, 900).astype(np.uint64), None, horizon=0)
    queries = oracle.flip(rng, rows[rng.integers(0, 900, 30)], 5)
    dead = (rng.random(900) < 0.4).astype(np.uint8) if deleted else None
    found = scan.top(table, SCAN, queries, 8, dead, threads=2)
    distances = oracle.distances(table.fingerprints, queries)
    for q in range(30):
        best: dict[int, tuple[int, int]] = {}
        for row, name in enumerate(table.ids.tolist()):
            if dead is None or not dead[row]:
                best[name] = min(best.get(name, (10**6, 0)), (int(distances[q, row]), row))
        wanted = sorted((distance, name, row) for name, (distance, row) in best.items())[:8]
        assert wanted == list(
            zip(
                found.distance[q].tolist(), found.id[q].tolist(), found.row[q].tolist(),
                strict=True,
            )
        )
    live = 900 if dead is None else int((dead == 0).sum())
    assert (found.lists, found.compared) == (0, 30 * live)


def test_places_beyond_the_documents_stay_empty() -> None:
    table = sort_table("t", np.zeros((3, 2), np.uint64), np.zeros(3, np.uint64), None, horizon=0)
    found = scan.top(table, SCAN, np.zeros((1, 2), np.uint64), 3, None, threads=1)
    assert found.id.tolist() == [[0, 2**64 - 1, 2**64 - 1]]
    assert found.distance.tolist() == [[0, 129, 129]]
    assert found.row.tolist() == [[0, 2**32 - 1, 2**32 - 1]]
