"""A pass over a table's rows in the order of its file: read once, chunk by chunk, in threads.

    rows      |   chunk   |   chunk   |   chunk   |
    threads   |  1  |  2  |  1  |  2  |  1  |  2  |

What is found does not depend on where chunks and slices end: a method is asked about slices of
rows, in any grouping, and its answers are put together in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TypeVar

from simindex.resources.threads import Pool
from simindex.storage.files import readahead
from simindex.storage.tables.table import Table
from simindex.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stream:
    """How rows are read and looked at."""

    chunk_bytes: int = 8 << 20
    """Of fingerprints, at least a row: what is resident at a time, and what an interrupt awaits."""
    window_bytes: int = readahead.WINDOW_BYTES
    """What a thread brings in ahead of the chunk; 0 for no thread."""
    release: bool = False
    """Give pages back that were passed: for a memory limit."""
    threads: int = 1

    def chunk_rows(self, words: int) -> int:
        """Rows of a chunk."""
        return max(1, self.chunk_bytes // (8 * words))

    def resident_bytes(self, words: int) -> int:
        """Of the rows, at most, where they are given back."""
        chunk = 8 * words * self.chunk_rows(words)
        return chunk + (self.window_bytes + readahead.PIECE_BYTES if self.window_bytes else 0)

    def over(self, table: Table, look: Callable[[int, int], T]) -> Iterator[T]:
        """What `look(start, stop)` says of the slices of a table's rows, in their order.

        Raises
        ------
        CorruptFile
            If rows cannot be read. And whatever `look` raises.

        Notes
        -----
        Leaving the loop ends all threads; nothing more is read than the window.
        """
        rows = table.fingerprints
        bounds = readahead.even_bounds(len(rows), self.chunk_rows(rows.shape[1]))
        with ExitStack() as stack:
            chunks = stack.enter_context(
                closing(
                    readahead.chunks(
                        rows, bounds, window_bytes=self.window_bytes, release=self.release
                    )
                )
            )
            pool = None
            if self.threads > 1:
                pool = stack.enter_context(Pool(self.threads))
            for start, stop in chunks:
                if pool is None:
                    yield look(start, stop)
                else:
                    size = -(-(stop - start) // self.threads)
                    starts = range(start, stop, size)
                    yield from pool.map(
                        look, starts, [min(first + size, stop) for first in starts]
                    )
                if self.release:
                    readahead.give_back(table.ids[start:stop])
