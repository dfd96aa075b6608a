"""What the page about an index tells, against calls of the index and brute force."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex.cli import index_report
from simindex.cli.index_report import Reporter
from simindex.cli.progress import Progress
from simindex.errors import TooManyMatches
from simindex.reporting.index_report import IndexReport

H = 4


def report(path: Path, **options: Any) -> IndexReport:
    usual: dict[str, Any] = {"h": H, "families": 5, "members": 4}
    with simindex.open(path) as index:
        return Reporter(
            index, "i.sim", **{**usual, **options}, memory_limit=None, threads=None,
            progress=Progress("", quiet=True),
        ).report(nearness=True)


@pytest.fixture
def rows(rng: np.random.Generator) -> Any:
    """Families around five rows, and others that are alone."""
    seeds = rng.integers(0, 1 << 64, 5, dtype=np.uint64)
    near = [seed ^ np.uint64((1 << int(rng.integers(4))) - 1) for seed in seeds
            for _ in range(int(rng.integers(2, 9)))]
    return np.concatenate([near, rng.integers(0, 1 << 64, 60, dtype=np.uint64)]).astype(np.uint64)


@pytest.fixture
def filled(index_path: Path, rows: Any) -> Path:
    with simindex.open(index_path, "n", options=simindex.IndexOptions()) as index:
        index.append(rows, ids=np.arange(len(rows)))
    return index_path


def test_distances_are_those_of_all_pairs_of_different_rows(filled: Path, rows: Any) -> None:
    found = report(filled).pairing
    assert found is not None
    different = np.unique(rows)
    pairs = oracle.matches(different[:, None], different[:, None], H)
    counted = Counter(int(distance) for a, b, distance in pairs if a < b)
    assert list(found.by_distance) == [counted[h] for h in range(H + 1)]
    assert found.equal_rows == len(rows) - len(different)


def test_clusters_are_those_of_the_index(filled: Path, rows: Any) -> None:
    found = report(filled).clustering
    assert found is not None
    with simindex.open(filled) as index:
        listed = index.clusters(h=H, mode="star", singletons=False)
    sizes = Counter(listed.cluster.tolist())
    assert (found.clusters, found.largest) == (len(sizes), max(sizes.values()))
    assert sum(documents for _, _, documents in found.sizes) == len(rows)
    assert [family.size for family in found.families] == sorted(sizes.values(), reverse=True)[:5]
    for family in found.families:
        first, *others = family.members
        assert first.distance == 0 and len(others) == min(family.size, 4) - 1
        assert [one.distance for one in others] == sorted(one.distance for one in others)
        for one in others:
            apart = int(rows[int(one.name)] ^ rows[int(first.name)]).bit_count()
            assert apart == one.distance <= H


def test_members_are_shown_from_near_to_far(index_path: Path) -> None:
    """Not the nearest ones only, which are all equal in a large family."""
    rows = np.array([0] * 50 + [1] * 5 + [3], np.uint64)
    with simindex.open(index_path, "n", options=simindex.IndexOptions()) as index:
        index.append(rows)
    found = report(index_path).clustering
    assert found is not None
    (family,) = found.families
    assert [one.distance for one in family.members] == [0, 0, 0, 2]


def test_counting_ends_at_a_number_of_pairs(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_report, "MOST_PAIRS", 1)
    found = report(filled).pairing
    assert found is not None and found.cut


def test_chains_take_the_place_of_stars_that_do_not_fit(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = simindex.Index.clusters

    def refusing(index: Any, **options: Any) -> Any:
        if options["mode"] == "star":
            raise TooManyMatches("too many")
        return whole(index, **options)

    monkeypatch.setattr(simindex.Index, "clusters", refusing)
    found = report(filled)
    assert found.clustering is not None and found.clustering.mode == "components"
    assert any("chains" in note for note in found.notes)


def test_what_is_predicted_falls_with_the_distance_of_pairs(filled: Path) -> None:
    found = report(filled)
    within = [chance.within for chance in found.chances]
    assert within == sorted(within, reverse=True) and within[0] > 0.8 and within[-1] < 0.01
    assert all(chance.kept is None for chance in found.chances)
    assert found.costs and {cost.method for cost in found.costs if cost.here} <= {
        "psm", *dict(found.structures)
    }
    assert 0 < found.strangers < 1e-6


def test_equal_rows_are_named(index_path: Path) -> None:
    rows = np.array([5] * 40 + list(range(100, 130)), np.uint64)
    with simindex.open(index_path, "n", options=simindex.IndexOptions(keys=True)) as index:
        index.append(simindex.Batch(rows, keys=[f"k{n:02}" for n in range(len(rows))]))
    (hot,) = report(index_path).equal
    assert (hot.value, hot.rows) == (f"{5:016x}", 40)
    assert len(hot.names) == 3 and all(name < "k40" for name in hot.names)
