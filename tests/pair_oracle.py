"""All pairs of rows within h, by brute force, as lists that tests compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle

Listed = list[tuple[int, int, int]]


def expected(rows: Any, ids: Any, h: int) -> Listed:
    """Every pair of rows of different ids within h, once: (a, b, distance), a < b, sorted."""
    found = oracle.matches(rows, rows, h)
    found = found[found[:, 0] < found[:, 1]]
    named = [int(one) for one in ids]
    return sorted(
        (min(named[a], named[b]), max(named[a], named[b]), distance)
        for a, b, distance in found.tolist()
        if named[a] != named[b]
    )


def collapsed(rows: Any, ids: Any, h: int) -> tuple[Listed, list[tuple[int, int]]]:
    """The same where the smallest id stands for equal fingerprints; ids are unique."""
    first: dict[bytes, int] = {}
    for row, name in sorted(zip(rows, ids.tolist(), strict=True), key=lambda one: one[1]):
        first.setdefault(row.tobytes(), name)
    groups = sorted(
        (first[row.tobytes()], name) for row, name in zip(rows, ids.tolist(), strict=True)
        if first[row.tobytes()] != name
    )
    heads = np.isin(ids, list(first.values()))
    return expected(rows[heads], ids[heads], h), groups
