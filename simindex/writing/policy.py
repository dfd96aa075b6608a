"""Which segments to merge, decided from their sizes alone."""

from __future__ import annotations

from collections.abc import Sequence

from simindex.storage.tables.record import MAX_ROWS


def pick(sizes: Sequence[int], fanout: int) -> list[int]:
    """Which runs to merge now: places in `sizes`, or none.

    As many of the smallest runs as can be, at least `fanout`, of which the largest is not larger
    than the others together. So with every merge a row comes into a run at least twice as large,
    and is merged at most log2(n) times; what remains are fewer than `fanout` runs and further ones
    of which each is larger than all before it together.

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
        if count + 1 >= fanout and sizes[place] <= total <= MAX_ROWS - sizes[place]:
            chosen = count + 1
        total += sizes[place]
    return sorted(order[:chosen])


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
