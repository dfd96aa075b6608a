"""The least max_error that finds enough of the nearest documents, measured on the index itself.

    rows of the index, drawn over all tables     each asked for its k + 1 nearest documents
    the truth                                    by a scan; its own id is left out of both
    share of a row                               of its k places, those at most as far as the true
                                                 k-th: of equally near documents any will do
    max_error 0, 1, 2, ...                       the first whose mean share, less what chance may
                                                 have added (95%, one-sided), reaches the recall

A max_error that is expected to take longer than a scan is not tried: then there is none, and
everything is compared. Rows of the index stand for the queries to come: of queries unlike any of
them less may be found.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from simindex.calibration import NORMAL_95
from simindex.costs import top_scanning_ns
from simindex.model import Machine
from simindex.nearest import nearest
from simindex.nearest_plan import Measured, TopPlan, TopQuestion, plan, scanned
from simindex.options import IndexOptions
from simindex.records import U64
from simindex.snapshot import Snapshot

SAMPLE_ROWS, LEAST_ROWS = 256, 32
"""Rows that are asked, and fewest where the index is so large that the truth takes long."""

TRUTH_S = 1.0
"""About how long that may take, on one thread."""

RERANKED = (1, 8)
"""Times the rows that are compared otherwise: more of them are tried before more lists."""

DRAWS = 8
"""Times that rows are drawn, twice as many each time, where many are deleted."""

U16 = NDArray[np.uint16]


def measure(
    snapshot: Snapshot, question: TopQuestion, machine: Machine, options: IndexOptions
) -> Measured | None:
    """The least max_error that reaches `question.recall`; None if none does in less than a scan."""
    width = snapshot.slice_bits
    if width is None or question.recall is None:
        return None
    whole_ns, shared_ns = (
        sum(top_scanning_ns(machine, *table.fingerprints.shape, many) for table in snapshot.tables)
        for many in (1, SAMPLE_ROWS)
    )
    most = max(LEAST_ROWS, min(SAMPLE_ROWS, int(TRUTH_S * 1e9 / max(1.0, shared_ns))))
    queries, own = drawn(snapshot, most)
    if not len(queries):
        return None

    def distances(planned: TopPlan) -> U16:
        found = nearest(
            snapshot, planned, queries, k=question.k + 1, threads=None, options=options
        )
        return without_own(found.ids, found.distances, own)

    truth = distances(scanned(snapshot.tables, queries=len(queries), machine=machine))
    for max_error in range(width + 1):
        for times in RERANKED:
            rerank = times * question.rerank
            planned = plan(
                snapshot.tables, question, max_error=max_error, rerank=rerank, queries=1,
                machine=machine,
            )
            if planned.max_error is None or whole_ns <= sum(
                one.nanoseconds for one in planned.tables
            ):
                return None
            share = shares(truth, distances(planned), options.bits)
            mean, low = confident(share)
            if low >= question.recall:
                return Measured(max_error, rerank, mean, low, len(share))
    return None


def drawn(snapshot: Snapshot, most: int) -> tuple[U64, U64]:
    """Live rows of all tables, drawn evenly, (s, W), and their ids; the same for the same index."""
    rng = np.random.default_rng(2013)
    ends = np.cumsum([0, *map(len, snapshot.tables)])
    chosen = np.empty(0, np.int64)
    for attempt in range(DRAWS):
        size = min(most << attempt, int(ends[-1]))
        numbers = np.sort(rng.choice(int(ends[-1]), size, replace=False))
        chosen = np.concatenate([np.empty(0, np.int64), *(
            start + _live(snapshot.dead(table), numbers[(start <= numbers) & (numbers < stop)], start)
            for table, start, stop in zip(snapshot.tables, ends, ends[1:], strict=False)
        )])
        if len(chosen) >= most or size == ends[-1]:
            break
    chosen = np.sort(rng.permutation(chosen)[:most])
    words = snapshot.tables[0].fingerprints.shape[1] if snapshot.tables else 1
    rows, ids = [np.empty((0, words), np.uint64)], [np.empty(0, np.uint64)]
    for table, start, stop in zip(snapshot.tables, ends, ends[1:], strict=False):
        at = chosen[(start <= chosen) & (chosen < stop)] - start
        rows.append(table.fingerprints[at])
        ids.append(table.ids[at])
    return np.concatenate(rows), np.concatenate(ids)


def _live(dead: NDArray[np.uint8] | None, numbers: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    at = numbers - start
    return at if dead is None else at[dead[at] == 0]


def without_own(ids: U64, distances: U16, own: U64) -> U16:
    """Distances (s, k) of what (s, k + 1) places hold beside a document itself, or the last."""
    mine = ids == own[:, None]
    # An empty place has an id, too; to leave that out leaves out none of the documents.
    gone = np.where(mine.any(axis=1), mine.argmax(axis=1), ids.shape[1] - 1)
    kept = np.arange(ids.shape[1])[None, :] != gone[:, None]
    return distances[kept].reshape(len(ids), ids.shape[1] - 1)


def shares(truth: U16, found: U16, bits: int) -> NDArray[np.float64]:
    """Of each row with a neighbour, the share of its places that hold one near enough."""
    filled = (truth <= bits).sum(axis=1)
    some = np.flatnonzero(filled)
    farthest = truth[some, filled[some] - 1]
    enough = (found[some] <= farthest[:, None]).sum(axis=1)
    return np.minimum(1.0, enough / filled[some])


def confident(share: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of the shares, and what it is at least with 95% confidence; (0, 0) of none."""
    if not len(share):
        return 0.0, 0.0
    mean = float(share.mean())
    error = float(share.std(ddof=1)) / sqrt(len(share)) if len(share) > 1 else 0.0
    return mean, max(0.0, mean - NORMAL_95 * error)
