"""Candidates are kept by the distance of their sketches, whatever their order and number."""

from __future__ import annotations

import numpy as np
import pytest

from simindex.methods.base import Found
from simindex.planning.similarity import Similar
from simindex.query import sketch_filter
from simindex.query.sketch_filter import Sketched, apart, kept_pairs
from simindex.records.sketches import packed, words_of
from simindex.storage.tables.table import sort_table

ROWS, WORDS = 300, 3


def asked(most: int) -> Similar:
    return Similar(0.9, 12, 1.0, 64, 64 * WORDS, most)


@pytest.mark.parametrize("compared", [1, 80, 1 << 22])
def test_rows_are_kept_by_their_sketches(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    monkeypatch.setattr(sketch_filter, "COMPARED_BYTES", compared)
    rows = np.arange(ROWS, dtype=np.uint64)
    theirs = rng.integers(0, 1 << 64, (ROWS, WORDS), dtype=np.uint64)
    table = sort_table("t", rows[:, None], rows, None, horizon=0, sketches=packed(theirs, None))
    ours = theirs[rng.integers(0, ROWS, 20)] ^ rng.integers(0, 1 << 9, (20, WORDS), np.uint64)
    query, row = rng.integers(0, 20, 900), rng.integers(0, ROWS, 900).astype(np.uint32)
    found = Found(query, row, np.zeros(900, np.uint16), row.astype(np.uint64), 7, 9)
    sketched = Sketched(packed(ours, None), asked(95))
    kept = sketched.kept(table, found)
    expected = [
        (q, r, d) for q, r in zip(query.tolist(), row.tolist(), strict=True)
        if (d := sum(int(a ^ b).bit_count() for a, b in zip(ours[q], theirs[r], strict=True))) <= 95
    ]
    assert 0 < len(expected) < 900
    assert list(zip(kept.query.tolist(), kept.row.tolist(), kept.distance.tolist(),
                    strict=True)) == expected
    assert kept.id.tolist() == kept.row.tolist()
    assert (kept.probes, kept.compared) == (7, 9)
    assert words_of(sketched.slice(3, 5).sketches).tolist() == ours[3:5].tolist()


def test_pairs_are_kept_by_their_sketches(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 1 << 64, (40, WORDS), dtype=np.uint64)
    one, other = rng.integers(0, 40, 100), rng.integers(0, 40, 100)
    records = packed(rows, None)
    places, distance = kept_pairs(records, one, other, asked(94))
    every = apart(rows[one], rows[other])
    assert places.tolist() == np.flatnonzero(every <= 94).tolist()
    assert distance.tolist() == every[places].tolist()
    assert kept_pairs(records, one[:0], other[:0], asked(94))[0].tolist() == []
