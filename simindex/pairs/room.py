"""How many rows and pairs a search for all pairs may hold within a limit of memory."""

from __future__ import annotations

from dataclasses import dataclass

from simindex.checks import is_int
from simindex.errors import InvalidOption
from simindex.pairs.rows import StoredRows

USUAL_MEMORY = 1 << 30
"""Bytes, where nobody says."""

MOST_MEMORY = 1 << 62
"""More bytes than any machine has, and few enough for numbers of 64 bits."""

FIXED_BYTES = 6 << 20
"""For counting the values of a block, and for what a read looks at."""

ROW_SHARE = 0.6
"""Of the memory that is left is for rows; the rest is for pairs."""

PAIR_BYTES = 150
"""Of a pair while it is found, named and put in order."""

LEAST_ROWS = 1 << 12
LEAST_PAIRS = 1 << 12
MOST_ROWS = (1 << 32) - 1
"""Of a tile: the kernel numbers them with 32 bits."""


@dataclass(frozen=True, slots=True)
class Room:
    """What fits a limit of memory."""

    rows: int
    pairs: int

    @classmethod
    def within(
        cls, memory: int | None, stored: StoredRows, *, beside: int = 0, later: int = 0,
        purpose: str = "pairs",
    ) -> Room:
        """What is left for pairs when `beside` bytes are taken, and before `later` are needed.

        Raises InvalidOption when the least does not fit, and says what is the least.
        """
        if memory is not None and not is_int(memory):
            raise InvalidOption(
                f"memory_limit={memory!r} is no size: give a whole number of bytes",
                option="memory_limit", found=memory,
            )
        row = _row_bytes(stored)
        fixed = FIXED_BYTES + stored.mask_bytes + beside
        limit = fixed + USUAL_MEMORY if memory is None else min(memory, MOST_MEMORY)
        least = fixed + max(
            round(LEAST_ROWS * row / ROW_SHARE),
            round(LEAST_PAIRS * PAIR_BYTES / (1 - ROW_SHARE)),
        ) + 1
        least = max(least, FIXED_BYTES + stored.mask_bytes + later)
        if memory is not None and limit < least:
            raise InvalidOption(
                f"memory_limit={memory:,} bytes is too small: {purpose} of this index need at "
                f"least {least:,}",
                option="memory_limit", found=memory, expected=least,
            )
        left = max(limit, least) - fixed
        return cls(
            min(MOST_ROWS, int(left * ROW_SHARE / row)), int(left * (1 - ROW_SHARE) / PAIR_BYTES)
        )


def _row_bytes(stored: StoredRows) -> int:
    # Sorted and distinct rows, in two orders; columns twice; key, order, flags, what a sort takes.
    columns = stored.row_bytes // 8 - stored.words
    return 32 * stored.words + 16 * columns + 36
