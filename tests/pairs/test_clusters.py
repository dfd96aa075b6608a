"""Groups by pairs, against brute force in plain Python."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex._kernels import _native
from simindex.errors import InvalidBatch, InvalidOption
from simindex.pairs import stars
from simindex.pairs.tiles import Room
from simindex.records.clusters import Clusters


def connected(a: Any, b: Any, n: int) -> list[int]:
    """The label of each row in the forest of the pairs."""
    forest = _native.Forest(n)
    forest.unite(np.asarray(a, np.uint64), np.asarray(b, np.uint64))
    return forest.labels().tolist()


def smallest_reachable(pairs: list[tuple[int, int]], n: int) -> list[int]:
    beside: list[set[int]] = [set() for _ in range(n)]
    for a, b in pairs:
        beside[a].add(b)
        beside[b].add(a)
    labels = []
    for row in range(n):
        seen, queue = {row}, [row]
        while queue:
            new = beside[queue.pop()] - seen
            seen |= new
            queue += new
        labels.append(min(seen))
    return labels


# -- clusters of documents -------------------------------------------------------------------------

Line = tuple[int, int, int, int, int]


class Documents:
    """Documents by id with the rows of each, and their distances: plain Python."""

    def __init__(self, rows: Any, ids: Any, h: int) -> None:
        self.h = h
        self.rows: dict[int, list[int]] = {}
        for row, name in enumerate(ids.tolist()):
            self.rows.setdefault(name, []).append(row)
        self.apart = oracle.distances(rows, rows)
        self.names = sorted(self.rows)

    def distance(self, x: int, y: int) -> int:
        return int(self.apart[np.ix_(self.rows[x], self.rows[y])].min())

    def near(self, x: int, y: int) -> bool:
        return x != y and self.distance(x, y) <= self.h

    def lines(self, representative: dict[int, int]) -> list[Line]:
        members: dict[int, list[int]] = {}
        for name, of in representative.items():
            members.setdefault(of, []).append(name)
        return sorted(
            (
                (name, min(members[of]), of, self.distance(name, of) if name != of else 0,
                 len(members[of]))
                for name, of in representative.items()
            ),
            key=lambda line: (line[1], line[0]),
        )  # fmt: skip

    def components(self) -> list[Line]:
        pairs = [
            (i, j) for i, x in enumerate(self.names) for j, y in enumerate(self.names)
            if self.near(x, y)
        ]
        labels = smallest_reachable(pairs, len(self.names))
        return self.lines(
            {name: self.names[label] for name, label in zip(self.names, labels, strict=True)}
        )

    def stars(self) -> list[Line]:
        pairs = {}
        for x in self.names:
            within = self.apart[self.rows[x]] <= self.h
            pairs[x] = int(within.sum() - within[:, self.rows[x]].sum())
        free, centres = set(self.names), []
        for x in sorted(self.names, key=lambda name: (-pairs[name], name)):
            if x in free:
                centres.append(x)
                free -= {y for y in free if y == x or self.near(x, y)}
        return self.lines({
            x: x if x in centres else min((self.distance(x, c), c) for c in centres)[1]
            for x in self.names
        })


def listed(found: Clusters) -> list[Line]:
    assert [column.dtype for column in (found.id, found.cluster, found.representative)] == (
        [np.dtype(np.uint64)] * 3
    )
    return [tuple(one) for one in found]


def some_rows(rng: np.random.Generator, n: int, words: int, kind: str) -> Any:
    """Families that chain, documents that are equal, and others."""
    rows = oracle.skewed(rng, n, words, templates=max(1, n // 8), flips=5)
    if kind == "equal":
        rows = rows[rng.integers(0, n // 4 + 1, n)]
    return rows


@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 80), words=st.sampled_from([1, 1, 2, 8]),
    h=st.integers(0, 8), kind=st.sampled_from(["families", "equal"]),
    mode=st.sampled_from(["components", "star"]),
)
@pytest.mark.slow
def test_clusters_in_memory_are_those_of_brute_force(
    seed: int, n: int, words: int, h: int, kind: str, mode: str
) -> None:
    rows = some_rows(np.random.default_rng(seed), n, words, kind)
    truth = Documents(rows, np.arange(n), h)
    expected = truth.stars() if mode == "star" else truth.components()
    found = simindex.find_clusters(rows, h=h, mode=mode)
    assert listed(found) == expected
    grouped = simindex.find_clusters(rows, h=h, mode=mode, singletons=False)
    assert listed(grouped) == [line for line in expected if line[4] > 1]
    for one in (found, grouped):
        assert one.documents == n
        assert one.alone == sum(line[4] == 1 for line in expected)
        assert one.clusters == len({line[1] for line in expected if line[4] > 1})
    assert found.largest == max(line[4] for line in expected)


@pytest.mark.parametrize("mode", ["components", "star"])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_clusters_of_an_index_are_those_of_its_documents(
    tmp_path: Path, mode: str, repeated: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order they were appended, in segments or pending, with others deleted."""
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 260, 1, "equal" if seed % 2 else "families")
    ids = rng.integers(0, 2**64, 260, dtype=np.uint64)
    if repeated:
        ids[:] = ids[rng.integers(0, 180, 260)]
    gone = ids[rng.integers(0, 260, 30)]
    live = ~np.isin(ids, gone)
    truth = Documents(rows[live], ids[live], 3)
    expected = truth.stars() if mode == "star" else truth.components()
    options = simindex.IndexOptions(batch_rows=400, min_merge=0)
    for number in range(2):
        order = rng.permutation(260)
        with simindex.open(tmp_path / f"{number}.sim", "c", options=options) as index:
            for some in np.split(order, [100, 110, 200]):
                index.append(rows[some, 0], ids=ids[some])
                index.commit()
            index.delete(ids=gone)
            index.commit()
            assert listed(index.clusters(h=3, mode=mode)) == expected
            with monkeypatch.context() as patch:
                patch.setattr(Room, "within", lambda *_, **__: Room(20, 30))
                for threads in (1, 2):
                    found = index.clusters(h=3, mode=mode, threads=threads)
                    assert listed(found) == expected
            without = index.clusters(h=3, mode=mode, singletons=False)
            assert listed(without) == [line for line in expected if line[4] > 1]


def test_a_star_does_not_glue_a_chain() -> None:
    """Four documents, each within 2 of the next, and the ends 6 apart."""
    rows = np.array([0, 0b11, 0b1111, 0b111111], np.uint64)
    linked = simindex.find_clusters(rows, h=2, mode="components")
    assert [one.cluster for one in linked] == [0, 0, 0, 0]
    assert [one.distance for one in linked] == [0, 2, 4, 6]
    stars = simindex.find_clusters(rows, h=2)
    assert listed(stars) == [(0, 0, 1, 2, 3), (1, 0, 1, 0, 3), (2, 0, 1, 2, 3), (3, 3, 3, 0, 1)]


@given(seed=st.integers(0, 2**32), h=st.integers(0, 5))
@pytest.mark.slow
def test_every_member_of_a_star_is_within_h_and_no_two_centres_are(seed: int, h: int) -> None:
    rows = some_rows(np.random.default_rng(seed), 150, 1, "families")
    found = simindex.find_clusters(rows, h=h, mode="star")
    apart = oracle.distances(rows, rows)
    to_centre = apart[found.id.astype(np.int64), found.representative.astype(np.int64)]
    assert (to_centre <= h).all()
    assert np.array_equal(to_centre, found.distance)
    centres = np.unique(found.representative).astype(np.int64)
    between = apart[np.ix_(centres, centres)]
    assert (between[~np.eye(len(centres), dtype=bool)] > h).all()


@pytest.mark.parametrize("mode", ["components", "star"])
@pytest.mark.slow
def test_a_million_equal_rows_are_one_cluster(mode: str) -> None:
    rows = np.full(1_000_000, 99, np.uint64)
    rows[::2] = 98
    found = simindex.find_clusters(rows, mode=mode)
    assert (found.clusters, found.largest, found.alone) == (1, 1_000_000, 0)
    assert (found.representative == 0).all()
    assert found.distance.sum() == 500_000


def test_clusters_have_the_keys_of_their_documents(index_path: Path) -> None:
    keys = [f"page {n}" for n in range(5)]
    with simindex.open(index_path, "c", options=simindex.IndexOptions(keys=True)) as index:
        ids = index.append(np.array([0, 1, 3, 1 << 50, 1 << 20], np.uint64), keys=keys)
        index.commit()
        found = index.clusters(h=1, mode="star", singletons=False)
        named = found.keys()
        heads = found.representative_keys()
        firsts = found.cluster_keys()
    assert named is not None and heads is not None and firsts is not None
    name = dict(zip(ids.tolist(), keys, strict=True))
    assert named == [name[one] for one in found.id.tolist()]
    assert heads == [name[one] for one in found.representative.tolist()]
    assert firsts == [name[one] for one in found.cluster.tolist()]
    assert {"page 0", "page 1"} <= set(named)
    assert simindex.find_clusters(np.zeros(2, np.uint64)).keys() is None


def test_pickled_clusters_bring_their_keys(index_path: Path) -> None:
    keys = [f"page {n}" for n in range(5)]
    with simindex.open(index_path, "c", options=simindex.IndexOptions(keys=True)) as index:
        index.append(np.array([0, 1, 3, 1 << 50, 1 << 20], np.uint64), keys=keys)
        index.commit()
        for found in (index.clusters(h=1), next(index.clusters(h=1).slices(2))):
            again = pickle.loads(pickle.dumps(found))  # noqa: S301
            assert list(again) == list(found)
            assert (again.mode, again.documents) == (found.mode, found.documents)
            assert again.keys() == found.keys() is not None
            assert again.representative_keys() == found.representative_keys()
            assert again.cluster_keys() == found.cluster_keys()
    found = simindex.find_clusters(np.zeros(2, np.uint64))
    assert list(pickle.loads(pickle.dumps(found))) == list(found)  # noqa: S301


@pytest.mark.parametrize("mode", ["components", "star"])
def test_no_documents_are_no_clusters(index_path: Path, mode: str) -> None:
    found = simindex.find_clusters(np.empty(0, np.uint64), mode=mode)
    assert (len(found), found.clusters, found.largest, found.alone) == (0, 0, 0, 0)
    with simindex.open(index_path, "c") as index:
        assert len(index.clusters(mode=mode)) == 0


def test_pairs_of_stars_have_a_limit_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept until all are found; components keep none."""
    rows = np.uint64(1) << np.arange(60, dtype=np.uint64)
    monkeypatch.setattr(stars, "answer_bytes", lambda: stars.PAIR_BYTES * 60 * 59 // 2)
    assert simindex.find_clusters(rows, h=2, mode="star").clusters == 1
    more = np.append(rows, np.uint64(0))
    with pytest.raises(simindex.TooManyMatches, match="of the memory") as caught:
        simindex.find_clusters(more, h=2, mode="star")
    assert "components" in str(caught.value.remedy)
    assert simindex.find_clusters(more, h=2, mode="components").clusters == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise")
@pytest.mark.parametrize(("call", "limit_mib"), [("pairs", 64), ("pairs", 160), ("clusters", 96)])
def test_memory_stays_within_the_limit(index_path: Path, call: str, limit_mib: int) -> None:
    """Of the process, pages of the index aside, for millions of pairs."""
    rng = np.random.default_rng(9)
    templates = rng.integers(0, 1 << 63, 1000, dtype=np.uint64)
    rows = templates[rng.integers(0, len(templates), 400_000)]
    for _ in range(2):
        rows = rows ^ (np.uint64(1) << rng.integers(0, 64, len(rows), dtype=np.uint64))
    with simindex.open(index_path, "n") as index:
        index.append(rows)
    program = textwrap.dedent("""
        import re, sys, threading
        from pathlib import Path
        import numpy as np, simindex
        def own_mib():
            status = Path("/proc/self/status").read_text()
            return int(re.search(r"RssAnon:\\s+(\\d+)", status).group(1)) / 1024
        index, limit = simindex.open(sys.argv[1]), int(sys.argv[3])
        before, peak, done = own_mib(), 0.0, threading.Event()
        def watch():
            global peak
            while not done.wait(0.001):
                peak = max(peak, own_mib())
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        if sys.argv[2] == "pairs":
            found = sum(map(len, index.pairs(h=3, memory_limit=limit << 20)))
            assert found > 5_000_000, found
        else:
            found = index.clusters(h=3, mode="components", memory_limit=limit << 20)
            assert found.clusters <= 1100, found.clusters
        done.set()
        watcher.join()
        assert 1 < peak - before < limit, peak - before
    """)
    subprocess.run(
        [sys.executable, "-c", program, str(index_path), call, str(limit_mib)], check=True,
        timeout=300,
    )


@pytest.mark.slow
def test_a_wrong_option_is_refused(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(5000, dtype=np.uint64))
        index.commit()
        for options in ({"mode": "stars"}, {"h": 65}, {"threads": 0}, {"memory_limit": -1}):
            with pytest.raises(InvalidOption):
                index.clusters(**options)
        with pytest.raises(InvalidOption) as caught:
            index.clusters(mode="components", memory_limit=100)
        index.clusters(mode="components", memory_limit=caught.value.data["expected"])
        with pytest.raises(InvalidOption, match="pairs of different fingerprints"):
            index.clusters(h=6, mode="star", memory_limit=caught.value.data["expected"] + (1 << 20))
    with pytest.raises(InvalidBatch):
        simindex.find_clusters(np.zeros(3))
    with pytest.raises(InvalidOption):
        simindex.find_clusters(np.zeros(3, np.uint64), h=-1)


@given(st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40)
    )
))  # fmt: skip
def test_a_label_is_the_smallest_row_that_can_be_reached(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    n, pairs = graph
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert connected(a, b, n) == smallest_reachable(pairs, n)


def test_a_long_chain_in_any_order_is_one_group() -> None:
    n = 20_000
    order = np.random.default_rng(3).permutation(n)
    assert connected(order[:-1], order[1:], n) == [0] * n
    assert connected([], [], 3) == [0, 1, 2]


def test_the_kernels_refuse_what_is_not_there() -> None:
    forest = _native.Forest(4)
    forest.unite(np.array([3], np.uint64), np.array([1], np.uint64))
    with pytest.raises(ValueError, match="outside"):
        forest.unite(np.array([1], np.uint64), np.array([4], np.uint64))
    assert forest.labels().tolist() == [0, 1, 2, 1]
    rows = np.arange(3, dtype=np.uint32)
    none, bits = np.empty(0, np.uint32), np.empty(0, np.uint16)
    one, bit = np.array([7], np.uint32), np.ones(1, np.uint16)
    for first, document, a, distance in (
        (rows + 1, rows, none, bits), (rows, rows + 1, none, bits), (rows, rows, one, bit)
    ):
        with pytest.raises(ValueError, match="not there"):
            _native.star(
                first.astype(np.uint32), document.astype(np.uint32), 3, a, a, distance,
                np.empty(0, np.uint64),
            )
