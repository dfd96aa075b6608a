"""Candidates that a search has found, kept or rejected by their sketches.

    found      rows within h of a query, by table
    kept       those whose sketches differ from the query's in at most `most` bits; their distance
               is then that of the sketches, so that what follows goes by similarity
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U16, U64
from simindex.methods.base import Found, QueryPlan, take
from simindex.planning.similarity import Similar
from simindex.records.sketches import sizes_of
from simindex.storage.tables.sketches import sketches_at
from simindex.storage.tables.table import Table

COMPARED_BYTES = 1 << 22
"""Of sketches that are compared at a time."""


class Sketched(NamedTuple):
    """The sketches of some queries, and how similar rows must be."""

    sketches: U8
    """(m, 8 S + 1), records"""
    similar: Similar

    def slice(self, start: int, stop: int) -> Sketched:
        """Those of some of the queries."""
        return self._replace(sketches=self.sketches[start:stop])

    def kept(self, table: Table, found: Found) -> Found:
        """The rows found whose sketches are near enough, with the distance of these.

        Raises CorruptFile if a sketch that it reads is damaged.
        """
        distance = np.empty(len(found.query), np.uint16)
        order = np.argsort(found.row, kind="stable")  # as they lie in the file
        step = max(1, COMPARED_BYTES // self.sketches.shape[1])
        for start in range(0, len(order), step):
            some = order[start : start + step]
            theirs = sketches_at(table, found.row[some].astype(np.int64))
            distance[some] = distances(
                self.sketches, found.query[some].astype(np.int64, copy=False), theirs,
                np.arange(len(some), dtype=np.int64), self.similar,
            )
        kept = np.flatnonzero(distance <= self.similar.most)
        return take(found._replace(distance=distance), kept)


def promised(plan: QueryPlan, similar: Similar | None) -> tuple[str, bool]:
    """What an answer promises by a plan, in words, and whether that is exact."""
    if similar is None:
        return plan.guarantee, plan.exact
    return similar.guarantee(plan.guarantee), False


def apart(some: U64, others: U64) -> U16:
    """uint16 (n,): in how many bits the rows at the same places differ."""
    differing: U16 = np.bitwise_count(some ^ others).sum(axis=1, dtype=np.uint16)
    return differing


def distances(some: U8, one: I64, others: U8, other: I64, similar: Similar) -> U16:
    """uint16 (n,): how far rows `one` of some records and rows `other` of others are apart, as the
    measure sees it: see `Similar.by_sizes`."""
    differing = _native.record_distances(some, one, others, other)
    if not similar.sees_sizes:
        return differing
    return similar.by_sizes(differing, sizes_of(some)[one], sizes_of(others)[other])


def kept_pairs(sketches: U8, one: I64, other: I64, similar: Similar) -> tuple[I64, U16]:
    """Which pairs of rows have sketches that are near enough: their places, and how far each of
    these is apart."""
    distance = distances(
        sketches, one.astype(np.int64, copy=False), sketches, other.astype(np.int64, copy=False),
        similar,
    )
    places = np.flatnonzero(distance <= similar.most)
    return places, distance[places]
