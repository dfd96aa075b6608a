"""Stars of pairs of which some are doubtful, and are decided by the texts of their documents.

    families without a doubtful pair      by the kernel, as all others are
    the other families                    documents by rank, one after the other:

        near for certain a representative before it          -> a member
        doubtful, and its text is near that of one before it -> a member
        else                                                 -> a representative
        at last                            each member joins the nearest representative that it is
                                           near for certain; else the one that its text is near,
                                           or, without a text, the nearest by the estimate

1. A member is near its representative: for certain, by the texts of both, or, where one of the
texts is missing, by the estimate.
2. No two representatives are near for certain. Of the doubtful ones before it, the `MOST_COMPARED`
nearest to a representative are not near it by their texts.
3. The result depends on documents, pairs, texts and ranks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np

from simindex.arrays import F32, I64, U16, U32, U64, Bools
from simindex.pairs.doubtful_pairs import Texts, Verifier
from simindex.pairs.stars import NearPairs
from simindex.values import dataclass

TextsOf = Callable[[int], Texts]
"""The texts of a document by its number."""


PAIR_BYTES = 64
"""Bytes of a pair of families with a doubtful one, beside those of `NearPairs`."""


@dataclass(frozen=True, slots=True, eq=False)
class Doubtful:
    """What of some pairs is in families with a doubtful one."""

    pairs: Bools
    """Of each pair, whether its family is."""
    nodes: Bools
    """Of each row, whether it stands for equal ones in such a family."""
    documents: U32
    """The documents of these families, ascending."""
    asked: U32
    """Those of them that are in a doubtful pair, ascending."""

    @classmethod
    def of(
        cls, near: NearPairs, labels: U32, of_row: U32, certain: int, no_document: np.uint32
    ) -> Doubtful:
        """By the family that each row belongs to."""
        doubtful = near.distance > certain
        family = np.zeros(len(labels), np.bool_)
        family[labels[near.a[doubtful]]] = True
        asked = np.zeros(len(labels), np.bool_)
        asked[near.a[doubtful]] = asked[near.b[doubtful]] = True
        within, live = family[labels], of_row != no_document
        return cls(
            within[near.a], within & live, np.unique(of_row[within & live]),
            np.unique(of_row[asked[near.first] & live]),
        )


class _Lists:
    """Values under heads: those of head i are `values[starts[i]:starts[i + 1]]`."""

    def __init__(self, heads: Any, columns: tuple[Any, ...], count: int, order: Any) -> None:
        self.columns = tuple(column[order] for column in columns)
        self.starts = np.searchsorted(heads[order], np.arange(count + 1))

    def of(self, head: int) -> slice:
        """Where the values of a head are."""
        return slice(int(self.starts[head]), int(self.starts[head + 1]))


def ranks_by_pairs(
    near: NearPairs, of_row: U32, documents: int, most: int, no_document: np.uint32
) -> U64:
    """uint64 (D,): the least for the document with the most pairs of one of its rows and a row of
    another document, within a distance. As the kernel ranks them."""
    rows = np.flatnonzero(of_row != no_document)
    node, document = near.first[rows], of_row[rows]
    size = np.bincount(node, minlength=len(near.first))
    some = near.distance <= most
    a, b = near.a[some], near.b[some]
    reached = size.astype(np.float64)
    reached += np.bincount(a, size[b], len(size)) + np.bincount(b, size[a], len(size))
    pairs = np.bincount(document, reached[node], documents)
    pairs -= _own_pairs(node, document, a, b, documents)
    return np.uint64(1 << 62) - pairs.astype(np.uint64)


def _own_pairs(node: U32, document: U32, a: U32, b: U32, documents: int) -> Any:
    """Of each document the pairs (row, row) of its own, each row with itself, too."""
    key = document.astype(np.uint64) << np.uint64(32) | node
    held, times = np.unique(key, return_counts=True)
    of, at = (held >> np.uint64(32)).astype(np.int64), (held & np.uint64(0xFFFFFFFF))
    own = np.bincount(of, times.astype(np.float64) ** 2, documents)
    several = np.bincount(of, minlength=documents)[of] > 1
    if not several.any():
        return own
    order = np.argsort(at[several], kind="stable")
    nodes, who, count = at[several][order], of[several][order], times[several][order]
    first, last = (np.searchsorted(nodes, a, side=side) for side in ("left", "right"))
    length = last - first
    edge = np.repeat(np.arange(len(a)), length)
    entry = np.arange(len(edge)) - np.repeat(np.cumsum(length) - length, length) + first[edge]
    other = who[entry].astype(np.uint64) << np.uint64(32) | b[edge].astype(np.uint64)
    place = np.minimum(np.searchsorted(held, other), len(held) - 1)
    there = held[place] == other
    both = 2.0 * count[entry][there] * times[place[there]]
    return own + np.bincount(who[entry][there], both, documents)


def verified_stars(
    near: NearPairs, of_row: U32, documents: int, rank: U64, doubtful: Doubtful,
    verifier: Verifier, texts: TextsOf,
) -> tuple[U32, U16, F32]:
    """Representative of each document, the distance to it, and their exact similarity, NaN where
    that was not asked for."""
    rest = ~doubtful.pairs
    others = NearPairs(near.first, near.a[rest], near.b[rest], near.distance[rest])
    representative, distance = others.stars(of_row, documents, rank)
    exact = np.full(documents, nan, np.float32)
    if len(doubtful.documents):
        family = _Family(near, of_row, documents, doubtful)
        family.decide(rank, verifier, texts, (representative, distance, exact))
    return representative, distance, exact


class _Family:
    """Documents and pairs of families with doubtful pairs."""

    def __init__(
        self, near: NearPairs, of_row: U32, documents: int, doubtful: Doubtful
    ) -> None:
        self.documents: I64 = doubtful.documents.astype(np.int64)
        rows = np.flatnonzero(doubtful.nodes)
        place = np.searchsorted(self.documents, of_row[rows])
        nodes, node = np.unique(near.first[rows], return_inverse=True)
        of = np.unique(place.astype(np.uint64) << np.uint64(32) | node.astype(np.uint64))
        head = (of >> np.uint64(32)).astype(np.int64)
        held = (of & np.uint64(0xFFFFFFFF)).astype(np.int64)
        self._nodes_of = _Lists(head, (held,), len(self.documents), np.arange(len(head)))
        a, b = near.a[doubtful.pairs], near.b[doubtful.pairs]
        # A pair may be of rows that are all deleted by now: it leads to no document.
        at = [np.minimum(np.searchsorted(nodes, side), len(nodes) - 1) for side in (a, b)]
        there = (nodes[at[0]] == a) & (nodes[at[1]] == b)
        one, other = at[0][there], at[1][there]
        bits = near.distance[doubtful.pairs][there]
        one, other = one.astype(np.uint32), other.astype(np.uint32)
        source, target = np.r_[one, other], np.r_[other, one]
        both = np.r_[bits, bits]
        self._near = _Lists(source, (target, both), len(nodes), np.argsort(source, kind="stable"))
        self._kept = np.full(len(nodes), -1, np.int64)
        """Of each row, the representative that has it."""

    def decide(
        self, rank: U64, verifier: Verifier, texts: TextsOf, stars: tuple[U32, U16, F32]
    ) -> None:
        """Sets the representative of each document, the distance, and their exact similarity."""
        representative, distance, exact = stars
        certain, most = verifier.doubt.certain, verifier.doubt.similar.most
        joined = np.zeros(len(self.documents), np.bool_)
        for place in np.argsort(rank[self.documents], kind="stable").tolist():
            document = int(self.documents[place])
            near = self._representatives(place)
            found: tuple[int, int, float] | None
            if near and near[0][0] <= certain:
                found = *near[0], nan
            else:
                own = partial(texts, document)
                found = verifier.nearest(own, near, texts)
            joined[place] = found is not None
            if found is None:
                found = 0, document, nan
                self._kept[self._nodes_of.columns[0][self._nodes_of.of(place)]] = document
            distance[document], representative[document], exact[document] = found
        for place in np.flatnonzero(joined).tolist():
            document, near = int(self.documents[place]), self._representatives(place)
            bits = near[0][0]
            # A document without a text is only ever near by the estimate.
            estimated = isnan(exact[document]) and bits <= most
            if bits <= certain or (estimated and not texts(document)):
                distance[document], representative[document] = near[0]
                exact[document] = nan

    def _representatives(self, place: int) -> list[tuple[int, int]]:
        """(distance, document) of those near a document so far, in order."""
        found: dict[int, int] = {}
        nodes = self._nodes_of.columns[0][self._nodes_of.of(place)]
        for node in nodes.tolist():
            own = int(self._kept[node])
            if own >= 0:
                found[own] = 0
            some = self._near.of(node)
            kept, bits = self._kept[self._near.columns[0][some]], self._near.columns[1][some]
            there = kept >= 0
            for other, distance in zip(kept[there].tolist(), bits[there].tolist(), strict=True):
                found[other] = min(distance, found.get(other, distance))
        return sorted((distance, document) for document, distance in found.items())
