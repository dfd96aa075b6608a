"""D, how many bytes a second a file is read from the disk, where other programs use it, too.

    file     |---------------------------------------------------|
    pieces    [--]      [--]      [--]      [--]      [--]      [--]

Pieces spread over the file are brought in as passes over rows bring them in, in some rounds. D is
the speed that a quarter of them reach: what else the disk and the processor do slows down others. A
piece that is still in memory after the system was asked to drop it, because a process has it
mapped, says nothing and is left out.
"""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from simindex.storage.files.readahead import bring_file_in, forget_file, in_memory

log: logging.Logger = logging.getLogger(__package__)

PIECES = 4
PIECE_BYTES = 1 << 26
"""The first 8 MB of a piece take as long as 16 more: 32 MB were read at 1.5 to 2.0 GB/s, 64 at 1.8
to 2.2, and rows of a batch at 2.2."""

LEAST_BYTES = 1 << 20
"""A shorter file says nothing of a disk."""

UNSTEADY = 2.0
"""If the median is this many times slower than D, or more, the disk was busy."""


class DiskSpeed:
    """Of one file, over some rounds of reading."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.perf_counter) -> None:
        self._path, self._clock = path, clock
        self._speeds: list[float] = []
        self._in_memory = 0

    def read(self) -> None:
        """A round: reads the pieces that are not in memory."""
        with self._path.open("rb", buffering=0) as file:
            number, size = file.fileno(), os.fstat(file.fileno()).st_size
            if size < LEAST_BYTES:
                return
            forget_file(number)
            length = min(PIECE_BYTES, size)
            pieces = min(PIECES, size // length)
            for piece in range(pieces):
                start = (size - length) * piece // max(1, pieces - 1)
                if in_memory(number, start, length):
                    self._in_memory += 1
                else:
                    self._speeds.append(self._speed(number, start, length))
            forget_file(number)

    def _speed(self, number: int, start: int, length: int) -> float:
        began = self._clock()
        bring_file_in(number, start, length)
        return length / max(1e-9, self._clock() - began)

    def bytes_s(self) -> float | None:
        """D; None if the file was too short, or in memory. The log says what makes it doubtful."""
        if not self._speeds:
            if self._in_memory:
                log.warning(
                    "the speed of the disk was not measured: %s is in memory, and other processes "
                    "use it", self._path,
                )
            return None
        speed = sorted(self._speeds)[3 * len(self._speeds) // 4]
        middle = statistics.median(self._speeds)
        if middle * UNSTEADY < speed:
            log.warning(
                "the disk was busy while it was measured: %.3g bytes a second in a quarter of the "
                "reads, but %.3g in half of them. Run `simindex tune` again when less runs",
                speed, middle,
            )
        return speed


def read_bytes_s(path: Path) -> float | None:
    """D by one round; None if the file is too short, or in memory."""
    speed = DiskSpeed(path)
    speed.read()
    return speed.bytes_s()
