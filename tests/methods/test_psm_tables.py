"""Likely flips in all tables of a design: nothing twice, nothing too far, as much as was asked."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.bits.design import BlockDesign
from simindex.bits.volatility import of_cosine
from simindex.errors import CorruptFile
from simindex.methods import psm_tables
from simindex.methods.base import Asked, Found, TablePlan
from simindex.planning.calibration import Calibration, by_cosine

ROWS, QUERIES, COSINE, H, WIDTH = 20_000, 600, 0.9, 15, 10
DESIGN = BlockDesign.parse("bphs:G=4,g=1,r=2")


def signs(weights: Any) -> Any:
    """Fingerprints (n,) of weights."""
    return oracle.signs(weights)[:, 0]


def rewritten(rng: np.random.Generator, weights: Any) -> Any:
    noise = oracle.normal_weights(rng, len(weights))
    return (COSINE * weights + sqrt(1 - COSINE**2) * noise).astype(np.float32)


@pytest.fixture(scope="module")
def weights() -> Any:
    return oracle.normal_weights(np.random.default_rng(47), ROWS)


@pytest.fixture(scope="module")
def asked(weights: Any) -> Any:
    """Rewrites of the first rows, each of which is stored three times."""
    return rewritten(np.random.default_rng(48), weights[:QUERIES])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, weights: Any) -> Path:
    made = tmp_path_factory.mktemp("tables") / "pages.sim"
    stored = np.concatenate([weights, weights[:QUERIES], weights[:QUERIES]])
    sketches = np.zeros((len(stored), 1), np.uint64)
    with simindex.open(made, "n", options=IndexOptions(sketch_bits=64)) as index:
        index.append(Batch(
            signs(stored), ids=np.arange(len(stored)), weights=stored, sketch=sketches
        ))
        index.compact(full=True)
    return made


@pytest.fixture
def calibration(weights: Any) -> Calibration:
    return by_cosine(weights[:4096].astype(np.float16), COSINE, stored_rows=ROWS)


def found(
    path: Path, calibration: Calibration, queries: Any, *, swept: bool = False, first: bool = False
) -> tuple[Found, Any]:
    flips = calibration.flips_each(DESIGN, WIDTH, H, 0.95)
    assert flips is not None
    plan = TablePlan(
        psm_tables.method_of(DESIGN), 0, flips, False, 1.0, DESIGN, swept_from=0 if swept else None,
        widths=(WIDTH,) * 4,
    )
    with simindex.open(path) as index:
        table = index._handle.view.current().tables[0]
        given = Asked(signs(queries)[:, None], H, first, queries, calibration.volatility)
        return psm_tables.search(table, plan, given), np.array(table.fingerprints[:, 0])


def test_columns_are_in_the_order_of_the_table() -> None:
    for design in (DESIGN, BlockDesign.parse("bphs:G=5,g=2"), BlockDesign.parse("bphs:nested=4x4")):
        rng = np.random.default_rng(1)
        weights = oracle.normal_weights(rng, 20)
        for number in range(design.tables):
            permuted = psm_tables.permuted_weights(design, weights, number)
            assert np.array_equal(
                signs(permuted), design.permute(signs(weights), number)
            )


def test_a_pair_is_found_once_and_with_all_equal_rows(
    path: Path, calibration: Calibration, asked: Any
) -> None:
    some, fingerprints = found(path, calibration, asked)
    pairs = list(zip(some.query.tolist(), some.row.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) > QUERIES
    queries = signs(asked)
    apart = np.bitwise_count(queries[some.query] ^ fingerprints[some.row])
    assert np.array_equal(apart, some.distance)
    assert some.distance.max() <= H
    copies = np.array([0, ROWS, ROWS + QUERIES])  # of the three of a row all or none
    own = (some.id.astype(np.int64)[:, None] - some.query[:, None] == copies).any(axis=1)
    assert set(np.bincount(some.query[own], minlength=QUERIES).tolist()) == {0, 3}


def test_what_is_found_is_what_likely_flips_reach(
    path: Path, calibration: Calibration, asked: Any
) -> None:
    """Of all rows within h by brute force, those whose header flips are among the first of one
    table, and whose flips cost no more than those of near-duplicates."""
    some, fingerprints = found(path, calibration, asked[:60])
    law, flips = calibration.volatility, calibration.flips_each(DESIGN, WIDTH, H, 0.95)
    assert law.most is not None and flips is not None
    within = oracle.matches(fingerprints, signs(asked[:60]), H)
    expected = set()
    for query, row, _ in within.tolist():
        differing = int(signs(asked[query : query + 1])[0] ^ fingerprints[row])
        flipped = np.array([differing >> (63 - bit) & 1 for bit in range(64)], bool)
        costs = law.of(asked[query : query + 1])[0].astype(np.float64)
        if costs[flipped].sum() > law.most:
            continue
        for start in range(0, 64, 16):
            header = costs[start : start + WIDTH]
            sets = np.zeros(1)
            for cost in header:
                sets = np.concatenate([sets, sets + cost])
            own = header[flipped[start : start + WIDTH]].sum()
            if (sets < own - 1e-9).sum() <= flips:
                expected.add((query, row))
                break
    got = set(zip(some.query.tolist(), some.row.tolist(), strict=True))
    # Costs are rounded to steps, so that sets of almost equal cost may change places.
    assert len(got ^ expected) <= 0.02 * len(expected)


def test_sweeps_find_the_same(path: Path, calibration: Calibration, asked: Any) -> None:
    alone, _ = found(path, calibration, asked)
    together, _ = found(path, calibration, asked, swept=True)
    assert sorted(zip(alone.query.tolist(), alone.row.tolist(), strict=True)) == sorted(
        zip(together.query.tolist(), together.row.tolist(), strict=True)
    )
    assert (alone.probes, alone.compared) == (together.probes, together.compared)


def test_the_first_match_is_one_of_all(path: Path, calibration: Calibration, asked: Any) -> None:
    every, fingerprints = found(path, calibration, asked)
    one, _ = found(path, calibration, asked, first=True)
    assert len(set(one.query.tolist())) == len(one.query)
    assert set(every.query.tolist()) <= set(one.query.tolist())
    apart = np.bitwise_count(signs(asked)[one.query] ^ fingerprints[one.row])
    assert apart.max() <= H


def test_strangers_within_the_radius_are_left_out(
    path: Path, calibration: Calibration, weights: Any
) -> None:
    """Within 15 bits of 20,000 rows there are some, which differ in bits that hardly flip."""
    strangers = oracle.normal_weights(np.random.default_rng(49), QUERIES)
    within = oracle.matches(signs(weights), signs(strangers), H)
    assert len(within) > 50
    assert len(found(path, calibration, strangers)[0].query) < len(within) / 20


def test_rows_that_table_0_does_not_contain_are_damage(
    path: Path, calibration: Calibration, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        BlockDesign, "unpermute", lambda self, rows, table: rows ^ np.uint64(1 << 40)
    )
    with pytest.raises(CorruptFile, match="does not contain"):
        found(path, calibration, asked)


def test_the_law_is_how_bits_flip_at_a_cosine(weights: Any, asked: Any) -> None:
    law = of_cosine(COSINE)
    chance = 1 / (1 + np.exp(law.of(weights[:QUERIES])))
    flipped = (weights[:QUERIES] >= 0) != (asked >= 0)
    for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 1), (1, 4)):
        band = (np.abs(weights[:QUERIES]) >= low) & (np.abs(weights[:QUERIES]) < high)
        error = sqrt(chance[band].mean() / band.sum())
        assert abs(flipped[band].mean() - chance[band].mean()) < 4 * error + 0.002


@pytest.mark.slow
def test_the_recall_of_a_similarity_is_reached(tmp_path: Path) -> None:
    """Of pairs at the cosine, by calls that use weights, the share that was asked for; three
    standard deviations of a binomial below it are allowed."""
    rng = np.random.default_rng(50)
    rows, queries = 1 << 18, 6000
    weights = oracle.normal_weights(rng, rows)
    batch = rewritten(rng, weights[:queries])
    empty = np.zeros((rows, 1), np.uint64)  # sketches keep every candidate
    with simindex.open(tmp_path / "pages.sim", "n", options=IndexOptions(sketch_bits=64)) as index:
        index.append(
            Batch(signs(weights), ids=np.arange(rows), weights=weights, sketch=empty)
        )
        index.compact(full=True)
        for recall in (0.9, 0.95):
            got = index.query(
                Batch(signs(batch), weights=batch, sketch=empty[:queries]),
                similarity=COSINE, recall=recall,
            )
            assert got.stats.method == psm_tables.method_of(DESIGN)
            assert f"drawn at cosine {COSINE}" in got.stats.guarantee
            share = np.unique(got.query[got.id == got.query]).size / queries
            assert share >= recall - 3 * sqrt(recall * (1 - recall) / queries)
            exact = index.query(
                Batch(signs(batch), weights=batch, sketch=empty[:queries]),
                similarity=COSINE, recall=recall, method="scan",
            )
            assert set(zip(got.query.tolist(), got.id.tolist(), strict=True)) <= set(
                zip(exact.query.tolist(), exact.id.tolist(), strict=True)
            )
