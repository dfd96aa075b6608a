"""Which rows are stored twice: in a segment file, and in another or among pending rows.

A merge writes the rows of its inputs again, and a commit those of pending runs. Where no head says
what became of them, the rows themselves do: by fingerprint and id.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simindex.arrays import U64, Bools
from simindex.repair.segment_remains import SegmentRemains
from simindex.storage.tables.table import Table

WINDOW_ROWS = 1 << 20


def stored(table: Table, files: Sequence[SegmentRemains]) -> Bools:
    """Which rows of a table are in some segments, too, by fingerprint and id."""
    found = np.zeros(len(table), np.bool_)
    for file in files:
        for words, ids in _columns(file):
            found |= _within(table.fingerprints[:, 0], table.ids, words, ids)
    return found


def share_stored(part: SegmentRemains, whole: SegmentRemains, sample_rows: int) -> float:
    """About what share of one segment's rows is in another, too."""
    places = np.unique(np.linspace(0, max(0, part.rows - 1), sample_rows).astype(np.int64))
    words, ids = part.columns()
    if not len(words) or len(words) < part.rows:
        return 0.0
    taken = np.argsort(words[places], kind="stable")
    sample, names = words[places][taken], ids[places][taken]
    found = np.zeros(len(sample), np.bool_)
    for own_words, own_ids in _columns(whole):
        found |= _within(sample, names, own_words, own_ids)
    return float(found.mean()) if len(found) else 0.0


def _columns(file: SegmentRemains) -> list[tuple[U64, U64]]:
    words, ids = file.columns()
    return [
        (words[start : start + WINDOW_ROWS], ids[start : start + WINDOW_ROWS])
        for start in range(0, min(len(words), len(ids)), WINDOW_ROWS)
    ]


def _within(words: U64, ids: U64, stored_words: U64, stored_ids: U64) -> Bools:
    """Which pairs (word, id) are among some stored ones. O(n log n), in the memory of both."""
    mine = np.empty(len(words), [("word", "<u8"), ("id", "<u8")])
    mine["word"], mine["id"] = words, ids
    near = np.flatnonzero(np.isin(stored_words, words))
    near = near[np.isin(stored_ids[near], ids)]  # a million rows may have one word
    theirs = np.empty(len(near), mine.dtype)
    theirs["word"], theirs["id"] = stored_words[near], stored_ids[near]
    found: Bools = np.isin(mine, theirs)
    return found
