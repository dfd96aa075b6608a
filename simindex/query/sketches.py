"""Candidates that a search has found, kept or rejected by their sketches.

    found      rows within h of a query, by table
    kept       those whose sketches differ from the query's in at most `most` bits; their distance
               is then that of the sketches, so that what follows goes by similarity
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simindex.arrays import I64, U16, U64
from simindex.methods.base import Found, QueryPlan, take
from simindex.planning.similarity import Similar
from simindex.storage.tables.sketches import sketches_at
from simindex.storage.tables.table import Table

COMPARED_WORDS = 1 << 19
"""Words of sketches that are compared at a time."""


class Sketched(NamedTuple):
    """The sketches of some queries, and in how many bits those of rows may differ."""

    sketches: U64
    """(m, S)"""
    most: int

    def slice(self, start: int, stop: int) -> Sketched:
        """Those of some of the queries."""
        return self._replace(sketches=self.sketches[start:stop])

    def kept(self, table: Table, found: Found) -> Found:
        """The rows found whose sketches are near enough, with the distance of these.

        Raises CorruptFile if a sketch that it reads is damaged.
        """
        distance = np.empty(len(found.query), np.uint16)
        order = np.argsort(found.row, kind="stable")  # as they lie in the file
        step = max(1, COMPARED_WORDS // self.sketches.shape[1])
        for start in range(0, len(order), step):
            some = order[start : start + step]
            theirs = sketches_at(table, found.row[some].astype(np.int64))
            distance[some] = apart(self.sketches[found.query[some]], theirs)
        return take(found._replace(distance=distance), np.flatnonzero(distance <= self.most))


def promised(plan: QueryPlan, similar: Similar | None) -> tuple[str, bool]:
    """What an answer promises by a plan, in words, and whether that is exact."""
    if similar is None:
        return plan.guarantee, plan.exact
    return similar.guarantee(plan.guarantee), False


def apart(some: U64, others: U64) -> U16:
    """uint16 (n,): in how many bits the rows at the same places differ."""
    differing: U16 = np.bitwise_count(some ^ others).sum(axis=1, dtype=np.uint16)
    return differing


def kept_pairs(sketches: U64, one: I64, other: I64, most: int) -> tuple[I64, U16]:
    """Which pairs of rows have sketches that differ in at most so many bits: their places, and in
    how many each of these does."""
    step = max(1, COMPARED_WORDS // sketches.shape[1])
    distance = np.concatenate([np.empty(0, np.uint16), *(
        apart(sketches[one[start : start + step]], sketches[other[start : start + step]])
        for start in range(0, len(one), step)
    )])
    places = np.flatnonzero(distance <= most)
    return places, distance[places]
