"""Batch mode: tables over the queries, stored rows streamed past; and the scan's pass."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.bits.design import BlockDesign, designs_for
from simindex.errors import InvalidOption
from simindex.methods import query_tables, scan
from simindex.methods.base import Asked, Found, TablePlan
from simindex.methods.stream import Stream
from simindex.planning.costs import query_design, query_tables_ns
from simindex.planning.machine import Machine
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.row_names import Names
from simindex.storage.tables.table import Table, sort_table
from simindex.storage.tables.tombstones import from_deletions

WIDTHS = (64, 128, 320, 4096)

SCAN = TablePlan("scan", 0, 0, True, 0.0)


def family(
    rng: np.random.Generator, originals: oracle.U64, rows: int, errors: int
) -> oracle.U64:
    """Copies of some fingerprints with up to `errors` bits wrong, many of them equal."""
    some = originals[rng.integers(0, len(originals), rows)]
    return oracle.flip(rng, some, rng.integers(0, errors + 1, rows))


def case(
    seed: int, bits: int, rows: int, queries: int, originals: int, errors: int = 3
) -> tuple[Table, oracle.U64]:
    """A table of families, with ids that repeat, and queries of the same families."""
    rng = np.random.default_rng(seed)
    texts = oracle.uniform(rng, originals, bits // 64)
    stored = family(rng, texts, rows, errors)
    ids = rng.integers(0, max(1, rows // 2), rows).astype(np.uint64)
    return (
        sort_table("stored", stored, ids, None, horizon=0), family(rng, texts, queries, errors)
    )


def columns(found: Found) -> list[tuple[int, ...]]:
    """(query, row, distance, id) in order of query and row."""
    return sorted(
        zip(*(column.tolist() for column in found[:4]), strict=True), key=lambda hit: hit[:2]
    )


def expected(table: Table, queries: oracle.U64, h: int, dead: Any = ()) -> list[tuple[int, ...]]:
    """The same by brute force."""
    return [
        (query, row, distance, int(table.ids[row]))
        for query, row, distance in oracle.matches(table.fingerprints, queries, h).tolist()
        if int(table.ids[row]) not in dead
    ]


def best(hits: list[tuple[int, ...]], key: Any) -> list[tuple[int, ...]]:
    """Of each query the hit that comes first."""
    chosen: dict[int, tuple[int, ...]] = {}
    for hit in sorted(hits, key=key, reverse=True):
        chosen[hit[0]] = hit
    return [chosen[query] for query in sorted(chosen)]


def nearest(hits: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return best(hits, lambda hit: (hit[2], hit[3], hit[1]))


@settings(max_examples=75, deadline=None)
@given(data=st.data())
@pytest.mark.slow
def test_every_near_row_is_found_once(data: st.DataObject) -> None:
    """By any design, chunk, window and number of threads; and with `first`, the nearest one."""
    bits = data.draw(st.sampled_from(WIDTHS))
    h = data.draw(st.sampled_from((0, 1, 3, 6)))
    rows = data.draw(st.sampled_from((0, 1, 7, 300, 2500)))
    queries = data.draw(st.sampled_from((0, 1, 40, 400)))
    originals = data.draw(st.sampled_from((1, 5, 200)))
    if bits == 4096:
        rows, queries = min(rows, 300), min(queries, 40)
    design = data.draw(st.sampled_from(designs_for(h, bits)[:5]))
    chunk_bytes = data.draw(st.sampled_from((1, 4096, 100_000, 8 << 20)))
    if chunk_bytes == 1 or originals == 1:  # a row a chunk; nearly all pairs are hits
        rows = min(rows, 300)
    stream = Stream(
        chunk_bytes=chunk_bytes,
        release=data.draw(st.booleans()),
        threads=data.draw(st.integers(1, 3)),
    )
    table, batch = case(
        data.draw(st.integers(0, 1 << 30)), bits, rows, queries, originals, min(h + 1, 4)
    )
    hits = expected(table, batch, h)
    tables = query_tables.build(batch, design, h=h, threads=stream.threads)
    assert len(tables) == len(np.unique(batch, axis=0))
    assert columns(query_tables.search(tables, table, Asked(batch, h, stream=stream))) == hits
    found = query_tables.search(tables, table, Asked(batch, h, True, stream=stream))
    assert columns(found) == nearest(hits)
    assert columns(scan.streamed(table, SCAN, Asked(batch, h, stream=stream))) == hits
    found = scan.streamed(table, SCAN, Asked(batch, h, True, stream=stream))
    assert columns(found) == best(hits, lambda hit: hit[1])


def of_ids(ids: np.ndarray, commit: int) -> Deletions:
    return Deletions([from_deletions([Names.of_ids(ids)], [commit], keyed=False)])


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.slow
def test_deleted_rows_are_no_matches(bits: int, first: bool) -> None:
    """They do not stand for live ones either, be those farther, later, or equal to them."""
    table, batch = case(5, bits, 3000, 500, 60)
    dead = set(range(0, 1500, 3))
    tombstones = of_ids(np.array(sorted(dead), np.uint64), 1)
    hits = expected(table, batch, 3, dead)
    assert len(hits) < len(expected(table, batch, 3))
    tables = query_tables.build(batch, designs_for(3, bits)[0], h=3)
    for stream in (Stream(), Stream(chunk_bytes=5000, threads=2)):
        asked = Asked(batch, 3, first, stream=stream, tombstones=tombstones)
        found = query_tables.search(tables, table, asked)
        assert columns(found) == (nearest(hits) if first else hits)
        found = scan.streamed(table, SCAN, asked)
        assert columns(found) == (best(hits, lambda hit: hit[1]) if first else hits)
    for older in (Deletions(), of_ids(np.zeros(1, np.uint64), 0)):
        asked = Asked(batch, 3, stream=stream, tombstones=older)
        found = query_tables.search(tables, table, asked)
        assert columns(found) == expected(table, batch, 3)


@pytest.mark.slow
def test_equal_texts_on_both_sides_cost_no_square() -> None:
    """A million rows of one text and a hundred thousand equal queries: with `first`, one row each.

    Their pairs are 10^11, of which none is made.
    """
    text = np.array([[0x123456789ABCDEF0]], np.uint64)
    rows, queries = np.repeat(text, 1_000_000, axis=0), np.repeat(text, 100_000, axis=0)
    ids = np.arange(1_000_000, dtype=np.uint64)[::-1].copy()
    table = sort_table("hot", rows, ids, None, horizon=0)
    tables = query_tables.build(queries, designs_for(3)[0], h=3)
    assert len(tables) == 1
    started = time.process_time()
    asked = Asked(queries, 3, True, stream=Stream(chunk_bytes=1 << 20))
    found = query_tables.search(tables, table, asked)
    assert time.process_time() - started < 5
    assert np.array_equal(np.sort(found.query), np.arange(len(queries)))
    assert not found.id.any()
    assert not found.distance.any()


@pytest.mark.slow
def test_a_hot_family_costs_its_members() -> None:
    """Many near queries of rows that repeat: each run stands for its rows before pairs are made."""
    rng = np.random.default_rng(8)
    text = np.array([[0x0F0F0F0F0F0F0F0F]], np.uint64)
    rows = np.repeat(text, 300_000, axis=0)
    queries = np.unique(family(rng, text, 3000, 3), axis=0)
    table = sort_table("hot", rows, np.arange(len(rows), dtype=np.uint64), None, horizon=0)
    tables = query_tables.build(queries, designs_for(3)[0], h=3)
    asked = Asked(queries, 3, True, stream=Stream(chunk_bytes=1 << 20))
    found = query_tables.search(tables, table, asked)
    assert len(found.query) == len(queries)
    assert found.compared < 10 * len(queries)


def test_a_table_needs_a_design_that_is_exact() -> None:
    """As every search by permuted tables does."""
    with pytest.raises(InvalidOption, match="exact up to h=3"):
        query_tables.build(np.zeros((3, 1), np.uint64), BlockDesign.flat(4, 1), h=4)


def test_a_scan_stops_reading_when_no_query_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `first`; the chunks behind are not asked for."""
    rng = np.random.default_rng(1)
    rows = np.sort(oracle.uniform(rng, 10_000), axis=0)
    table = sort_table("rows", rows, np.arange(10_000, dtype=np.uint64), None, horizon=0)
    looked = []
    real = scan._slice
    monkeypatch.setattr(
        scan, "_slice", lambda *given: looked.append(given[3:5]) or real(*given)
    )
    stream = Stream(chunk_bytes=8000)
    found = scan.streamed(table, SCAN, Asked(rows[[10, 2500]], 0, True, stream=stream))
    assert found.row.tolist() == [10, 2500]
    assert looked == [(0, 1000), (1000, 2000), (2000, 3000)]
    assert found.compared <= 3000 + 2000


def test_the_design_is_exact_and_fits_the_memory() -> None:
    """Less memory, fewer tables; and None where not even the fewest fit."""
    machine = Machine()
    stream = Stream(chunk_bytes=1 << 20, window_bytes=1 << 20)
    for h in (1, 3, 6):
        best = query_design(machine, 10**7, h=h, queries=10**6, stream=stream)
        assert best is not None and best.exact_for >= h
        needed = query_tables.bytes_needed(10**6, 1, best, h=h, stream=stream)
        assert query_design(
            machine, 10**7, h=h, queries=10**6, memory_bytes=needed, stream=stream
        ) == best
        less = query_design(
            machine, 10**7, h=h, queries=10**6, memory_bytes=needed - 1, stream=stream
        )
        if less is not None:
            assert query_tables.bytes_needed(10**6, 1, less, h=h, stream=stream) < needed
            times = [
                query_tables_ns(
                    machine, 10**7, design, h=h, queries=10**6, chunk_rows=stream.chunk_rows(1)
                )
                for design in (less, best)
            ]
            assert times[0] >= times[1]
        assert query_design(machine, 10**7, h=h, queries=10**6, memory_bytes=10**6) is None
    assert query_design(machine, 10**7, h=64, queries=10**6) is None


def test_larger_batches_cost_less_a_query() -> None:
    """Since the stored rows are read once for all of them: [PSM] (17)."""
    costs = [
        query_tables_ns(Machine(), 10**7, BlockDesign.flat(4, 1), queries=10**exponent)
        for exponent in (3, 4, 5, 6)
    ]
    assert all(5 < more / less <= 11 for more, less in pairwise(costs))
