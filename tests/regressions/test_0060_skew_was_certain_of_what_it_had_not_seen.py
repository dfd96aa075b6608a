"""`stats(skew=True)` called its list certain, without what each segment had once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simindex


def test_a_fingerprint_that_each_segment_has_once(index_path: Path) -> None:
    rng = np.random.default_rng(1)
    options = simindex.IndexOptions(batch_rows=8, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        for segment in range(12):
            rows = rng.integers(0, 2**64, 8, dtype=np.uint64)
            rows[0] = 42
            if segment == 0:
                rows[1] = rows[2]
            index.append(rows)
            index.commit()
        skew = index.stats(skew=True).skew
        assert skew is not None
        listed = {hot.value for hot in skew.fingerprints}
        assert f"{42:016x}" in listed or not skew.certain
        index.compact(full=True)
        skew = index.stats(skew=True).skew
        assert skew is not None
        assert skew.certain
        assert skew.fingerprints[0] == simindex.Hot(f"{42:016x}", 12)


def test_rows_of_two_words_whose_first_words_are_shared(index_path: Path) -> None:
    """First words with many rows hide that what they begin has two."""
    rng = np.random.default_rng(2)
    options = simindex.IndexOptions(bits=128, batch_rows=400, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        for _ in range(4):
            rows = rng.integers(0, 2**64, (400, 2), dtype=np.uint64)
            rows[:, 0] = np.arange(400, dtype=np.uint64) % 12
            rows[0] = 7, 7
            rows[1] = 1 << 40, 1
            index.append(rows)
            index.commit()
        skew = index.stats(skew=True).skew
        assert skew is not None
        assert f"{7:016x}" * 2 in {hot.value for hot in skew.fingerprints}
        shared = f"{1 << 40:016x}{1:016x}"
        assert shared in {hot.value for hot in skew.fingerprints} or not skew.certain
