"""Which rows stand together in a tile: ranges of keys, planned by counting, to fit the memory.

    block 1   values  0 ..... 4711 | 4712 .... 9999 | 10000 | 10001 ....
              ranges  ------------   --------------   - - -   ----------
                                                      a hot value, cut by the bits after it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simindex.pairs.rows import KeyRange, StoredRows

COUNTED_BITS = 16
"""Bits of a key by whose values rows are counted at once."""


@dataclass(frozen=True, slots=True)
class TileRanges:
    """Ranges of stored rows for tiles of `most_rows`.

    With `collapse` a range of one fingerprint has any number of rows: one stands for all.
    """

    stored: StoredRows
    most_rows: int
    collapse: bool

    def of_block(self, shift: int, width: int) -> Iterator[list[KeyRange]]:
        """Tiles of a block, each list those that are compared with one another."""
        rows = len(self.stored)
        if rows <= self.most_rows:
            if rows:
                yield [KeyRange(shift, rows=rows)]
        else:
            yield from self._values(shift, width, 0, 0, rows)

    def _values(
        self, shift: int, width: int, prefix: int, bits: int, rows: int
    ) -> Iterator[list[KeyRange]]:
        """Tiles of the rows whose keys begin with `bits` bits `prefix`, too many for one."""
        if bits == width:
            yield list(self._cut(shift, prefix, bits, rows, self.most_rows // 2))
            return
        step = min(COUNTED_BITS, 64 - bits % 64, width - bits)
        most = self.most_rows
        for first, last, some in self._joined_values(shift, prefix, bits, rows, step, most):
            if some > most:
                yield from self._values(shift, width, first, bits + step, some)
            else:
                yield [KeyRange.between(shift, first, last, bits + step, some)]

    def _cut(
        self, shift: int, prefix: int, bits: int, rows: int, most: int
    ) -> Iterator[KeyRange]:
        """Tiles of the rows of a hot value."""
        if bits == 64 * self.stored.words:  # one fingerprint
            step = rows if self.collapse else most
            for skip in range(0, rows, step):
                yield KeyRange.between(
                    shift, prefix, prefix, bits, min(step, rows - skip), skip=skip, equal=True
                )
            return
        step = min(COUNTED_BITS, 64 - bits % 64)
        for first, last, some in self._joined_values(shift, prefix, bits, rows, step, most):
            if some > most:
                yield from self._cut(shift, first, bits + step, some, most)
            else:
                yield KeyRange.between(shift, first, last, bits + step, some)

    def _joined_values(
        self, shift: int, prefix: int, bits: int, rows: int, step: int, most: int
    ) -> Iterator[tuple[int, int, int]]:
        """First and last value of the next `step` bits, after the prefix, and their rows.

        As many values together as have no more than `most` rows; one that has more stands alone.
        """
        among = KeyRange.between(shift, prefix, prefix, bits, rows)
        counts = self.stored.count(among, bits, step)
        base = prefix << step
        start, total, last = 0, 0, 0
        for value in np.flatnonzero(counts).tolist():
            here = int(counts[value])
            if total and total + here > most:
                yield base + start, base + last, total
                total = 0
            if not total:
                start = value
            total, last = total + here, value
        if total:
            yield base + start, base + last, total
