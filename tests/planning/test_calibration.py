"""Flips are what brute force over all flip sets says they are, counted or expected."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.bits import vosh
from simindex.bits.volatility import BINS, Volatility, from_random_pairs
from simindex.methods import psm, scan
from simindex.methods.base import Asked, TablePlan
from simindex.planning import calibration, registry, table_plans
from simindex.planning.calibration import Calibration, NearPairs
from simindex.planning.conditions import Conditions
from simindex.planning.costs import scanning_ns
from simindex.planning.machine import USUAL
from simindex.planning.registry import Method
from simindex.planning.table_plans import exact_plan
from simindex.query import flip_statistics, plans
from simindex.query.flip_statistics import calibrate, find_near_pairs
from simindex.storage.tables.table import sort_table

NO_PAIRS = NearPairs(
    3, np.empty(0, np.int64), np.empty((0, 1), np.uint64), np.empty((0, 64), np.float16)
)


def sample_of(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 64)).astype(np.float16)


def modelled(rows: int = 20) -> Calibration:
    """A calibration that has seen no pair."""
    sample = sample_of(rows)
    return Calibration(from_random_pairs(sample, distance=3), NO_PAIRS, sample, 0)


def mask_of(bits: tuple[int, ...]) -> int:
    return sum(1 << (63 - bit) for bit in bits)


def ranked_sets(costs: np.ndarray, header_bits: int, h: int) -> list[tuple[int, ...]]:
    """All flip sets of a header, cheapest first."""
    sets = [s for size in range(1, h + 1) for s in combinations(range(header_bits), size)]
    return sorted(sets, key=lambda s: sum(float(costs[bit]) for bit in s))


# -- expected -------------------------------------------------------------------------------------


@pytest.mark.parametrize("header_bits", [1, 4, 7])
@pytest.mark.parametrize("h", [1, 2])
@pytest.mark.parametrize("recall", [0.3, 0.6, 0.9, 0.97])
@pytest.mark.slow
def test_expected_flips_reach_the_mass_that_brute_force_counts(
    header_bits: int, h: int, recall: float
) -> None:
    found = modelled()
    reached = np.zeros(vosh.set_count(header_bits, h) + 1)
    for row in found.sample:
        costs = found.volatility.of(row[None])[0].astype(np.float64)
        odds = np.exp(-costs)
        mass: dict[tuple[int, ...], float] = {}
        for size in range(1, h + 1):
            for flips in combinations(range(64), size):
                head = tuple(bit for bit in flips if bit < header_bits)
                mass[head] = mass.get(head, 0.0) + float(np.prod(odds[list(flips)]))
        total = sum(mass.values())
        order = ranked_sets(costs, header_bits, h)
        shares = [mass.get((), 0.0), *(mass.get(s, 0.0) for s in order)]
        reached += np.cumsum(shares) / total / len(found.sample)
    least = int(np.searchsorted(reached, recall))
    flips = found.flips(header_bits, h, recall)
    # At least one set is tried; sets of equal cost may stand in another order.
    assert abs(flips - max(1, least)) <= 1


def test_flips_grow_with_recall_and_with_the_header() -> None:
    found = modelled()
    recalls = (0.5, 0.8, 0.9, 0.95, 0.99)
    for header_bits in (4, 8, 14):
        flips = [found.flips(header_bits, 3, recall) for recall in recalls]
        assert flips == sorted(flips)
        assert flips[-1] <= vosh.set_count(header_bits, 3)
    for recall in recalls:
        flips = [found.flips(header_bits, 3, recall) for header_bits in range(2, 20, 3)]
        assert flips == sorted(flips)


def test_recall_out_of_reach_takes_every_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "MOST_FLIPS", 8)
    found = modelled()
    assert found.flips(12, 3, 0.999) == vosh.set_count(12, 3)
    assert found.flips(3, 3, 0.999999) <= 7
    assert found.flips(0, 3, 0.9) == 0
    assert found.flips(12, 0, 0.9) == 0


# -- counted --------------------------------------------------------------------------------------


def counted(texts: int, seed: int = 0) -> Calibration:
    """Rewrites that flip bits with the odds of a table of costs; some texts have several."""
    rng = np.random.default_rng(seed)
    weights = sample_of(texts, seed)
    table = Volatility(np.linspace(0.5, 9, BINS).astype(np.float32), "a line")
    p = 1 / (1 + np.exp(table.of(weights).astype(np.float64)))
    text, differing = [], []
    for number in range(texts):
        for _ in range(int(rng.integers(1, 4))):
            while True:
                bits = np.flatnonzero(rng.random(64) < p[number])
                if 1 <= len(bits) <= 3:
                    break
            text.append(number)
            differing.append(mask_of(tuple(bits.tolist())))
    pairs = NearPairs(3, np.array(text), np.array(differing, np.uint64)[:, None], weights)
    return Calibration(table, pairs, weights, 0)


@pytest.mark.parametrize("header_bits", [5, 9])
@pytest.mark.parametrize("h", [1, 2, 3])
@pytest.mark.parametrize("recall", [0.7, 0.9])
@pytest.mark.parametrize("held", [700])
@pytest.mark.slow
def test_counted_flips_find_the_share_of_pairs_that_brute_force_counts(
    header_bits: int, h: int, recall: float, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "MASKS_AT_ONCE", held)
    found = counted(300)
    assert found.learned
    places: dict[int, list[tuple[int, int]]] = {}
    for number, xor in zip(found.pairs.text.tolist(), found.pairs.differing[:, 0].tolist(),
                           strict=True):
        if xor.bit_count() > h:
            continue
        head = tuple(bit for bit in range(header_bits) if xor >> (63 - bit) & 1)
        costs = found.volatility.of(found.pairs.weights[number][None])[0].astype(np.float64)
        first, last = 0, 0
        if head:  # sets of equal cost may stand in any order
            cost = costs[list(head)].sum()
            others = [costs[list(s)].sum() for s in ranked_sets(costs, header_bits, h)]
            first = 1 + sum(other < cost - 1e-4 for other in others)
            last = sum(other <= cost + 1e-4 for other in others)
        places.setdefault(number, []).append((first, last))
    texts = len(places)
    target = recall + 1.645 * np.sqrt(recall * (1 - recall) / texts)
    if target >= 1:
        assert texts < 100
        return

    def share(k: int, which: int) -> float:
        found = [np.mean([place[which] <= k for place in some]) for some in places.values()]
        return float(np.mean(found))

    flips = found.flips(header_bits, h, recall)
    assert share(flips, 0) >= target - 1e-9
    if flips > 1:
        assert share(flips - 1, 1) < target


@pytest.mark.slow
def test_flips_that_count_grow_with_recall() -> None:
    found = counted(400)
    for header_bits in (6, 10, 14):
        flips = [found.flips(header_bits, 3, recall) for recall in (0.5, 0.8, 0.9, 0.95)]
        assert flips == sorted(flips)


def test_few_texts_and_larger_radii_fall_back_to_the_model(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("_counted", "_assumed"):
        real = getattr(Calibration, name)
        monkeypatch.setattr(
            Calibration, name,
            lambda self, *args, real=real, name=name: (calls.append(name), real(self, *args))[1],
        )
    for texts, h, recall in ((20, 3, 0.9), (150, 4, 0.9), (150, 3, 0.9999)):
        found = counted(texts)
        found.flips(6, h, recall)
        assert calls == ["_assumed"]
        assert found.promise(h, recall).startswith(f"assumed: recall >= {recall:g} where bits flip")
        calls.clear()
    found.flips(6, 3, 0.9)
    assert calls == ["_counted"]
    assert found.promise(3, 0.9) == "expected recall >= 0.9, learned from a line"


def test_confidence_asks_for_more_than_the_recall() -> None:
    assert calibration._with_confidence(0.9, 0) is None
    assert calibration._with_confidence(0.999, 100) is None
    few, many = (calibration._with_confidence(0.9, texts) for texts in (200, 20_000))
    assert few is not None
    assert many is not None
    assert 0.9 < many < few < 1


# -- learning from an index -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments and a pending run of texts with rewrites, some of them equal."""
    rng = np.random.default_rng(9)
    originals = oracle.normal_weights(rng, 700)
    copies, _ = oracle.near_duplicates(rng, originals[:300], 3)
    weights = np.concatenate([originals, copies, copies[:50]])[rng.permutation(1050)]
    path = tmp_path_factory.mktemp("crawled") / "index"
    options = IndexOptions(batch_rows=400, min_merge=0, reservoir_rows=600)
    with simindex.open(path, "c", options=options) as index:
        for start, stop in ((0, 400), (400, 800), (800, 830), (830, 1050)):
            part = weights[start:stop]
            index.append(Batch(oracle.signs(part), weights=part))
            index.commit()
    return path


def test_near_pairs_are_those_of_brute_force(crawled: Path) -> None:
    with simindex.open(crawled) as index:
        snapshot = index._current()
        found = find_near_pairs(snapshot, h=3, budget_s=float("inf"))
        reservoir = snapshot.reservoir
        stored = np.concatenate([table.fingerprints for table in snapshot.tables])
        expected = set()
        for place, fingerprint in enumerate(reservoir.fingerprints[:, 0].tolist()):
            for other in stored[:, 0].tolist():
                if 1 <= (fingerprint ^ other).bit_count() <= 3:
                    expected.add((place, fingerprint ^ other))
        rows = [place for place, _ in expected]
        assert found.texts == len(set(rows))
        assert len(found.text) == len(expected), "equal rows are one witness"
        sampled = {
            reservoir.weights[place].tobytes(): place for place in sorted(set(rows))
        }
        got = {
            (sampled[found.weights[text].tobytes()], xor)
            for text, xor in zip(found.text.tolist(), found.differing[:, 0].tolist(), strict=True)
        }
        by_weights = {(sampled[reservoir.weights[p].tobytes()], xor) for p, xor in expected}
        assert got == by_weights


def test_hot_text_counts_with_a_few_of_its_pairs(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flip_statistics, "PAIRS_OF_A_TEXT", 5)
    bits = np.uint64(1) << np.arange(60, dtype=np.uint64)
    with simindex.open(index_path, "c") as index:
        index.append(Batch(np.zeros(1, np.uint64), weights=-np.ones((1, 64), np.float32)))
        index.append(Batch(bits))
        index.commit()
        found = find_near_pairs(index._current(), h=3, budget_s=1)
        assert (found.texts, len(found.text)) == (1, 5)


def test_index_with_enough_pairs_learns_from_them(crawled: Path) -> None:
    with simindex.open(crawled) as index:
        learned = calibrate(index._current(), h=3, budget_s=float("inf"))
        assert learned.learned
        assert not learned.provisional
        assert "near-duplicate" in learned.source
        assert index.tune(machine=False).source == learned.source


def test_budget_bounds_the_rows_that_are_looked_for(
    crawled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked for by the method of the plan, whichever it is."""
    asked = []
    counting = Method(
        "counting", table_plans.scans,
        lambda table, plan, given: (
            asked.append(len(given.queries)), scan.search(table, plan, given)
        )[1],
    )
    monkeypatch.setitem(registry.METHODS, "counting", counting)
    monkeypatch.setattr(
        flip_statistics, "exact_plan",
        lambda table, asked: TablePlan("counting", 0, 0, True, 1e6),
    )
    with simindex.open(crawled) as index:
        find_near_pairs(index._current(), h=3, budget_s=1e-9)
        tables = len(index._current().tables)
    assert sum(asked) == flip_statistics.FEWEST_ROWS * tables


def test_empty_index_is_calibrated_provisionally(index_path: Path) -> None:
    with simindex.open(index_path, "c", options=IndexOptions(bits=128)) as index:
        found = calibrate(index._current(), h=3, budget_s=1)
        assert found.provisional
        assert found.flips(20, 3, 0.99) > 1
        given = calibrate(
            index._current(), h=3, budget_s=1, queries=np.ones((3, 128), np.float32)
        )
        assert not given.provisional


@pytest.mark.parametrize("rows", [1, 100, 5000])
@pytest.mark.parametrize("h", [0, 1, 3, 20, 64])
@pytest.mark.slow
def test_exact_plan_is_exact_and_no_dearer_than_a_scan(rows: int, h: int) -> None:
    rng = np.random.default_rng(rows)
    fingerprints = rng.integers(0, 2**64, (rows, 1), dtype=np.uint64)
    table = sort_table("t", fingerprints, np.arange(rows, dtype=np.uint64), None, horizon=0)
    plan = exact_plan(table, Conditions(h, 1))
    assert plan.exact
    assert plan.nanoseconds <= scanning_ns(USUAL, rows, 1, 1, h)
    if plan.method == "psm":
        assert plan.flips == vosh.set_count(plan.header_bits, h)
        found = psm.search(table, plan, Asked(fingerprints[:20], h))
        expected = oracle.matches(table.fingerprints, fingerprints[:20], h)[:, :2]
        assert sorted(zip(found.query.tolist(), found.row.tolist(), strict=True)) == sorted(
            map(tuple, expected.tolist())
        )


@pytest.mark.slow
def test_near_pairs_take_over_from_random_ones_as_the_index_grows(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handle that began with too few near-duplicates looks again long before the rows double."""
    rng = np.random.default_rng(3)
    originals = oracle.normal_weights(rng, 2000)
    copies, _ = oracle.near_duplicates(rng, originals[:700], 3)
    batch = Batch(oracle.signs(copies), weights=copies)
    learning = []
    real = plans.calibrate
    monkeypatch.setattr(
        plans, "calibrate",
        lambda snapshot, **named: (learning.append(named), real(snapshot, **named))[1],
    )
    with simindex.open(index_path, "n") as writer, simindex.open(index_path) as reader:

        def append(rows: oracle.F32) -> None:
            writer.append(Batch(oracle.signs(rows), weights=rows))
            writer.commit()

        def flips() -> tuple[int, str]:
            """Flips of the widest header, and what they are learned from, everywhere told alike."""
            stats = reader.query(batch, recall=0.9, method="psm").stats
            source = reader.explain(batch, recall=0.9).flips_from
            assert source is not None
            assert reader.stats().flips_from == {3: source}
            assert stats.guarantee.endswith(f" {source}")
            learned = stats.guarantee == f"expected recall >= 0.9, learned from {source}"
            assert learned == source.endswith("near-duplicate pairs of the index")
            assert learned != stats.guarantee.startswith("assumed: recall >= 0.9 where ")
            assert reader.explain(batch, recall=0.9, method="psm").guarantee == stats.guarantee
            return reader._answerer.plans._calibrations[3].flips(11, 3, 0.9), source

        append(np.concatenate([originals, copies[:30]]))
        assert reader.stats().flips_from == {}
        expected, source = flips()
        assert source == "the weights of 2030 rows of the index"
        append(copies[30:130])
        assert flips() == (expected, source), "a twentieth more rows"
        append(copies[130:])
        counted, source = flips()
        assert source.endswith("near-duplicate pairs of the index")
        assert counted < expected
        assert len(reader) < 2 * 2030
        assert len(learning) == 2
        append(originals[:900])  # a third more rows, and what is known is enough
        assert flips() == (counted, source)
        assert len(learning) == 2
        assert reader.explain(batch.rows, recall=0.9).flips_from is None
        assert reader.explain(batch).flips_from is None
