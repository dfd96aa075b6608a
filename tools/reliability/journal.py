"""What writers say they are about to commit, and have committed: a file next to the index.

    intent k, g    written before the commit of operation k, on an index of generation g
    ack k, g       written after it; the index was then of generation g
    void k, g      it was found that the commit of the last intent did not happen

A record is one `write` of 32 bytes at the file's end, so a kill leaves it whole or not at all. A
snapshot of generation g holds operation k if g is that of its acknowledgement or later, and does
not if g is that of its intent or earlier. In between only the snapshot itself can tell.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

INTENT, ACK, VOID = 1, 2, 3
RECORD = struct.Struct("<4sIqqII")


class Journal:
    """Read further at every look; appended to by whoever holds the index's lock."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._offset = 0
        self.acknowledged: list[int] = [0]
        """Generation at which each operation was acknowledged, from operation 0: nothing."""
        self.intent: tuple[int, int] | None = None
        """Operation and generation of an intent that was neither acknowledged nor void."""
        self._intended: list[int] = [0]

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    def write(self, kind: int, operation: int, generation: int) -> None:
        """Appends a record."""
        body = RECORD.pack(b"note", kind, operation, generation, os.getpid(), 0)[:-4]
        data = body + struct.pack("<I", zlib.crc32(body))
        assert os.write(self._fd, data) == RECORD.size

    def read(self) -> None:
        """Takes in what was appended since the last time."""
        while len(data := os.pread(self._fd, RECORD.size, self._offset)) == RECORD.size:
            _, kind, operation, generation, _, checksum = RECORD.unpack(data)
            assert zlib.crc32(data[:-4]) == checksum, f"the journal is damaged at {self._offset}"
            self._offset += RECORD.size
            if kind == INTENT:
                assert self.intent is None, "a writer forgot to settle an intent"
                assert operation == self.last + 1, f"operation {operation} after {self.last}"
                self.intent = (operation, generation)
            elif kind == ACK:
                assert self.intent is not None, "an acknowledgement without an intent"
                assert self.intent[0] == operation, "an acknowledgement of another operation"
                self._intended.append(self.intent[1])
                self.acknowledged.append(generation)
                self.intent = None
            else:
                self.intent = None

    @property
    def last(self) -> int:
        """The last operation that was acknowledged."""
        return len(self.acknowledged) - 1

    def bounds(self, generation: int) -> tuple[int, int]:
        """The fewest and the most operations that a snapshot of a generation may hold."""
        least = self.last
        while self.acknowledged[least] > generation:
            least -= 1
        most = least
        while most < self.last and self._intended[most + 1] < generation:
            most += 1
        if most == self.last and self.intent is not None and self.intent[1] < generation:
            most += 1
        return least, most
