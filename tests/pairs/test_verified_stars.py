"""Stars with doubtful pairs, against a plain loop over documents that knows all similarities."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import Recipe
from simindex._kernels import _native
from simindex.pairs import doubtful_pairs
from simindex.pairs.clusters import NO_DOCUMENT
from simindex.pairs.doubtful_pairs import Verifier
from simindex.pairs.stars import NearPairs
from simindex.pairs.verified_stars import Doubtful, ranks_by_pairs, verified_stars
from simindex.planning.doubt import Doubt
from simindex.planning.similarity import Similar

ROWS, CERTAIN, KEPT, MOST = 14, 2, 4, 6
ASKED = Similar(0.9, 12, 1.0, 64, 512, KEPT)


class Known(Verifier):
    """Texts are numbers of documents, whose similarities a table has."""

    def __init__(self, table: dict[tuple[int, int], float | None]) -> None:
        super().__init__(Doubt(ASKED, CERTAIN, MOST), Recipe())
        self.table = table

    def exact(self, pairs: Any) -> list[float | None]:
        numbers = [(int(some[0]), int(others[0])) for some, others in pairs]
        return [self.table[min(pair), max(pair)] for pair in numbers]


@dataclass
class Case:
    """Rows with their documents, equal rows, and pairs of the first ones."""

    of_row: list[int]
    first: list[int]
    edges: dict[tuple[int, int], int]
    exact: dict[tuple[int, int], float | None]

    @property
    def documents(self) -> int:
        return max(self.of_row) + 1

    def near(self) -> NearPairs:
        a, b = np.array([*self.edges], np.uint32).reshape(-1, 2).T
        return NearPairs(
            np.array(self.first, np.uint32), np.ascontiguousarray(a), np.ascontiguousarray(b),
            np.array([*self.edges.values()], np.uint16),
        )

    def distances(self) -> dict[int, dict[int, int]]:
        """Of each document those near it, with the least distance between their rows."""
        near: dict[int, dict[int, int]] = {name: {} for name in range(self.documents)}
        for row, one in enumerate(self.of_row):
            for other_row, other in enumerate(self.of_row):
                f, g = self.first[row], self.first[other_row]
                bits = 0 if f == g else self.edges.get((min(f, g), max(f, g)))
                if one != other and bits is not None:
                    near[one][other] = min(bits, near[one].get(other, bits))
        return near

    def pairs(self) -> list[int]:
        """Of each document the pairs of its rows with rows of others, by the estimate."""
        count = [0] * self.documents
        for row, one in enumerate(self.of_row):
            for other_row, other in enumerate(self.of_row):
                f, g = self.first[row], self.first[other_row]
                near = f == g or self.edges.get((min(f, g), max(f, g)), MOST) <= KEPT
                count[one] += one != other and near
        return count


@st.composite
def cases(draw: st.DrawFn) -> Case:
    first: list[int] = []
    for row in range(ROWS):
        heads = [head for head in range(row) if first[head] == head]
        first.append(draw(st.sampled_from([row, row, *heads])))
    raw = [draw(st.integers(0, row)) for row in range(ROWS)]
    names = sorted(set(raw))
    of_row = [names.index(name) for name in raw] if draw(st.booleans()) else [*range(ROWS)]
    heads = sorted(set(first))
    pairs = st.tuples(st.sampled_from(heads), st.sampled_from(heads))
    edges = draw(st.dictionaries(
        pairs.filter(lambda pair: pair[0] < pair[1]), st.integers(1, MOST), max_size=40
    ))
    likely = st.sampled_from([0.85, 0.95, 0.95, None])
    exact = {(a, b): draw(likely) for a in range(ROWS) for b in range(a + 1, ROWS)}
    return Case(of_row, first, edges, exact)


def stars_of(case: Case, rank: list[int], most_compared: int) -> dict[int, tuple[int, int, float]]:
    """By the definition: one document after the other, each with all before it."""
    near = case.distances()

    def by_text(name: int, kept: list[int]) -> tuple[int, int, float] | None:
        doubtful = sorted((near[name][other], other) for other in kept if other in near[name])
        fallback = None
        for distance, other in doubtful[:most_compared]:
            exact = case.exact[min(name, other), max(name, other)]
            if exact is None and distance <= KEPT and fallback is None:
                fallback = other, distance, nan
            if exact is not None and exact >= 0.9:
                return other, distance, exact
        return fallback

    kept: list[int] = []
    joined: dict[int, tuple[int, int, float]] = {}
    for name in sorted(near, key=lambda name: (rank[name], name)):
        if any(near[name].get(other, MOST) <= CERTAIN for other in kept):
            joined[name] = name, 0, nan
        elif found := by_text(name, kept):
            joined[name] = found
        else:
            kept.append(name)
    for name in joined:
        certain = [(near[name].get(other, MOST), other) for other in kept]
        if min(certain)[0] <= CERTAIN:
            joined[name] = min(certain)[1], min(certain)[0], nan
    return {name: (name, 0, nan) for name in kept} | joined


def found_of(case: Case, rank: Any) -> dict[int, tuple[int, int, float]]:
    near, of_row = case.near(), np.array(case.of_row, np.uint32)
    forest = near.forest()
    for name in range(case.documents):
        rows = np.flatnonzero(of_row == name).astype(np.uint64)
        forest.unite(rows[1:], rows[:-1])
    doubtful = Doubtful.of(near, forest.labels(), of_row, CERTAIN, NO_DOCUMENT)
    representative, distance, exact = verified_stars(
        near, of_row, case.documents, rank, doubtful, Known(case.exact), lambda name: (str(name),)
    )
    columns = representative.tolist(), distance.tolist(), exact.tolist()
    return dict(enumerate(zip(*columns, strict=True)))


@given(cases(), st.sampled_from([1, 2, 16]), st.randoms())
@pytest.mark.slow
def test_stars_are_those_of_a_plain_loop(case: Case, most_compared: int, random: Any) -> None:
    """With equal rows, documents of several rows, and pairs of which no text is known."""
    rank = [*range(case.documents)]
    random.shuffle(rank)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(doubtful_pairs, "MOST_COMPARED", most_compared)
        found = found_of(case, np.array(rank, np.uint64))
        expected = stars_of(case, rank, most_compared)
    assert {name: one[:2] for name, one in found.items()} == {
        name: one[:2] for name, one in expected.items()
    }
    known = [expected[name][2] for name in found]
    assert np.allclose([one[2] for one in found.values()], known, equal_nan=True)


@given(cases())
@pytest.mark.slow
def test_documents_rank_as_the_kernel_ranks_them(case: Case) -> None:
    """So that the order is that of stars without texts."""
    near, of_row = case.near(), np.array(case.of_row, np.uint32)
    rank = ranks_by_pairs(near, of_row, case.documents, KEPT, NO_DOCUMENT)
    assert (np.uint64(1 << 62) - rank).tolist() == case.pairs()
    some = near.distance <= KEPT
    kept = NearPairs(near.first, near.a[some], near.b[some], near.distance[some])
    for one, other in zip(
        kept.stars(of_row, case.documents), kept.stars(of_row, case.documents, rank), strict=True
    ):
        assert one.tolist() == other.tolist()


def test_families_without_doubt_need_no_texts() -> None:
    """Only what doubtful pairs connect is asked for; a deleted row is no document."""
    first, of_row = np.arange(7, dtype=np.uint32), np.array([0, 1, 2, 3, 4, 0, NO_DOCUMENT], "u4")
    columns = np.array([[0, 1], [2, 3], [3, 4]], np.uint32).T
    near = NearPairs(first, columns[0].copy(), columns[1].copy(), np.array([1, 2, 5], np.uint16))
    forest = _native.Forest(7)
    forest.unite(columns[0].astype(np.uint64), columns[1].astype(np.uint64))
    doubtful = Doubtful.of(near, forest.labels(), of_row, CERTAIN, NO_DOCUMENT)
    assert doubtful.documents.tolist() == [2, 3, 4]
    assert doubtful.asked.tolist() == [3, 4]
    assert doubtful.pairs.tolist() == [False, True, True]
