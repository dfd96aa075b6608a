"""Learns how bits flip from the index's own near-duplicates, by searches of the index.

The reservoir's rows, whose weights are known, are queried exactly; the pairs found show which bits
really flip, and give the volatility. What recall they promise is `planning.calibration`'s.
"""

from __future__ import annotations

import numpy as np

from simindex.arrays import F32, I64, U64
from simindex.bits.volatility import from_near_pairs, from_random_pairs, hedged
from simindex.methods.base import Asked
from simindex.planning.calibration import ENOUGH_TEXTS, MODEL_ROWS, Calibration, NearPairs
from simindex.planning.conditions import Conditions
from simindex.planning.machine import USUAL, Machine
from simindex.planning.table_plans import exact_plan
from simindex.query.search import search_by
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.reservoir import in_root_mean_squares

PAIRS_OF_A_TEXT = 64
"""Pairs of one text that count, so that one hot template does not decide."""

COUNTED_PAIRS = 1 << 15
"""Pairs of which flips are counted, evenly among all: a million take seconds to sort by weight."""

FEWEST_ROWS = 128.0
"""Sampled rows that are queried whatever it costs."""

MATCHES_AT_ONCE = 1 << 22
"""Matches that a search for pairs should bring at a time."""


def calibrate(
    snapshot: Snapshot,
    *,
    h: int,
    budget_s: float,
    queries: F32 | None = None,
    machine: Machine = USUAL,
) -> Calibration:
    """Learns from the index's near-duplicates; while it knows few, flips are assumed.

    The assumption is judged by the weights of the index's reservoir, or, if it is empty, by those
    of some queries. Where there are neither, weights are taken to be normal, and the result is
    provisional.

    Parameters
    ----------
    h : int
        Largest distance of the pairs looked for.
    budget_s : float
        Expected seconds the exact search for pairs may take; it bounds how many sampled rows are
        queried.
    """
    reservoir = snapshot.reservoir
    sample = reservoir.weights
    source = f"the weights of {len(sample)} rows of the index"
    if not len(sample) and queries is not None:
        sample = in_root_mean_squares(queries[:MODEL_ROWS])
        source = f"the weights of {len(sample)} of the queries themselves"
    provisional = not len(sample)
    if provisional:
        shape = (MODEL_ROWS, sample.shape[1])
        sample = np.random.default_rng(0).normal(size=shape).astype(np.float16)
        source = "weights of a normal distribution"
    pairs = find_near_pairs(snapshot, h=h, budget_s=budget_s, machine=machine)
    if pairs.texts >= ENOUGH_TEXTS:
        some = slice(None, None, -(-len(pairs.text) // COUNTED_PAIRS))
        bits = np.unpackbits(
            pairs.differing[some].astype(">u8").view(np.uint8), axis=1
        ).astype(np.bool_)
        volatility = from_near_pairs(pairs.weights[pairs.text[some]], bits)
        return Calibration(volatility, pairs, sample, snapshot.stored_rows, provisional)
    by_weight = from_random_pairs(sample, distance=h)
    return Calibration(
        hedged(by_weight, chance=min(0.5, h / sample.shape[1]), source=source),
        pairs, sample, snapshot.stored_rows, provisional, by_weight,
    )


def find_near_pairs(
    snapshot: Snapshot, *, h: int, budget_s: float, machine: Machine = USUAL
) -> NearPairs:
    """Pairs of sampled rows and stored rows at distance 1 to h, found exactly."""
    reservoir = snapshot.reservoir
    asked = Conditions(h, 1024, machine=machine)
    plans = [exact_plan(table, asked) for table in snapshot.tables]
    row_s = max(1e-9, sum(plan.nanoseconds for plan in plans) * 1e-9)
    rows = int(min(len(reservoir), max(FEWEST_ROWS, budget_s / row_s)))
    queries = np.ascontiguousarray(reservoir.fingerprints[:rows])
    texts, xors = [np.empty(0, np.int64)], [np.empty((0, queries.shape[1]), np.uint64)]
    for table, plan in zip(snapshot.tables, plans, strict=True):
        start, size = 0, 64
        while start < rows:
            part = queries[start : start + size]
            found = search_by(table, plan, Asked(part, h))
            apart = np.flatnonzero(found.distance > 0)
            query, row = found.query[apart], found.row[apart]
            text, differing = _witnesses(query + start, part[query] ^ table.fingerprints[row])
            texts.append(text)
            xors.append(differing)
            start += len(part)
            # A text that half the index is near to must not fill the memory.
            most = int(np.bincount(found.query, minlength=1).max())
            size = max(1, min(2 * size, 1024, MATCHES_AT_ONCE // (most + 1)))
    text, differing = _witnesses(np.concatenate(texts), np.concatenate(xors))
    distinct, place = np.unique(text, return_inverse=True)
    return NearPairs(h, place.astype(np.int64), differing, reservoir.weights[distinct])


def _witnesses(text: I64, differing: U64) -> tuple[I64, U64]:
    """The pairs of each text without repetition, the same few whatever else was found.

    Rows with the same fingerprint are one witness, not many.
    """
    order = np.lexsort((*differing.T, text))
    text, differing = text[order], differing[order]
    fresh = np.ones(len(text), np.bool_)
    fresh[1:] = (text[1:] != text[:-1]) | (differing[1:] != differing[:-1]).any(axis=1)
    text, differing = text[fresh], differing[fresh]
    few = np.arange(len(text)) - np.searchsorted(text, text) < PAIRS_OF_A_TEXT
    return text[few], differing[few]
