"""The index asks itself: sampled rows as queries, once as asked and once exactly.

    reservoir rows with their weights    the last in its order, the least likely to have taught
                                         how bits flip
    each is asked twice                  at the recall asked for, and at 1.0
    its share                            matches found / matches there are, equal texts left out

The measured recall is the mean share of the rows that have a match, as an expected recall is;
equal texts are found without a flip and say nothing. The interval is Wilson's with one trial for
each such row, which is wide enough whatever the spread of shares within 0 and 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from math import isfinite, sqrt
from typing import TYPE_CHECKING

import msgpack
import numpy as np

from simindex.arrays import I64
from simindex.checks import require_whole
from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.records.batch import Batch
from simindex.records.matches import Matches
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.tables.reservoir import Reservoir

if TYPE_CHECKING:
    from simindex.records.reports import Audit

MATCHES_AT_ONCE = 1 << 20
"""Matches that a call should bring at a time."""

MOST_AT_ONCE = 1024

CONFIDENCE_Z = 1.959963984540054
"""Standard deviations that hold 95% of a normal distribution."""

Ask = Callable[[Batch, float], Matches]


def audit(
    reservoir: Reservoir,
    ask: Ask,
    *,
    h: int,
    recall: float,
    sample: int,
    generation: int,
    index_rows: int,
    budget_s: float = float("inf"),
) -> Audit:
    """What share of matches is found at `recall`, measured on at most `sample` rows.

    No more rows are asked once it has taken `budget_s`.

    `ask(batch, recall)` answers on one snapshot. A text that half the index is near to is asked
    alone, so that its matches do not fill the memory.
    """
    from simindex.records.reports import Audit

    sample = check_sample(sample)
    first = max(0, len(reservoir) - sample)
    rows, weights = reservoir.fingerprints[first:], reservoir.weights[first:].astype(np.float32)
    method, guarantee = "none", "exact"
    shares = [np.empty(0)]
    pairs = found = 0
    start, size = 0, 16
    until = time.perf_counter() + budget_s
    while start < len(rows) and (start == 0 or time.perf_counter() < until):
        batch = Batch(rows[start : start + size], weights=weights[start : start + size])
        answer = ask(batch, recall)
        method, guarantee = answer.stats.method, answer.stats.guarantee
        exact = ask(batch, 1.0)
        got, there = _apart(answer, len(batch)), _apart(exact, len(batch))
        some = there > 0
        shares.append(got[some] / there[some])
        pairs, found = pairs + int(there.sum()), found + int(got.sum())
        start += len(batch)
        most = int(np.bincount(exact.query, minlength=1).max())
        size = max(1, min(2 * size, MOST_AT_ONCE, MATCHES_AT_ONCE // (most + 1)))
    share = np.concatenate(shares)
    mean = float(share.mean()) if len(share) else None
    low, high = (0.0, 1.0) if mean is None else wilson(mean, len(share))
    return Audit(
        generation=generation, h=h, asked=float(recall), method=method, guarantee=guarantee,
        recall=mean, recall_low=low, recall_high=high, rows=start, rows_with_match=len(share),
        matches=pairs, found=found, index_rows=index_rows,
    )


def check_sample(sample: object) -> int:
    """The number of rows; refuses what is none with InvalidOption."""
    return require_whole(sample, "sample", 1)


def _apart(matches: Matches, queries: int) -> I64:
    """How many matches each query has that are not equal to it."""
    return np.bincount(matches.query[matches.distance > 0], minlength=queries)


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Wilson's interval of 95% for a share measured in some independent trials.

    It stays within 0 and 1, and has a width where the share itself is 0 or 1. Trials that depend on
    each other count as fewer, so the number need not be whole. No trial gives (0, 1).
    """
    if trials <= 0:
        return 0.0, 1.0
    z2 = CONFIDENCE_Z**2 / trials
    middle = share + z2 / 2
    half = sqrt(z2 * (share * (1 - share) + z2 / 4))
    low, high = (middle - half) / (1 + z2), (middle + half) / (1 + z2)
    return max(0.0, min(low, share)), min(1.0, max(high, share))  # rounding must not part them


def encode(audit: Audit) -> bytes:
    """The audit as the catalog keeps it."""
    packed: bytes = msgpack.packb(asdict(audit))
    return packed


def of_nothing() -> Audit:
    """An audit without a query."""
    from simindex.records.reports import Audit

    return Audit(0, 0, 0.0, "", "", None, 0.0, 1.0, 0, 0, 0, 0)


def decode(payload: bytes) -> Audit:
    """The audit of a payload whose checksum held."""
    none = of_nothing()
    try:
        found = replace(none, **unpack("meta/audit", payload))
        for name, usual in asdict(none).items():
            value = getattr(found, name)
            number = isinstance(usual, float) or name == "recall"
            kinds: tuple[type, ...] = (float, int, type(usual)) if number else (type(usual),)
            if type(value) not in kinds or (isinstance(value, float) and not isfinite(value)):
                raise TypeError(f"{name} is {value!r}")
    except TypeError as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile("the audit in the catalog cannot be read", path="meta/audit") from error
    return found
