"""Searches find the same whichever way headers are looked up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import oracle
import pytest
from reproduce import lookup

import simindex
from simindex import IndexOptions
from simindex._kernels import _native
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile, InvalidOption
from simindex.methods import bphs
from simindex.methods.base import Asked, Found, TablePlan
from simindex.methods.psm import exhaustive_masks
from simindex.storage.tables.table import Table, sort_table

DESIGNS = ("bphs:G=5,g=2", "bphs:nested=3x4", "bphs:G=2,g=1,r=1", "bphs:G=3,g=1,r=2")
"""Flat, nested, and two that flip."""

OTHERS = ("binary", "interpolation")


@pytest.fixture(scope="module", params=[1, 2])
def words(request: pytest.FixtureRequest) -> int:
    """Words of a fingerprint."""
    return int(request.param)


def rows_and_queries(words: int) -> tuple[oracle.U64, oracle.U64]:
    """Families of rows, some of them equal, and queries near them, at both ends and anywhere."""
    rng = np.random.default_rng(words)
    rows = np.concatenate([
        oracle.uniform(rng, 1500, words), oracle.skewed(rng, 1500, words, templates=20),
    ])
    rows[:150] = rows[2900]
    rows[150], rows[151] = 0, 2**64 - 1
    near = oracle.flip(rng, rows[rng.choice(3000, 200)], rng.integers(0, 4, 200))
    return rows, np.concatenate([near, rows[100:160], oracle.uniform(rng, 30, words)])


@pytest.fixture(scope="module")
def segment(words: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A segment with the tables of every design."""
    rows, _ = rows_and_queries(words)
    path = tmp_path_factory.mktemp("lookup") / "pages.sim"
    options = IndexOptions(bits=64 * words, structures=("psm", *DESIGNS), batch_rows=64)
    with simindex.open(path, "n", options=options) as index:
        index.append(rows)
        index.commit()
        index.compact(full=True)
    with simindex.open(path) as index:
        (table,) = index._handle.view.last().segments
        yield table


def planned(design: BlockDesign) -> TablePlan:
    return TablePlan(design.structure, 0, 0, True, 0.0, design)


def listed(found: Found) -> list[tuple[Any, ...]]:
    columns = (found.query, found.row, found.distance, found.id)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("way", lookup.LOOKUPS)
@pytest.mark.parametrize("name", DESIGNS)
def test_every_lookup_finds_and_compares_what_the_engine_does(
    segment: Table, words: int, name: str, way: lookup.Lookup
) -> None:
    _, queries = rows_and_queries(words)
    design = BlockDesign.parse(name, 64 * words)
    for h in range(design.exact_for + 1):
        expected = bphs.search(segment, planned(design), Asked(queries, h))
        found = lookup.search(segment, queries, design, h=h, first=False, lookup=way)
        assert listed(found) == listed(expected)
        assert [row[:3] for row in listed(found)] == [
            tuple(match) for match in oracle.matches(segment.fingerprints, queries, h).tolist()
        ]
        assert (found.probes, found.compared) == (expected.probes, expected.compared)
        assert [column.dtype for column in found[:4]] == [column.dtype for column in expected[:4]]


@pytest.mark.parametrize("way", OTHERS)
@pytest.mark.parametrize("name", DESIGNS)
def test_every_lookup_finds_the_same_first_match(
    segment: Table, words: int, name: str, way: lookup.Lookup
) -> None:
    """From the same table."""
    _, queries = rows_and_queries(words)
    design = BlockDesign.parse(name, 64 * words)
    for first in (False, True):
        h = min(3, design.exact_for)
        expected = bphs.search(segment, planned(design), Asked(queries, h, first))
        found = lookup.search(segment, queries, design, h=h, first=first, lookup=way)
        assert listed(found) == listed(expected)
        assert len(found.query) > 100
        if first:
            assert len(np.unique(found.query)) == len(found.query)


@pytest.mark.parametrize("way", lookup.LOOKUPS)
def test_no_queries_find_nothing(segment: Table, words: int, way: lookup.Lookup) -> None:
    design = BlockDesign.parse(DESIGNS[0], 64 * words)
    none = np.empty((0, words), np.uint64)
    found = lookup.search(segment, none, design, h=3, first=False, lookup=way)
    assert [len(column) for column in found[:4]] == [0] * 4
    assert (found.probes, found.compared) == (0, 0)


@pytest.mark.parametrize("way", OTHERS)
def test_rows_that_table_0_lacks_are_an_error(
    segment: Table, words: int, way: lookup.Lookup
) -> None:
    rows, queries = rows_and_queries(words)
    other = sort_table("other", rows[:2000], np.arange(2000, dtype=np.uint64), None, horizon=0)
    other.structures = segment.structures
    design = BlockDesign.parse(DESIGNS[0], 64 * words)
    with pytest.raises(CorruptFile, match="other contain"):
        lookup.search(other, queries, design, h=3, first=False, lookup=way)


@pytest.mark.parametrize("slices", [(1, 1), (7, 100), (1 << 18, 1 << 20)])
@pytest.mark.parametrize("way", lookup.LOOKUPS)
def test_psm_with_all_flip_sets_finds_what_the_kernel_finds(
    segment: Table, words: int, way: lookup.Lookup, slices: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However little is looked up and compared at a time."""
    monkeypatch.setattr(lookup, "SLICE_HEADERS", slices[0])
    monkeypatch.setattr(lookup, "SLICE_WORDS", slices[1])
    _, queries = rows_and_queries(words)
    queries = queries[::20].copy()
    masks = exhaustive_masks(4, 2)
    kernel = _native.probe_checked(segment.checked, 4, queries, masks, 3, False)
    found = lookup.probe(
        segment, queries, masks, header_bits=4, h=3, first=False, lookup=way
    )
    assert sorted(zip(*map(np.ndarray.tolist, found[:3]), strict=True)) == sorted(
        zip(*map(np.ndarray.tolist, kernel[:3]), strict=True)
    )
    assert len(found.query) > 20
    assert (found.probes, found.compared) == kernel[4:]


@pytest.mark.parametrize("way", lookup.LOOKUPS)
def test_flips_may_differ_from_query_to_query(
    segment: Table, words: int, way: lookup.Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "SLICE_HEADERS", 64)
    rng = np.random.default_rng(9)
    _, queries = rows_and_queries(words)
    flips = exhaustive_masks(6, 1)[rng.integers(0, 7, (len(queries), 3))]
    found = lookup.probe(segment, queries, flips, header_bits=6, h=5, first=False, lookup=way)
    expected = []
    for number, (query, masks) in enumerate(zip(queries, flips, strict=True)):
        for mask in masks:
            header = (query[0] ^ mask) >> np.uint64(58)
            for row in np.flatnonzero(segment.fingerprints[:, 0] >> np.uint64(58) == header):
                apart = int(np.bitwise_count(segment.fingerprints[row] ^ query).sum())
                if apart <= 5:
                    expected.append((number, int(row), apart))
    assert list(zip(*map(np.ndarray.tolist, found[:3]), strict=True)) == expected
    assert len(expected) > 100


def test_bisection_needs_no_directory() -> None:
    rows = oracle.uniform(np.random.default_rng(1), 300)
    table = sort_table("", rows, np.arange(300, dtype=np.uint64), None, horizon=0)
    bisected, jumped = (
        lookup.buckets(table, rows, exhaustive_masks(9, 1), header_bits=64, lookup=way)
        for way in OTHERS
    )
    assert table._directory is None
    assert np.array_equal(bisected.first, jumped.first)
    assert bisected.first.shape == bisected.end_steps.shape == (300, 10)
    assert jumped.steps.mean() < bisected.steps.mean() - 2


def test_an_unknown_lookup_is_refused(segment: Table, words: int) -> None:
    unknown: Any = "hashing"
    design = BlockDesign.parse(DESIGNS[0], 64 * words)
    for queries in (rows_and_queries(words)[1], np.empty((0, words), np.uint64)):
        with pytest.raises(InvalidOption, match="binary") as error:
            lookup.search(segment, queries, design, h=3, first=False, lookup=unknown)
        assert error.value.data["option"] == "lookup"
