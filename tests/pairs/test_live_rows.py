"""Rows of several tables in the order of their keys, taken by ranges of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle

from simindex.pairs import live_rows as stored_rows
from simindex.pairs.live_rows import KeyRange, StoredRows, key_word
from simindex.storage.tables.table import Table, sort_table


def cut(rng: np.random.Generator, rows: Any, ids: Any, parts: int) -> list[Table]:
    bounds = np.sort(rng.integers(0, len(rows) + 1, parts - 1))
    return [
        sort_table("part", some, named, None, horizon=0)
        for some, named in zip(np.split(rows, bounds), np.split(ids, bounds), strict=True)
    ]


def test_a_range_is_what_keys_say(rng: np.random.Generator, monkeypatch: Any) -> None:
    monkeypatch.setattr(stored_rows, "READ_WORDS", 192)
    rows = oracle.uniform(rng, 500, 3)
    ids = np.arange(500, dtype=np.uint64)
    stored = StoredRows(cut(rng, rows, ids, 3), None, words=3)
    joined = [
        sum(int(word) << (64 * (2 - place)) for place, word in enumerate(row)) for row in rows
    ]
    for shift in (0, 7, 64, 100, 191):
        keys = [((row << shift) | (row >> (192 - shift))) % (1 << 192) for row in joined]
        for level in range(3):
            words = [(key >> (64 * (2 - level))) % (1 << 64) for key in keys]
            assert key_word(rows, shift, level).tolist() == words
        among = KeyRange(shift)
        counts = stored.count(among, 3, 4)
        tops = np.bincount([key >> 185 & 15 for key in keys], minlength=16)
        assert counts.tolist() == tops.tolist()
        prefix = keys[17] >> 120
        low = prefix >> 8 << 8  # of the same first word
        size = sum(low <= key >> 120 <= prefix for key in keys)
        some = stored.load(KeyRange.between(shift, low, prefix, 72, size))
        assert some.ids is not None
        chosen = [row for row, key in enumerate(keys) if low <= key >> 120 <= prefix]
        assert sorted(some.ids.tolist()) == chosen
        assert 17 in chosen
