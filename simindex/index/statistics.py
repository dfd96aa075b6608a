"""What an index holds, counted; and where rows crowd: the headers and fingerprints most rows share.

    first words of table 0, sorted   0x13.. 0x13.. 0x13..   0x1f..   0x20.. 0x20..
    runs                             3                      1        2

Templates make long runs under one header, and every probe of it compares them all. Each table is
read once, a slice at a time; its longest runs are candidates, which all tables then count.

Invariants
1. A count is exact: rows of all tables, deleted ones included as long as they are stored.
2. What is not listed has at most as many rows as the last listed one, if `certain`: a value among
   no table's candidates has no more than their shortest ones together, or one row in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from simindex.advising.advice_bytes import stored_advice
from simindex.arrays import I64, U64
from simindex.bits.distinct_rows import distinct, distinct_values
from simindex.bits.hamming import to_hex
from simindex.records.reports import Hot, IndexStats, Skew
from simindex.storage.files.checksums import verified

if TYPE_CHECKING:
    from simindex.index.handle import Handle
    from simindex.options import IndexOptions
    from simindex.storage.snapshot import Snapshot
    from simindex.storage.tables.table import Table

LISTED = 10
CANDIDATES = 1024
_SLICE_ROWS = 1 << 18
"""2 MB of words: what is derived from a slice stays in the cache."""

Counted = tuple[U64, I64]
"""Values and how many rows have them."""


def gather(handle: Handle, snapshot: Snapshot, *, skew: bool) -> IndexStats:
    """The counts of a snapshot; see `Index.stats`."""
    options, recipe, answerer = handle.options, handle.recipe, handle.answerer
    catalog_bytes = handle.environment.file_bytes
    structures = structure_bytes(options, snapshot)
    bytes_segments = row_bytes(snapshot) + sum(structures.values()) + tombstone_bytes(snapshot)
    live = snapshot.stored_rows - snapshot.dead_rows
    return IndexStats(
        path=str(handle.path),
        generation=snapshot.head.generation,
        rows=live,
        dead_rows=snapshot.dead_rows,
        segments=len(snapshot.segments),
        pending_rows=snapshot.head.pending_rows,
        tombstones=len(snapshot.tombstones),
        bits=options.bits,
        h=handle.radius(None, recipe),
        keys=options.keys or False,
        bytes_segments=bytes_segments,
        bytes_catalog=catalog_bytes,
        bytes_per_row=(bytes_segments + catalog_bytes) / live if live else 0.0,
        recipe=None if recipe is None else recipe.to_dict(),
        sample_rows=len(snapshot.reservoir),
        segment_list=[
            {
                "name": segment.name,
                "rows": len(segment),
                "bytes": segment.envelope.file_bytes,
                "header_bits": segment.header_bits,
                "structures": {
                    structure.structure: structure.file_bytes
                    for structure in segment.record.structures
                },
            }
            for segment in snapshot.segments
        ],
        oldest=snapshot.oldest_time,
        structures=structures,
        skew=hottest(snapshot.tables) if skew else None,
        compaction=answerer.compaction(snapshot, live, h=handle.radius(None, recipe)),
        audit=answerer.last_audit(snapshot),
        advice=stored_advice(handle.view.catalog),
        spot_checks=answerer.spot_checks.measured(),
        flips_from=answerer.plans.sources,
        sketch_bits=options.sketch_bits,
    )


def row_bytes(snapshot: Snapshot) -> int:
    """Size of the files of rows."""
    return sum(segment.envelope.file_bytes for segment in snapshot.segments)


def structure_bytes(options: IndexOptions, snapshot: Snapshot) -> dict[str, int]:
    """Size of the files of each structure, those of the options first."""
    sizes = dict.fromkeys(options.structures, 0)
    for segment in snapshot.segments:
        for structure in segment.record.structures:
            before = sizes.get(structure.structure, 0)
            sizes[structure.structure] = before + structure.file_bytes
    return sizes


def tombstone_bytes(snapshot: Snapshot) -> int:
    """Size of the files of tombstones; the catalog has the others."""
    runs = snapshot.tombstones.runs
    return sum(run.envelope.file_bytes for run in runs if run.envelope is not None)


def hottest(tables: Sequence[Table]) -> Skew:
    """The headers and the fingerprints that most rows share, at most ten of each.

    Headers are as wide as the directory of the largest table; a fingerprint is listed if two rows
    have it. O(n) time, every first word is read; a few megabytes of memory.
    """
    filled = [table for table in tables if len(table)]
    if not filled:
        return Skew(0, 0.0, [], [], True)
    width = max(filled, key=len).header_bits
    runs = [_longest_runs(table, 64 - width) for table in filled]
    (values, rows), unlisted_headers = _merged(filled, [found for found, _ in runs], 64 - width)
    words, unlisted = _merged(filled, [found for _, found in runs], 0)
    headers = [
        Hot(f"{value:0{width}b}" if width else "", count)
        for value, count in zip(values[:LISTED].tolist(), rows[:LISTED].tolist(), strict=True)
    ]
    counted = sorted(_fingerprints(filled, words), key=lambda one: (-one[1], one[0]))
    fingerprints = [Hot(value, count) for value, count in counted[:LISTED] if count > 1]
    return Skew(
        header_bits=width,
        rows_per_header=sum(map(len, filled)) / 2.0**width,
        headers=headers,
        fingerprints=fingerprints,
        certain=_none_missed(headers, unlisted_headers) and _none_missed(fingerprints, unlisted),
    )


def _none_missed(listed: Sequence[Hot], unlisted: int) -> bool:
    """Whether what has `unlisted` rows at most would come after those listed, or not at all."""
    return unlisted <= 1 or (len(listed) == LISTED and listed[-1].rows >= unlisted)


def _longest_runs(table: Table, shift: int) -> tuple[_Longest, _Longest]:
    """The longest runs of equal headers, and of two and more equal first words."""
    header, word = _Longest(1), _Longest(2)
    for values, lengths in _runs(table, shift):
        header.add(values, lengths)
    for values, lengths in _runs(table, 0):
        word.add(values, lengths)
    return header, word


class _Longest:
    """The `CANDIDATES` longest runs of those added, of at least so many rows."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.counted: Counted = (np.empty(0, np.uint64), np.empty(0, np.int64))
        self.left_out = 0
        """Rows of the longest run that may have been left out."""

    def add(self, values: U64, lengths: I64) -> None:
        held_values, held_lengths = self.counted
        least = max(self.least, self.left_out + 1)
        longer = lengths >= least
        if not longer.all():
            self.left_out = least - 1
            values, lengths = values[longer], lengths[longer]
        if len(values):
            values = np.concatenate([held_values, values])
            lengths = np.concatenate([held_lengths, lengths])
            kept = np.argsort(-lengths, kind="stable")[:CANDIDATES]
            self.counted = values[kept], lengths[kept]
            if len(kept) == CANDIDATES:
                self.left_out = int(lengths[kept[-1]])


def _runs(table: Table, shift: int) -> Iterator[Counted]:
    """Every run of first words that are equal without their lowest `shift` bits, by slices."""
    begun, by = 0, np.uint64(shift)
    for start in range(0, len(table), _SLICE_ROWS):
        # With the row before the slice, so that a run is cut only where it ends.
        rows = verified(table.fingerprints[max(0, start - 1) : start + _SLICE_ROWS])
        words = rows[:, 0] >> by
        ends = np.flatnonzero(words[1:] != words[:-1]) + max(1, start)
        if len(ends):
            bounds = np.concatenate([[begun], ends])
            yield words[ends - max(1, start)], np.diff(bounds)
            begun = int(ends[-1])
    last = table.fingerprints[len(table) - 1 :, 0] >> by
    yield last, np.array([len(table) - begun], np.int64)


def _merged(
    tables: Sequence[Table], candidates: Sequence[_Longest], shift: int
) -> tuple[Counted, int]:
    """The candidates of all tables, counted in all of them, the most frequent first.

    And the most rows that a value may have which is not among them.
    """
    values = distinct_values(np.concatenate([found.counted[0] for found in candidates]))
    counts = np.zeros(len(values), np.int64)
    for table in tables:
        counts += _first_rows(table, values, shift, after=True)
        counts -= _first_rows(table, values, shift, after=False)
    order = np.argsort(-counts, kind="stable")
    return (values[order], counts[order]), sum(found.left_out for found in candidates)


def _first_rows(table: Table, values: U64, shift: int, *, after: bool) -> I64:
    """First row at or above each value, or above it; all are halved at once, in place on a map."""
    low, high = np.zeros(len(values), np.int64), np.full(len(values), len(table), np.int64)
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, len(table) - 1)
        words = table.fingerprints[middle, 0] >> np.uint64(shift)
        beyond = words > values if after else words >= values
        high = np.where(open_ & beyond, middle, high)
        low = np.where(open_ & ~beyond, middle + 1, low)
    return low


def _fingerprints(tables: Sequence[Table], words: Counted) -> Iterator[tuple[str, int]]:
    """Whole fingerprints, in hexadecimal, that begin with the most frequent first words."""
    if tables[0].fingerprints.shape[1] == 1:
        values, counts = words[0][:LISTED], words[1][:LISTED]
        yield from zip(to_hex(values), counts.tolist(), strict=True)
        return
    reached: list[int] = []
    for word, count in zip(words[0][:, None], words[1].tolist(), strict=True):
        if len(reached) >= LISTED and count < sorted(reached)[-LISTED]:
            return  # no fingerprint has more rows than its first word
        rows = [
            table.fingerprints[
                int(_first_rows(table, word, 0, after=False)[0])
                : int(_first_rows(table, word, 0, after=True)[0])
            ]
            for table in tables
        ]
        found = np.concatenate(rows)
        first, number = distinct(found)
        equal = np.bincount(number)
        reached += equal.tolist()
        yield from zip(to_hex(found[first]), equal.tolist(), strict=True)
