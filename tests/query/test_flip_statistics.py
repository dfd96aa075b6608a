"""Recall below 1 before an index knows near-duplicates: it holds for flips of several kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.query.flip_statistics import calibrate

H, RECALL, ROWS, ASKED = 3, 0.95, 40_000, 3000


@pytest.fixture(scope="module")
def unlearned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, oracle.F32]:
    """An index without near-duplicates, and the weights of its rows."""
    weights = oracle.normal_weights(np.random.default_rng(8), ROWS)
    path = tmp_path_factory.mktemp("unlearned") / "index"
    options = IndexOptions(structures=("psm",), reservoir_rows=1000)
    with simindex.open(path, "c", options=options) as index:
        index.append(Batch(oracle.signs(weights), weights=weights))
        index.compact(full=True)
    return path, weights


@pytest.mark.parametrize("kind", oracle.KINDS)
@pytest.mark.slow
def test_assumed_recall_holds(unlearned: tuple[Path, oracle.F32], kind: str) -> None:
    """With fixed seeds; below the bound by chance less than once in a thousand times."""
    path, weights = unlearned
    asked, made_of = oracle.rewritten(np.random.default_rng(4), kind, weights, H)
    asked, made_of = asked[:ASKED], made_of[:ASKED]
    assert len(asked) > 1000
    with simindex.open(path) as index:
        found = index.query(
            Batch(oracle.signs(asked), weights=asked), h=H, recall=RECALL, method="psm"
        )
    assert not found.stats.exact
    assert found.stats.guarantee.startswith(f"assumed: recall >= {RECALL:g} where bits flip by")
    hit = np.zeros(len(asked), np.bool_)
    hit[found.query[found.id == made_of[found.query].astype(np.uint64)]] = True
    deviation = np.sqrt(RECALL * (1 - RECALL) / len(asked))
    assert hit.mean() >= RECALL - 3.1 * deviation


@pytest.mark.parametrize("header_bits", [11, 14, 20])
@pytest.mark.slow
def test_flips_hold_for_wider_headers_too(
    unlearned: tuple[Path, oracle.F32], header_bits: int
) -> None:
    """The header that a plan takes depends on the machine; the promise does not."""
    path, weights = unlearned
    with simindex.open(path) as index:
        known = calibrate(index._current(), h=H, budget_s=1)
    flips = known.flips(header_bits, H, RECALL)
    header = np.uint64(2**64 - 2 ** (64 - header_bits))
    for kind in oracle.KINDS:
        asked, made_of = oracle.rewritten(np.random.default_rng(5), kind, weights[:6000], H)
        apart = oracle.signs(asked)[:, 0] ^ oracle.signs(weights[made_of])[:, 0]
        masks = known._masks(asked[:1500].astype(np.float16), header_bits, H, flips)
        wanted = apart[:1500] & header
        tried = (masks == wanted[:, None]).any(axis=1) | (wanted == 0)
        deviation = np.sqrt(RECALL * (1 - RECALL) / len(wanted))
        assert tried.mean() >= RECALL - 3.1 * deviation


def test_no_more_flips_than_independent_ones_take(unlearned: tuple[Path, oracle.F32]) -> None:
    """The least number: with a fifth fewer, too many independent flips are lost."""
    path, _ = unlearned
    with simindex.open(path) as index:
        known = calibrate(index._current(), h=H, budget_s=1)
    rng = np.random.default_rng(2)
    weights = oracle.normal_weights(rng, 8000)
    asked, _ = oracle.rewritten(rng, "independent of weights", weights, H)
    apart = oracle.signs(asked)[:, 0] ^ oracle.signs(weights)[:, 0]
    wanted = apart & np.uint64(2**64 - 2**50)
    fewer = int(0.8 * known.flips(14, H, RECALL))
    masks = known._masks(weights.astype(np.float16), 14, H, fewer)
    tried = (masks == wanted[:, None]).any(axis=1) | (wanted == 0)
    assert tried.mean() < RECALL


def test_guarantee_names_whose_weights_it_judges_by(index_path: Path) -> None:
    """Rows of the index where it has weights, else the call's own queries."""
    rng = np.random.default_rng(1)
    weights = oracle.normal_weights(rng, 2000)
    asked = Batch(oracle.signs(weights[:300]), weights=weights[:300])
    options = IndexOptions(structures=("psm",))
    with simindex.open(index_path, "c", options=options) as index:
        index.append(oracle.signs(weights))
        index.commit()
        said = index.query(asked, recall=0.9, method="psm").stats.guarantee
        assert said.endswith("judged by the weights of 256 of the queries themselves")
        assert index.stats().flips_from == {H: "the weights of 256 of the queries themselves"}
        index.append(Batch(oracle.signs(weights[:700] + 9), weights=weights[:700] + 9))
        index.commit()
        said = index.query(asked, recall=0.9, method="psm").stats.guarantee
        assert said.endswith("judged by the weights of 700 rows of the index")
        assert index.query(asked).stats.guarantee == "exact"
