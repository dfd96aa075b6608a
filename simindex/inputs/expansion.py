"""How far the rows of a file expand: repeated texts are stored once, and absent ones not at all."""

from __future__ import annotations

from simindex.inputs.decompressors import BOMB_BYTES, MAX_EXPANSION
from simindex.inputs.streams import Unreadable


class Expansion:
    """Counts what the rows of a file take once they are decoded.

    They may take as much as the bytes of a compressed file, so terabytes of a small one are refused
    before they have taken hours.
    """

    def __init__(self, file_bytes: int) -> None:
        self._most = max(BOMB_BYTES, MAX_EXPANSION * file_bytes)
        self._taken = 0

    def add(self, taken: int) -> None:
        """Counts more bytes; Unreadable where they are too many."""
        self._taken += taken
        if self._taken > self._most:
            raise Unreadable(
                f"its rows expand more than {MAX_EXPANSION:,} times",
                remedy="write the file again, in several files, if it is to be trusted",
            )
