"""What a library is fed of a stream, with the bytes that it was fed last: they can be looked at.

    stream     read .................................|  not yet read
    window            gone | held ...................|
                           ^ keep    ^ fed

A library reads on from `fed`. What it reports is compared with the held bytes, from `keep` on.
Bytes that were read before the stream broke off are still fed; `error` says why it did.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import BinaryIO

from simindex.inputs.decompressors import has_checksums, resume
from simindex.inputs.streams import Unreadable, ready

CHUNK_BYTES = 1 << 16


class Window:
    """A stream that is read from its start; all places are offsets from there.

    At most about `most` bytes are held: of a longer record the first ones are gone. They are held
    in the parts in which they were read, since nearly all that is looked at is in the last one.
    """

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream, self._most = stream, most
        self.checked: bool = has_checksums(stream)
        """Whether the bytes were compressed with a checksum, so that none is another one."""
        self._older: deque[bytes] = deque()
        self.start: int = 0
        """The first place that is held."""
        self._part, self._part_at = b"", 0
        """What was read last, and its place."""
        self.end: int = 0
        """The place behind it."""
        self._fed = 0
        self.moves: int = 0
        """How often the library has to begin anew, because it is not fed what follows."""
        self.keep: int = 0
        """Bytes from here on are held, as far as they may be."""
        self.ended: bool = False
        self.error: Unreadable | None = None
        """Why the stream ended; None while it goes on, or where it is whole."""

    def read(self, size: int = -1) -> bytes:
        """The next bytes for the library: up to so many, none at the end."""
        if self._fed >= self.end:
            self._more()
        data = self._part
        if self._fed != self._part_at or 0 <= size < len(data):
            data = self._held(self._fed, self.end if size < 0 else self._fed + size)
        self._fed += len(data)
        return data

    def tell(self) -> int:
        """The place of the next byte for the library."""
        return self._fed

    def rewind(self, at: int) -> None:
        """Has the library read from there, if it is held, else from the first place that is."""
        self.moves += 1
        self._fed = max(at, self.start)

    def fill(self, stop: int) -> bool:
        """Reads up to a place; False if the stream ends before it."""
        while self.end < stop:
            if not self._more():
                return False
        return True

    def skip(self, stop: int) -> bool:
        """The same, but what comes before is not held, and the library begins anew."""
        self.moves += 1
        while self.end < stop:
            self._fed = self.keep = self.end
            if not self._more():
                return False
        return True

    def look(self, at: int, size: int) -> bytes:
        """Bytes from a place on, which is held; fewer where the stream ends."""
        if at + size > self.end:
            self.fill(at + size)
        return self._held(at, at + size)

    def begins(self, at: int, marks: bytes | tuple[bytes, ...]) -> bool:
        """Whether these bytes, or one of several as long, come there."""
        size = len(marks if isinstance(marks, bytes) else marks[0])
        if at < self._part_at or at + size > self.end:
            return self.look(at, size).startswith(marks)
        return self._part.startswith(marks, at - self._part_at)

    def count(self, mark: bytes, at: int, stop: int) -> int:
        """How often held bytes have these."""
        if at < self._part_at:
            return self._held(at, stop).count(mark)
        return self._part.count(mark, at - self._part_at, stop - self._part_at)

    def find(self, mark: bytes, at: int, limit: int) -> int:
        """The next place of a mark within so many bytes; -1 where it is not there."""
        there = at - self._part_at
        if there >= 0:
            place = self._part.find(mark, there, there + limit)
            if place >= 0 or self._part_at + len(self._part) >= at + limit:
                return place if place < 0 else place + self._part_at
        place = self.look(at, limit).find(mark)
        return place if place < 0 else place + at

    def seek(self, pattern: re.Pattern[bytes], at: int, lead: int, reach: int) -> int:
        """Where the first group of a pattern of at most `reach` bytes comes next; else the end.

        The pattern begins `lead` bytes before that group. What comes before is not held any longer.
        """
        at = max(at, self.start)
        self.moves += 1
        if at > self._part_at:
            found = pattern.search(self._part, at - self._part_at - lead)
            if found is not None and found.end() < len(self._part):
                self._fed = self.keep = self._part_at + found.start(1)
                return self.keep
        while True:
            before = min(lead, at - self.start)
            self._fed = self.keep = at - before
            found = pattern.search(self.look(at - before, before + CHUNK_BYTES + reach))
            if found is not None:
                return at - before + found.start(1)
            if self.end < at + CHUNK_BYTES + reach:
                return self.end
            at += CHUNK_BYTES

    def skip_newlines(self, at: int) -> int:
        """The first place from there on that has no carriage return or line feed."""
        while True:
            ahead = self.look(at, CHUNK_BYTES)
            left = ahead.lstrip(b"\r\n")
            at += len(ahead) - len(left)
            if left or not ahead:
                return at
            if at > self._fed:
                self.moves += 1
                self._fed = self.keep = at

    def resume(self, begins: Callable[[bytes], bool]) -> int | None:
        """Goes on behind damage of the stream; see `members.GzipReader.resume`."""
        place = resume(self._stream, begins)
        if place is not None:
            self.ended, self.error = False, None
        return place

    def _held(self, at: int, stop: int) -> bytes:
        if at >= self._part_at:
            return self._part[at - self._part_at : stop - self._part_at]
        parts, place = [], self.start
        for part in (*self._older, self._part):
            if place + len(part) > at and place < stop:
                parts.append(part[max(0, at - place) : stop - place])
            place += len(part)
        return b"".join(parts)

    def _more(self) -> int:
        """Holds more bytes, and drops those that are not kept. Returns how many there were."""
        if self.ended:
            return 0
        try:
            part = ready(self._stream, CHUNK_BYTES)
        except Unreadable as reason:
            # A new one: the one that was raised refers to all that is held here.
            self.error, part = Unreadable(str(reason), remedy=reason.remedy), b""
        self.ended = not part
        if part:
            self._older.append(self._part)
            self._part, self._part_at = part, self.end
            self.end += len(part)
            self._drop()
        return len(part)

    def _drop(self) -> None:
        older, kept = self._older, min(self.keep, self._fed)
        while older and (
            self.start + len(older[0]) <= kept
            or (
                self.end - self.start > self._most
                and self.start + len(older[0]) <= self._fed - 2 * CHUNK_BYTES
            )
        ):
            self.start += len(older.popleft())
