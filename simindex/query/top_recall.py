"""The least max_error that finds enough of the nearest documents, measured on the index itself.

    rows of the index, drawn over all tables     each asked for its k + 1 nearest documents
    the truth                                    by a scan; its own id is left out of both
    share of a row                               of its k places, those at most as far as the true
                                                 k-th: of equally near documents any will do
    max_error 0, 1, 2, ...                       the first whose mean share, less what chance may
                                                 have added (95%, one-sided), reaches the recall

A max_error that is expected to take longer than a scan is not tried, unless slice lists are asked
for by name: then there is none, and everything is compared. Rows of the index take the place of
future queries. For queries that are unlike all rows, less may be found.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from simindex.arrays import F64, I64, U16, U64
from simindex.options import IndexOptions
from simindex.planning.calibration import NORMAL_95
from simindex.planning.costs import top_scanning_ns
from simindex.planning.machine import Machine
from simindex.planning.planner import Measured, TopPlan, plan_top, scan_top
from simindex.planning.question import TopQuestion
from simindex.query import surveys
from simindex.query.nearest import nearest
from simindex.storage.files.checksums import verified_at
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

SAMPLE_ROWS, LEAST_ROWS = 256, 32
"""Rows that are asked, and fewest where the index is so large that the truth takes long."""

TRUTH_S = 1.0
"""About how long that may take, on one thread."""

MORE_RERANKED = 8
"""Up to this many times the usual rows are compared before more lists are read."""

DRAWS = 8
"""Times that rows are drawn, twice as many each time, where many are deleted."""


def measure(
    snapshot: Snapshot, question: TopQuestion, machine: Machine, options: IndexOptions
) -> Measured | None:
    """The least max_error that reaches `question.recall`; None if none does, or is worth it."""
    width = snapshot.slice_bits
    if width is None or question.recall is None:
        return None
    whole_ns, shared_ns = (
        sum(
            top_scanning_ns(machine, len(table), table.fingerprints.shape[1], queries)
            for table in snapshot.tables
        )
        for queries in (1, SAMPLE_ROWS)
    )
    most = max(LEAST_ROWS, min(SAMPLE_ROWS, int(TRUTH_S * 1e9 / max(1.0, shared_ns))))
    rows, own = drawn(snapshot, most)
    if not len(rows):
        return None

    further = replace(question, k=question.k + 1, threads=None)

    def distances(planned: TopPlan) -> U16:
        found = nearest(snapshot, planned, rows, further, options=options)
        return without_own(found.id, found.distance, own)

    truth = distances(scan_top(snapshot.tables, queries=len(rows), machine=machine))
    for max_error in range(width + 1):
        tried = replace(question, max_error=max_error)
        listed = surveys.top(snapshot.tables, tried)
        for _ in range(2):
            planned = plan_top(
                snapshot.tables, tried, queries=1, machine=machine, surveys=listed
            )
            if planned.rerank is None:
                return None
            if question.method == "auto" and whole_ns <= sum(
                one.nanoseconds for one in planned.tables
            ):
                return None
            found = shares(truth, distances(planned), options.bits)
            mean, low = confident(found)
            if low >= question.recall:
                return Measured(max_error, tried.rerank, mean, low, len(found))
            tried = replace(tried, rerank=MORE_RERANKED * planned.rerank)
    return None


def drawn(snapshot: Snapshot, most: int) -> tuple[U64, U64]:
    """Live rows of all tables, drawn evenly, (s, W), and their ids; the same for the same index."""
    rng = np.random.default_rng(2013)
    stored = snapshot.stored_rows
    chosen: list[tuple[Table, I64]] = []
    for attempt in range(DRAWS):
        size = min(most << attempt, stored)
        chosen = _live_among(snapshot, np.sort(rng.choice(stored, size, replace=False)))
        if size == stored or sum(len(rows) for _, rows in chosen) >= most:
            break
    if not chosen:
        return np.empty((0, 1), np.uint64), np.empty(0, np.uint64)
    fingerprints = np.concatenate([verified_at(table.fingerprints, rows) for table, rows in chosen])
    ids = np.concatenate([verified_at(table.ids, rows) for table, rows in chosen])
    some = np.sort(rng.permutation(len(ids))[:most])
    return fingerprints[some], ids[some]


def _live_among(snapshot: Snapshot, numbers: I64) -> list[tuple[Table, I64]]:
    """Of rows numbered through all tables, in rising order, those not deleted, by table."""
    found, first = [], 0
    for table in snapshot.tables:
        low, high = np.searchsorted(numbers, (first, first + len(table))).tolist()
        rows = numbers[low:high] - first
        dead = snapshot.dead(table)
        found.append((table, rows if dead is None else rows[dead[rows] == 0]))
        first += len(table)
    return found


def without_own(ids: U64, distances: U16, own: U64) -> U16:
    """Distances (s, k) in (s, k + 1) places, without the document itself, or else the last."""
    mine = ids == own[:, None]
    # An empty place has an id, too; to leave that out leaves out none of the documents.
    gone = np.where(mine.any(axis=1), mine.argmax(axis=1), ids.shape[1] - 1)
    kept = np.arange(ids.shape[1])[None, :] != gone[:, None]
    left: U16 = distances[kept].reshape(len(ids), ids.shape[1] - 1)
    return left


def shares(truth: U16, found: U16, bits: int) -> F64:
    """Of each row with a neighbour, the share of its places that hold one near enough."""
    filled = (truth <= bits).sum(axis=1)
    some = np.flatnonzero(filled)
    farthest = truth[some, filled[some] - 1]
    enough = (found[some] <= farthest[:, None]).sum(axis=1)
    share: F64 = np.minimum(1.0, enough / filled[some])
    return share


def confident(share: F64) -> tuple[float, float]:
    """Mean of the shares, and what it is at least with 95% confidence; (0, 0) of none."""
    if not len(share):
        return 0.0, 0.0
    mean = float(share.mean())
    error = float(share.std(ddof=1)) / sqrt(len(share)) if len(share) > 1 else 0.0
    return mean, max(0.0, mean - NORMAL_95 * error)
