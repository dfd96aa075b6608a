"""What a search for the nearest documents promises, by scan and by slice lists, on hard indexes.

The indexes are those of the method contract, with slice lists: several segments, pending rows,
deleted rows, names of many rows, equal fingerprints, families of near-duplicates.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from contract import ROWS, Case, MethodContract, fill, indexes, opened_case
from siphash import key_id

import simindex
from simindex import IndexOptions
from simindex.errors import ClosedIndex, CorruptFile, InvalidBatch, InvalidOption
from simindex.planning.machine import Machine

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
QUICK = (("hot", 64, "str"), ("hot", 256, False), ("uniform", 4096, "str"))


@pytest.fixture(scope="module", params=indexes(KINDS, QUICK))
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    path = tmp_path_factory.mktemp("top") / "pages.sim"
    yield from opened_case(path, *request.param, structures=("psm", "issl"))


Ranked = list[list[tuple[int, Any]]]
"""Of each query (distance, name) of every document, the nearest first."""


def nearest(case: Case, queries: oracle.U64, k: int) -> tuple[list[list[int]], list[list[Any]]]:
    """The truth: distances and names of the k nearest documents; names of equal ones sorted."""
    asked = queries.tobytes()
    if asked not in case.kept:
        case.kept[asked] = ranked(case, queries)
    documents = [order[:k] for order in case.kept[asked]]
    distances = [[distance for distance, _ in order] for order in documents]
    return distances, [[name for _, name in order] for order in documents]


def ranked(case: Case, queries: oracle.U64) -> Ranked:
    """All documents of the model for each query; those of equal distance by their numbers."""
    names = [row.name for row in case.model.rows]
    numbers = {name: number_of(case, name) for name in set(names)}
    stored = np.array([row.words for row in case.model.rows], dtype=np.uint64)
    apart = oracle.distances(stored, queries)
    found = []
    for row in apart:
        least: dict[Any, int] = {}
        for name, distance in zip(names, row.tolist(), strict=True):
            least[name] = min(distance, least.get(name, distance))
        order = sorted(least, key=lambda name: (least[name], numbers[name]))
        found.append([(least[name], name) for name in order])
    return found


def number_of(case: Case, name: Any) -> int:
    """The id that a name has in the index."""
    if not case.index.options.keyed:
        return int(name)
    return key_id(name, case.index.options.key_secret)


def assert_nearest(case: Case, found: simindex.TopMatches, queries: oracle.U64, k: int) -> None:
    """Ids, distances, order, empty places and keys are those of the oracle."""
    bits = 64 * queries.shape[1]
    distances, names = nearest(case, queries, k)
    assert found.id.shape == found.distance.shape == (len(queries), k)
    assert (found.id.dtype, found.distance.dtype) == (np.uint64, np.uint16)
    keys = found.keys()
    for place, (far, named) in enumerate(zip(distances, names, strict=True)):
        empty = k - len(far)
        assert found.distance[place].tolist() == far + [bits + 1] * empty
        numbers = [number_of(case, name) for name in named]
        assert found.id[place].tolist() == numbers + [NO_NEIGHBOUR] * empty
        assert keys is None or keys[place] == named
    assert (keys is None) is not case.index.options.keyed


@pytest.mark.parametrize(("k", "threads"), [
    (10, 1),
    *(pytest.param(*some, marks=pytest.mark.slow) for some in [
        (1, 1), (100, 1), (1, 2), (10, 3), (100, 2)
    ]),
])
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
            assert found.distance[place].tolist() == [d for d, _ in near] + [bits + 1] * empty
            assert found.id[place].tolist() == [i for _, i in near] + [NO_NEIGHBOUR] * empty


def scored_nearest(
    case: Case, queries: oracle.U64, k: int, max_error: int, rerank: int
) -> list[list[tuple[int, int]]]:
    """(distance, id) of the k nearest documents among the rows of highest score of each segment.

    Rows that stand in none of the lists are not candidates.
    """
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


@pytest.mark.parametrize("method", ["scan", "issl"])
def test_one_query_gives_what_it_gives_in_a_batch(case: Case, method: str) -> None:
    together = case.index.top(case.batch(), method=method)
    for query in (0, 7, 61, 180):
        alone = case.index.top(case.queries[query : query + 1], method=method)
        assert alone.id.tolist() == together.id[query : query + 1].tolist()
        assert alone.distance.tolist() == together.distance[query : query + 1].tolist()


def test_every_document_is_found_where_all_are_asked_for(case: Case) -> None:
    """Of rows with one id only the nearest counts, so that places stay empty."""
    rows, documents = len(case.index), len({row.name for row in case.model.rows})
    assert documents < rows
    found = case.index.top(case.queries[:2], k=rows, method="scan")
    assert_nearest(case, found, case.queries[:2], rows)
    assert found.found.tolist() == [documents] * 2
    assert len(found) == 2 * documents


def test_matches_are_those_of_the_columns(case: Case) -> None:
    found = case.index.top(case.queries[:3], k=4, method="scan")
    keys = found.keys() or [[None] * 4] * 3
    assert [(m.query, m.id, m.distance, m.key) for m in found] == [
        (q, int(found.id[q, at]), int(found.distance[q, at]), keys[q][at])
        for q in range(3) for at in range(4)
    ]
    assert repr(found) == "<TopMatches 3 x 4 by scan, exact>"
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert list(again) == list(found) and again.stats == found.stats


def test_no_queries_have_no_neighbours(case: Case) -> None:
    none = case.queries[:0]
    found = case.index.top(none, k=ROWS * 2)
    assert found.id.shape == (0, ROWS * 2)
    assert list(found) == [] and len(found) == 0
    assert found.keys() in (None, [])


class TestIsslThreshold(MethodContract):
    """All rows within h by slice lists are exact at any width."""

    method = "issl"
    structures = ("psm", "issl")

    def test_slice_lists_are_what_answers(self, case: Case) -> None:
        found = self.ask(case, case.queries, h=3)
        assert "issl" in found.stats.method.split("+")
        assert found.stats.probes > 0

    def test_wide_radii_are_exact_too(self, case: Case) -> None:
        bits = 64 * case.queries.shape[1]
        queries = case.queries[::20]
        for h in (bits // 8, bits // 3, bits):
            expected = case.index.query(queries, h=h, method="scan")
            found = case.index.query(queries, h=h, method="issl")
            for column in ("query", "id", "distance"):
                assert getattr(found, column).tolist() == getattr(expected, column).tolist()

    def test_a_memory_limit_has_rows_compared(self, case: Case) -> None:
        found = case.index.query(case.queries, h=3, method="issl", memory_limit=1 << 27)
        expected = case.index.query(case.queries, h=3, method="issl")
        assert found.stats.method == "scan"
        assert list(found) == list(expected)

    def test_memory_too_small_for_the_lists_is_refused_by_name(self, case: Case) -> None:
        with pytest.raises(InvalidOption, match="memory=1") as caught:
            case.index.query(case.queries, h=3, method="issl", memory=1)
        least = caught.value.data["expected"]
        found = case.index.query(case.queries, h=3, method="issl", memory=least)
        assert "issl" in found.stats.method


QUICK_LISTS = replace(
    Machine(), issl_list_ns=1e-3, issl_scored_ns=1e-3, issl_cleared_ns=1e-3, issl_reranked_ns=1e-3
)
QUICK_SCANS = replace(Machine(), top_near_ns=1e-6, top_alone_ns=1e-6)


def test_auto_takes_what_the_model_finds_cheaper(case: Case) -> None:
    answerer, snapshot = case.index._answerer, case.index._current()
    usual = answerer.machine(snapshot)
    try:
        answerer.go_by(QUICK_LISTS, snapshot)
        if case.queries.shape[1] > 1:  # else most rows are compared, and that costs, too
            assert case.index.top(case.queries).stats.method == "issl+scan"
            told = case.index.explain_top(case.queries[:1])
            assert told.segments[0].method == "issl" and told.segments[0].other == "scan"
            assert told.segments[0].expected_s < (told.segments[0].other_s or 0)
            assert told.segments[-1].other is None  # pending rows have no lists
        answerer.go_by(QUICK_SCANS, snapshot)
        found = case.index.top(case.queries)
        assert found.stats.method == "scan" and found.stats.exact
        told = case.index.explain_top(case.queries[:1])
        assert told.segments[0].method == "scan" and told.segments[0].other == "issl"
    finally:
        answerer.go_by(usual, snapshot)


@pytest.mark.parametrize("recall", [0.3, 0.9, 0.99])
def test_a_recall_is_reached_on_rows_of_the_index(case: Case, recall: float) -> None:
    """By the least max_error that does; other rows than those measured must agree with it."""
    found = case.index.top(case.queries, method="issl", max_error="auto", recall=recall)
    stats = found.stats
    assert stats.recall is not None and stats.recall >= recall
    if stats.exact:
        assert stats.guarantee == "exact"
        return
    assert f"{stats.recall:.4f}" in stats.guarantee and "measured on" in stats.guarantee
    assert f"{recall:g} asked" in stats.guarantee
    stored = np.array([row.words for row in case.model.rows], dtype=np.uint64)
    own = [number_of(case, row.name) for row in case.model.rows]
    some = np.random.default_rng(4).choice(len(stored), 150, replace=False)
    truth = case.index.top(stored[some], k=11, method="scan")
    got = case.index.top(stored[some], k=11, method="issl", max_error="auto", recall=recall)
    shares = []
    for place, row in enumerate(some.tolist()):
        true = truth.distance[place][truth.id[place] != own[row]][:10]
        near = got.distance[place][got.id[place] != own[row]][:10]
        shares.append(sum(near <= true[-1]) / 10)
    assert np.mean(shares) >= recall - 0.1  # 150 other rows: five times the standard error


def test_recall_of_one_is_exact(case: Case) -> None:
    found = case.index.top(case.queries, max_error="auto", recall=1.0)
    assert_nearest(case, found, case.queries, 10)
    assert found.stats.exact and found.stats.method == "scan"


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"k": 0}, "k"), ({"k": -1}, "k"), ({"k": 2.0}, "k"), ({"k": True}, "k"),
        ({"k": "3"}, "k"), ({"k": None}, "k"), ({"k": 10**6}, "k"), ({"k": 2**70}, "k"),
        ({"max_error": -1}, "max_error"), ({"max_error": 17}, "max_error"),
        ({"max_error": "most"}, "max_error"), ({"max_error": 1.5}, "max_error"),
        ({"max_error": None}, "max_error"), ({"max_error": [1]}, "max_error"),
        ({"rerank": 9}, "rerank"), ({"rerank": 0}, "rerank"), ({"rerank": "x"}, "rerank"),
        ({"method": "psm"}, "method"), ({"method": "bphs"}, "method"), ({"method": 3}, "method"),
        ({"method": np.array(["scan", "issl"])}, "method"), ({"k": np.array([3, 4])}, "k"),
        ({"recall": 0, "max_error": "auto"}, "recall"),
        ({"recall": 1.1, "max_error": "auto"}, "recall"),
        ({"recall": float("nan"), "max_error": "auto"}, "recall"),
        ({"recall": "x", "max_error": "auto"}, "recall"),
        ({"recall": np.str_("x"), "max_error": "auto"}, "recall"),
        ({"recall": 10**400, "max_error": "auto"}, "recall"),
        ({"recall": np.array([0.5, 0.9]), "max_error": "auto"}, "recall"),
        ({"recall": np.complex128(1), "max_error": "auto"}, "recall"),
        ({"recall": 0.9}, "recall"), ({"recall": 0.9, "max_error": 1}, "recall"),
        ({"recall": 1, "max_error": "auto", "method": "issl"}, "recall"),
        ({"threads": 0}, "threads"),
    ],
)
def test_options_out_of_range_are_refused(case: Case, given: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        case.index.top(case.queries[:2], **given)
    assert caught.value.data["option"] == option
    assert option in str(caught.value)


def test_numbers_of_numpy_are_numbers(case: Case) -> None:
    found = case.index.top(
        case.queries[:2], k=np.int64(3), max_error=np.uint8(1), rerank=np.int32(5), method="issl"
    )
    assert found.id.shape == (2, 3)
    assert (found.stats.max_error, found.stats.rerank) == (1, 5)


def test_arrays_of_one_number_are_numbers(case: Case) -> None:
    """They have no hash to be remembered by."""
    found = case.index.top(
        case.queries[:2], k=np.array(3), max_error=np.array(1), rerank=np.array(5), method="issl"
    )
    assert found.id.shape == (2, 3)
    assert (found.stats.max_error, found.stats.rerank) == (1, 5)
    found = case.index.top(case.queries[:2], max_error="auto", recall=np.array(0.5))
    assert found.id.shape == (2, 10)


def test_another_width_is_refused(case: Case) -> None:
    wider = oracle.uniform(np.random.default_rng(1), 2, case.queries.shape[1] + 1)
    with pytest.raises(InvalidBatch, match="wide"):
        case.index.top(wider)


@pytest.mark.parametrize("bits", [0, 32, 100, 4097, 4160])
def test_widths_are_multiples_of_64_up_to_4096(bits: int) -> None:
    with pytest.raises(InvalidOption, match="multiple of 64"):
        IndexOptions(bits=bits, structures=("psm", "issl"))


# -- indexes that change ---------------------------------------------------------------------------


def opened(path: Path, structures: tuple[str, ...] = ("psm", "issl")) -> simindex.Index:
    options = IndexOptions(bits=128, structures=structures, batch_rows=64, min_merge=0)
    return simindex.open(path, "n", options=options)


ROWS_OF_128 = oracle.skewed(np.random.default_rng(6), 300, 2, templates=20)


@pytest.mark.parametrize("method", ["auto", "scan"])
def test_an_empty_index_has_no_nearest(index_path: Path, method: str) -> None:
    with opened(index_path) as index:
        with pytest.raises(InvalidOption, match="0 rows of the index: append rows first"):
            index.top(ROWS_OF_128[:1], k=1, method=method)
        assert index.top(ROWS_OF_128[:0], method=method).id.shape == (0, 10)
        index.append(ROWS_OF_128[:5], ids=np.arange(5))
        index.commit()
        index.delete(ids=np.arange(5))
        index.commit()
        with pytest.raises(InvalidOption, match="0 rows"):
            index.top(ROWS_OF_128[:1], k=1, method=method)


def test_k_is_bounded_by_live_rows(index_path: Path) -> None:
    with opened(index_path) as index:
        index.append(ROWS_OF_128, ids=np.arange(300))
        index.commit()
        index.delete(ids=np.arange(100))
        index.commit()
        assert index.top(ROWS_OF_128[:1], k=200).found.tolist() == [200]
        with pytest.raises(InvalidOption, match="at most 200"):
            index.top(ROWS_OF_128[:1], k=201)


def test_slice_lists_must_be_there_to_be_asked_for(index_path: Path) -> None:
    with opened(index_path, ("psm",)) as index:
        index.append(ROWS_OF_128, ids=np.arange(300))
        index.commit()
        for ask in (index.top, index.query):
            with pytest.raises(InvalidOption, match="compact --structures"):
                ask(ROWS_OF_128[:1], method="issl")
        assert index.top(ROWS_OF_128[:1], max_error="auto").stats.method == "scan"
        index.compact(structures=("psm", "issl"))
        found = index.top(ROWS_OF_128[:1], method="issl", max_error=16, rerank=300)
        expected = index.top(ROWS_OF_128[:1], method="scan")
        assert found.id.tolist() == expected.id.tolist()
        assert "issl" in index.query(ROWS_OF_128[:1], method="issl").stats.method


@pytest.mark.parametrize(("width", "bits"), [(8, 128), (16, 64)])
def test_max_error_is_bounded_by_the_slices_of_the_index(
    index_path: Path, width: int, bits: int
) -> None:
    """Also before any row is in a segment, whose slices they will be."""
    rows = oracle.uniform(np.random.default_rng(2), 80, bits // 64)
    options = IndexOptions(bits=bits, structures=("psm", f"issl:w={width}"), batch_rows=64)
    with simindex.open(index_path, "n", options=options) as index:
        for some in (rows[:1], rows[1:]):
            index.append(some)
            index.commit()
            assert index.top(rows[:1], k=1, max_error=width).found.tolist() == [1]
            with pytest.raises(InvalidOption, match=f"from 0 to {width},"):
                index.top(rows[:1], k=1, max_error=width + 1)
        assert index.stats().segments


def test_each_call_sees_one_commit(index_path: Path) -> None:
    with opened(index_path) as writer:
        writer.append(ROWS_OF_128[:100], ids=np.arange(100))
        writer.commit()
        pinned = simindex.open(index_path, refresh=False)
        following = simindex.open(index_path)
        query = ROWS_OF_128[:1]
        before = pinned.top(query, k=100)
        writer.delete(ids=[0])
        writer.append(query, ids=[777])
        assert following.top(query, k=1).id.tolist() == before.id[:, :1].tolist()
        writer.commit()
        writer.compact(full=True)
        assert following.top(query, k=1).id.tolist() == [[777]]
        assert 0 not in following.top(query, k=100).id
        assert pinned.top(query, k=100).id.tolist() == before.id.tolist()
        pinned.refresh()
        assert pinned.top(query, k=1).id.tolist() == [[777]]
        pinned.close()
        following.close()


def test_a_replaced_document_is_found_where_it_is_now(index_path: Path) -> None:
    with opened(index_path) as index:
        index.append(ROWS_OF_128[:200], ids=np.arange(200))
        index.commit()
        index.replace(simindex.Batch(~ROWS_OF_128[:1], ids=[0]))
        index.commit()
        assert index.top(~ROWS_OF_128[:1], k=1).id.tolist() == [[0]]
        assert 0 not in index.top(ROWS_OF_128[:1], k=100).id


def test_a_document_of_several_segments_counts_once(index_path: Path) -> None:
    """At its least distance, wherever its rows are."""
    rng = np.random.default_rng(3)
    query = ROWS_OF_128[:1]
    with opened(index_path) as index:
        for far in (9, 2, 30, 5):
            near = oracle.flip(rng, np.repeat(query, 70, axis=0), far)
            index.append(near, ids=np.full(70, 5))
            index.append(oracle.flip(rng, query, far + 1), ids=[far])
            index.commit()
        found = index.top(query, k=6, method="scan")
        assert list(zip(found.id[0].tolist(), found.distance[0].tolist(), strict=True)) == [
            (5, 2), (2, 3), (9, 10), (30, 31), (NO_NEIGHBOUR, 129), (NO_NEIGHBOUR, 129)
        ]


def test_the_largest_id_is_no_empty_place(index_path: Path) -> None:
    with opened(index_path) as index:
        for start in (0, 100, 200):
            index.append(ROWS_OF_128[start : start + 99], ids=np.full(99, NO_NEIGHBOUR))
            index.commit()
        found = index.top(ROWS_OF_128[:1], k=3)
        assert found.distance.tolist() == [[0, 129, 129]]
        assert found.id.tolist() == [[NO_NEIGHBOUR] * 3]
        assert [(match.id, match.distance) for match in found] == [(NO_NEIGHBOUR, 0)]


@pytest.mark.parametrize("method", ["scan", "issl"])
def test_equal_rows_come_in_order_of_their_ids(index_path: Path, method: str) -> None:
    rng = np.random.default_rng(8)
    ids = rng.permutation(3000).astype(np.uint64)
    with opened(index_path) as index:
        for start in range(0, 3000, 700):
            some = ids[start : start + 700]
            index.append(np.repeat(ROWS_OF_128[:1], len(some), axis=0), ids=some)
            index.commit()
        found = index.top(ROWS_OF_128[:1], k=20, method=method, rerank=3000)
        assert found.id.tolist() == [list(range(20))]
        index.delete(ids=np.arange(0, 3000, 2))
        index.commit()
        found = index.top(ROWS_OF_128[:1], k=20, method=method, rerank=3000)
        assert found.id.tolist() == [list(range(1, 41, 2))]


def test_masks_of_deleted_rows_are_kept_over_commits(index_path: Path) -> None:
    with opened(index_path) as index:
        index.append(ROWS_OF_128, ids=np.arange(300))
        index.commit()
        index.delete(ids=np.arange(0, 300, 2))
        index.commit()
        index.top(ROWS_OF_128[:1])
        snapshot = index._current()
        masks = [snapshot.dead(table) for table in snapshot.segments]
        assert sum(int(mask.sum()) for mask in masks if mask is not None) == 150
        index.append(ROWS_OF_128[:1], ids=[1000])
        index.commit()
        after = index._current()
        assert after is not snapshot
        assert all(after.dead(t) is m for t, m in zip(after.segments, masks, strict=True))
        assert after.dead(after.tables[-1]) is None
        index.delete(ids=[1])
        index.commit()
        last = index._current()
        assert last.live_rows == 150
        assert not any(last.dead(t) is m for t, m in zip(last.segments, masks, strict=True))


def test_closed_and_forked_handles_refuse(index_path: Path) -> None:
    with opened(index_path) as index:
        index.append(ROWS_OF_128, ids=np.arange(300))
    index = simindex.open(index_path)
    expected = index.top(ROWS_OF_128[:2]).id.tolist()
    pid = os.fork()
    if pid == 0:
        try:
            index.top(ROWS_OF_128[:2])
        except ClosedIndex:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert index.top(ROWS_OF_128[:2]).id.tolist() == expected
    index.close()
    for ask in (index.top, index.explain_top):
        with pytest.raises(ClosedIndex):
            ask(ROWS_OF_128[:2])


def test_damaged_lists_are_told_and_the_rest_still_answers(index_path: Path) -> None:
    """A row number out of range is never followed."""
    options = IndexOptions(bits=128, structures=("psm", "issl"), batch_rows=2000)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(ROWS_OF_128, ids=np.arange(300))
    (path,) = (index_path / "segments").glob("*.issl")
    data = bytearray(path.read_bytes())
    with simindex.open(index_path) as index:
        numbers = index._current().segments[0].slices.numbers
        place = data.find(np.ascontiguousarray(numbers[0]).tobytes())
        assert place > 0
    data[place : place + 4 * numbers.size] = b"\xff" * (4 * numbers.size)
    path.write_bytes(data)
    with simindex.open(index_path) as index:
        with pytest.raises(CorruptFile) as caught:
            index.top(ROWS_OF_128, method="issl", max_error=0, rerank=10)
        assert path.name in str(caught.value)
        assert index.top(ROWS_OF_128, method="scan").distance[:, 0].tolist() == [0] * 300


def test_compaction_changes_no_exact_answer(index_path: Path) -> None:
    model, fingerprints = fill(index_path, "skewed", 256, False, ("psm", "issl"))
    queries = oracle.flip(np.random.default_rng(5), fingerprints[:40], 2)
    with simindex.open(index_path, "w") as index:
        before = index.top(queries, method="scan")
        index.compact(full=True)
        after = index.top(queries, method="issl", max_error=16, rerank=ROWS)
        assert after.stats.method == "issl" and after.stats.exact
        assert after.id.tolist() == before.id.tolist()
        assert_nearest(Case(index, model, queries, np.empty(0)), after, queries, 10)
