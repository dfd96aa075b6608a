"""What a search for the nearest documents promises, by scan and by slice lists, on hard indexes.

The indexes are those of the method contract, with slice lists: several segments, pending rows,
deleted rows, names of many rows, equal fingerprints, families of near-duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import oracle
import pytest
from contract import ROWS, Case, fill, opened_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import ClosedIndex, InvalidBatch, InvalidOption
from simindex.nearest_plan import TopTablePlan

NO_NEIGHBOUR = 2**64 - 1

KINDS = (
    ("uniform", 64, False),
    ("hot", 64, "str"),
    ("skewed", 128, False),
    ("skewed", 256, "str"),
    ("hot", 256, False),
    ("skewed", 1024, False),
    ("uniform", 4096, "str"),
)
"""(distribution, bits, keys) of the indexes."""


@pytest.fixture(
    scope="module", params=KINDS,
    ids=lambda kind: f"{kind[0]}-{kind[1]}-{'keys' if kind[2] else 'ids'}",
)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    path = tmp_path_factory.mktemp("top") / "pages.sim"
    yield from opened_case(path, *request.param, structures=("psm", "issl"))


def nearest(case: Case, queries: oracle.U64, k: int) -> tuple[list[list[int]], list[list[Any]]]:
    """The truth: distances and names of the k nearest documents; names of equal ones sorted."""
    names = [row.name for row in case.model.rows]
    stored = np.array([row.words for row in case.model.rows], dtype=np.uint64)
    apart = oracle.distances(stored, queries)
    distances, found = [], []
    for row in apart:
        least: dict[Any, int] = {}
        for name, distance in zip(names, row.tolist(), strict=True):
            least[name] = min(distance, least.get(name, distance))
        order = sorted(least, key=lambda name: (least[name], number_of(case, name)))[:k]
        distances.append([least[name] for name in order])
        found.append(order)
    return distances, found


def number_of(case: Case, name: Any) -> int:
    """The id that a name has in the index."""
    if case.index.options.keys is False:
        return int(name)
    raw = name if isinstance(name, bytes) else name.encode()
    return int(mmh3.hash64(raw, signed=False)[0])


def assert_nearest(case: Case, found: simindex.TopMatches, queries: oracle.U64, k: int) -> None:
    """Ids, distances, order, empty places and keys are those of the oracle."""
    bits = 64 * queries.shape[1]
    distances, names = nearest(case, queries, k)
    assert found.ids.shape == found.distances.shape == (len(queries), k)
    assert (found.ids.dtype, found.distances.dtype) == (np.uint64, np.uint16)
    keys = found.keys()
    for place, (far, named) in enumerate(zip(distances, names, strict=True)):
        empty = k - len(far)
        assert found.distances[place].tolist() == far + [bits + 1] * empty
        numbers = [number_of(case, name) for name in named]
        assert found.ids[place].tolist() == numbers + [NO_NEIGHBOUR] * empty
        assert keys is None or keys[place] == named
    assert (keys is None) == (case.index.options.keys is False)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 10, 100])
def test_scan_finds_the_nearest_documents(case: Case, k: int, threads: int) -> None:
    found = case.index.top(case.batch(), k=k, method="scan", threads=threads)
    assert_nearest(case, found, case.queries, k)
    assert found.stats.exact and found.stats.guarantee == "exact" and found.stats.recall == 1.0
    assert (found.stats.method, found.stats.lists) == ("scan", 0)


@pytest.mark.parametrize(("max_error", "threads"), [(2, 1), (8, 2), (8, 3)])
def test_slice_lists_find_the_same_once_every_row_is_compared(
    case: Case, max_error: int, threads: int
) -> None:
    queries = case.queries[::9]
    found = case.index.top(
        queries, k=10, method="issl", max_error=max_error, rerank=10 * ROWS, threads=threads
    )
    assert_nearest(case, found, queries, 10)
    assert found.stats.exact and found.stats.guarantee == "exact"
    assert found.stats.method == "issl+scan"


@pytest.mark.parametrize("max_error", [0, 1, 2, 5])
def test_fewer_lists_find_what_their_scores_say(case: Case, max_error: int) -> None:
    """As [ISSL] section 2 scores, segment by segment; pending rows are compared in full."""
    queries = case.queries[::9]
    for rerank in (10, 40):
        found = case.index.top(
            queries, k=10, method="issl", max_error=max_error, rerank=rerank, threads=2
        )
        assert found.stats.recall is None and not found.stats.exact
        assert "not measured" in found.stats.guarantee
        assert (found.stats.max_error, found.stats.rerank) == (max_error, rerank)
        expected = scored_nearest(case, queries, 10, max_error, rerank)
        bits = 64 * queries.shape[1]
        for place, near in enumerate(expected):
            empty = 10 - len(near)
            assert found.distances[place].tolist() == [d for d, _ in near] + [bits + 1] * empty
            assert found.ids[place].tolist() == [i for _, i in near] + [NO_NEIGHBOUR] * empty


def scored_nearest(
    case: Case, queries: oracle.U64, k: int, max_error: int, rerank: int
) -> list[list[tuple[int, int]]]:
    """(distance, id) of the k nearest documents among the rows of highest score of each segment."""
    width = 8 if queries.shape[1] == 1 else 16
    snapshot = case.index._current()
    least: list[dict[int, int]] = [{} for _ in queries]
    for table in snapshot.tables:
        rows, ids = np.asarray(table.fingerprints), np.asarray(table.ids)
        numbers = np.arange(len(rows))
        alive = snapshot.tombstones.alive(table, 0, len(rows))
        live = numbers if alive is None else alive
        far = oracle.distances(rows, queries)
        for place, query in enumerate(queries):
            chosen = live
            if table.slices is not None:
                differing = (rows ^ query).astype(">u8").view(f">u{width // 8}")
                errors = np.bitwise_count(differing).astype(np.int64)
                score = np.where(errors <= max_error, width - errors, 0).sum(axis=1)
                listed = live[(errors[live] <= max_error).any(axis=1)]
                chosen = listed[np.lexsort((listed, -score[listed]))][:rerank]
            for row in chosen.tolist():
                name, distance = int(ids[row]), int(far[place, row])
                least[place][name] = min(distance, least[place].get(name, distance))
    return [
        sorted((distance, name) for name, distance in found.items())[:k] for found in least
    ]
