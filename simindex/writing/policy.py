"""Which segments to merge, decided from their sizes and from what was deleted since."""

from __future__ import annotations

from collections.abc import Sequence

from simindex.storage.tables.record import MAX_ROWS

LEAST_TOMBSTONES = 1 << 12
"""So many never have a segment, or pending rows, written again: 100 KB."""


def pick(sizes: Sequence[int], fanout: int, *, ratio: int = 1) -> list[int]:
    """Which runs to merge now: places in `sizes`, or none.

    As many of the smallest runs as can be, at least `fanout`, of which the largest is at most
    `ratio` times as large as the others together. So where `ratio` is 1, with every merge a row
    comes into a run at least twice as large, and is merged at most log2(n) times; what remains are
    fewer than `fanout` runs and further ones of which each is larger than all before it together.

    Notes
    -----
    For 7,630 equal runs and a fanout of 8: 8 runs on average, at most 16, each row written 5 times.
    Tiers by powers of the fanout leave 14, at most 28, and write each row 3.5 times.
    """
    if fanout < 2:
        return []
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    chosen = total = 0
    for count, place in enumerate(order):
        if count + 1 >= fanout and sizes[place] <= ratio * total and (
            total <= MAX_ROWS - sizes[place]
        ):
            chosen = count + 1
        total += sizes[place]
    return sorted(order[:chosen])


SETTLED_FANOUT, SETTLED_RATIO = 2, 3
"""With which a writer goes on that is idle or leaves. Each segment that remains is more than three
times as large as all smaller ones together: 30 batches of a million rows end as three at most. A
row then comes into a segment at least 4/3 times as large, and is merged 2.4 log2(n) times at most,
if the writer is idle after every commit."""


def settling(sizes: Sequence[int]) -> list[int]:
    """Which runs to merge where no batch is on its way that would be merged with them."""
    return pick(sizes, SETTLED_FANOUT, ratio=SETTLED_RATIO)


def settling_rows(sizes: Sequence[int]) -> int:
    """Rows that are written until runs are settled."""
    left, rows = list(sizes), 0
    while places := settling(left):
        merged = sum(left[place] for place in places)
        left = [size for place, size in enumerate(left) if place not in places] + [merged]
        rows += merged
    return rows


MOST_DEAD = 1 / 3
"""Share of a segment's rows that may be deleted before it is written again: three rows are then
written for each that was deleted. A small segment is no exception: it shrinks by a third each time,
so it is written some ten times at most, whatever its size."""

MOST_TOMBSTONES = 1 / 2
"""Tombstones that a segment, or a run of pending rows, may keep, as a share of the rows of the
index: they stay while it is older than they are, whether it has rows of theirs or not."""


def keeps_too_many(tombstones: int, rows: int) -> bool:
    """Whether what is older than so many tombstones is written again, in an index of so many rows.
    """
    return tombstones > max(LEAST_TOMBSTONES, MOST_TOMBSTONES * rows)


def purged(
    dead: Sequence[float], tombstones: Sequence[int], rows: int
) -> list[int]:
    """Which segments to write again because of deletions: their places.

    Parameters
    ----------
    dead : sequence
        Share of each segment's rows that is deleted.
    tombstones : sequence
        How many tombstones each segment is older than.
    rows : int
        Of the index.
    """
    return [
        place for place, (share, count) in enumerate(zip(dead, tombstones, strict=True))
        if share > MOST_DEAD or keeps_too_many(count, rows)
    ]


def fitting(sizes: Sequence[int]) -> list[list[int]]:
    """All places in `sizes`, in order, in groups of no more rows than one segment can number."""
    groups: list[list[int]] = []
    total = MAX_ROWS + 1
    for place, size in enumerate(sizes):
        if total + size > MAX_ROWS:
            groups.append([])
            total = 0
        groups[-1].append(place)
        total += size
    return groups
