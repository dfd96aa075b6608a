"""PSM's recall as a statistic: near-duplicates as real revisions make them, found as asked.

The bound is the asked recall minus three standard deviations of a binomial over the planted pairs;
the seed is fixed, so a run is repeatable. Uniform documents, and families of templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions

pytestmark = pytest.mark.slow

ROWS = 200_000
QUERIES = 2_500
H = 3


@dataclass
class Crawl:
    """Documents, rewrites of some of them, and which of them are within H of which."""

    weights: oracle.F32
    stored: oracle.U64
    queries: Batch
    pairs: oracle.I64
    """Every (query, row) within H, by brute force: int64 (r, 2)."""


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    """A tenth of the stored documents are rewrites of others; every query rewrites one."""
    rng = np.random.default_rng(1973)
    originals = oracle.normal_weights(rng, ROWS * 10 // 11)
    copies, _ = oracle.near_duplicates(rng, originals[: ROWS - len(originals)], H)
    weights = np.concatenate([originals, copies])
    weights = weights[rng.permutation(len(weights))]
    stored = oracle.signs(weights)
    wanted, _ = oracle.near_duplicates(rng, weights[rng.choice(len(weights), QUERIES)], H)
    queries = oracle.signs(wanted)
    pairs = oracle.matches(stored, queries, H)[:, :2]
    return Crawl(weights, stored, Batch(queries, weights=wanted), pairs)


@pytest.fixture(scope="module", params=["one segment", "four segments"])
def index(
    request: pytest.FixtureRequest, crawl: Crawl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[simindex.Index]:
    path = tmp_path_factory.mktemp("recall") / "pages.sim"
    step = ROWS // 4
    with simindex.open(path, "n", options=IndexOptions(batch_rows=step, min_merge=0)) as writer:
        for start in range(0, len(crawl.stored), step):
            part = slice(start, start + step)
            ids = np.arange(len(crawl.stored))[part]
            writer.append(crawl.stored[part, 0], ids=ids, weights=crawl.weights[part])
            writer.commit()
        if request.param == "one segment":
            writer.compact(full=True)
        writer.tune(machine=False)
    with simindex.open(path) as reader:
        yield reader


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[simindex.Index, Crawl]]:
    """Half of the documents rewrite one of 300 templates within 12 bits, the first ones most."""
    rng = np.random.default_rng(1991)
    templates = oracle.normal_weights(rng, 300)
    popularity = 1 / np.arange(1, len(templates) + 1)
    chosen = rng.choice(len(templates), 30_000, p=popularity / popularity.sum())
    members, _ = oracle.near_duplicates(rng, templates[chosen], 12)
    weights = np.concatenate([members, oracle.normal_weights(rng, 30_000)])
    copies, _ = oracle.near_duplicates(rng, weights[::10], H)
    weights = np.concatenate([weights, copies])
    weights = weights[rng.permutation(len(weights))]
    stored = oracle.signs(weights)
    wanted, _ = oracle.near_duplicates(rng, weights[rng.choice(len(weights), 1500)], H)
    queries = oracle.signs(wanted)
    pairs = oracle.matches(stored, queries, H)[:, :2]
    path = tmp_path_factory.mktemp("families") / "pages.sim"
    with simindex.open(path, "n") as writer:
        writer.append(stored[:, 0], ids=np.arange(len(stored)), weights=weights)
        writer.commit()
        writer.compact(full=True)
        writer.tune(machine=False)
    with simindex.open(path) as reader:
        yield reader, Crawl(weights, stored, Batch(queries, weights=wanted), pairs)


def pairs_of(found: simindex.Matches) -> list[tuple[int, int]]:
    return list(zip(found.query.tolist(), found.id.astype(np.int64).tolist(), strict=True))


def bound(recall: float, pairs: int) -> float:
    """Three standard deviations below the asked recall."""
    return float(recall - 3 * np.sqrt(recall * (1 - recall) / pairs))


@pytest.mark.parametrize("recall", [0.9, 0.95, 0.99])
def test_measured_recall_is_at_least_the_asked_one(
    index: simindex.Index, crawl: Crawl, recall: float
) -> None:
    found = index.query(crawl.queries, h=H, recall=recall, method="psm")
    truth = {(query, row) for query, row in crawl.pairs.tolist()}
    got = pairs_of(found)
    assert len(truth) >= 0.98 * QUERIES
    assert len(set(got)) == len(got)
    assert set(got) <= truth, "a match that is none"
    assert len(got) / len(truth) >= bound(recall, len(truth)), found.stats
    assert not found.stats.exact
    assert f"{recall:g}" in found.stats.guarantee
    apart = crawl.queries.rows[found.query] ^ crawl.stored[found.id.astype(np.int64)]
    assert np.array_equal(np.bitwise_count(apart).sum(axis=1), found.distance)


def test_more_recall_takes_more_flips(index: simindex.Index, crawl: Crawl) -> None:
    flips = [
        index.query(crawl.queries, h=H, recall=recall, method="psm").stats.flips
        for recall in (0.8, 0.9, 0.95, 0.99)
    ]
    assert flips == sorted(flips)
    assert 0 < flips[0] < flips[-1]


def test_flips_stay_near_those_of_real_text(index: simindex.Index, crawl: Crawl) -> None:
    """Real revisions need 7 flips at a 16-bit header for 95 %: far more would be a lost order."""
    stats = index.query(crawl.queries, h=H, recall=0.95, method="psm").stats
    assert stats.flips <= 32


def test_first_finds_a_partner_of_as_many_queries(index: simindex.Index, crawl: Crawl) -> None:
    found = index.query(crawl.queries, h=H, recall=0.95, method="psm", first=True)
    with_partner = set(crawl.pairs[:, 0].tolist())
    assert len(set(found.query.tolist())) == len(found)
    assert set(found.query.tolist()) <= with_partner
    assert len(found) / len(with_partner) >= bound(0.95, len(with_partner))


def test_exact_recall_needs_no_luck(index: simindex.Index, crawl: Crawl) -> None:
    found = index.query(crawl.queries.take(np.arange(300)), h=H, recall=1.0)
    expected = [(query, row) for query, row in crawl.pairs.tolist() if query < 300]
    assert sorted(pairs_of(found)) == expected


@pytest.mark.parametrize("recall", [0.9, 0.99])
def test_measured_recall_is_the_asked_one_in_families_of_templates(
    families: tuple[simindex.Index, Crawl], recall: float
) -> None:
    """A mean over the queries, as the promise is: a family's pairs would else decide alone."""
    index, crawl = families
    found = index.query(crawl.queries, h=H, recall=recall, method="psm")
    got = found.query.astype(np.int64) * len(crawl.stored) + found.id.astype(np.int64)
    truth = crawl.pairs[:, 0] * len(crawl.stored) + crawl.pairs[:, 1]
    assert len(np.unique(got)) == len(got)
    assert np.isin(got, truth).all(), "a match that is none"
    pairs = np.bincount(crawl.pairs[:, 0], minlength=len(crawl.queries))
    hits = np.bincount(found.query, minlength=len(crawl.queries))
    asked = pairs > 0
    assert asked.mean() >= 0.98
    assert pairs.max() > 100, "no family is large"
    measured = float((hits[asked] / pairs[asked]).mean())
    assert measured >= bound(recall, int(asked.sum())), found.stats
    assert not found.stats.exact
    assert found.stats.flips < 200
