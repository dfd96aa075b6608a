"""The keys of rows: byte strings of any length in one heap, and their hashes.

    offsets  (n + 1,)  where each key begins in the bytes, and where the last one ends
    data     bytes     one key after the other
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U64, Bools, ByteKeys
from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.options import KeyKind
from simindex.storage.files.checksums import verified, verified_at, verify_spans
from simindex.values import dataclass

FEW = 512
"""Rows are few if the heap has so many for each of them. The kernel looks at all offsets first,
which takes half a nanosecond a row; without it a row that is taken takes 0.3 us."""


@contextmanager
def _sound_keys() -> Iterator[None]:
    """Keys that nobody could have written are damage, though their checksums hold."""
    try:
        yield
    except ValueError as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(f"the keys of some rows are damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class KeyHeap:
    """Byte strings of any length, one a row."""

    offsets: I64
    data: U8

    @classmethod
    def of(cls, keys: list[str] | list[bytes]) -> KeyHeap:
        """The heap of some keys; str as UTF-8, which `arguments.as_keys` has found possible."""
        raw, data = keys, b""
        try:  # nearly all keys are str of ASCII: none of them is made bytes
            data = "".join(keys).encode("ascii")  # type: ignore[arg-type]
        except (TypeError, UnicodeEncodeError):
            raw = [key if isinstance(key, bytes) else key.encode() for key in keys]
            data = b"".join(raw)
        offsets = np.zeros(len(raw) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, raw), np.int64, len(raw)), out=offsets[1:])
        return cls(offsets, np.frombuffer(data, np.uint8))

    @classmethod
    def joined(cls, heaps: list[KeyHeap]) -> KeyHeap:
        """One heap after another."""
        sizes = np.cumsum([0, *(len(heap.data) for heap in heaps)])
        pieces = [
            heap.offsets[:-1] - heap.offsets[0] + size
            for heap, size in zip(heaps, sizes[:-1], strict=True)
        ]
        return cls(
            np.concatenate([*pieces, sizes[-1:]]).astype(np.int64),
            np.concatenate([np.empty(0, np.uint8), *(heap.data for heap in heaps)]),
        )

    def take(self, rows: I64) -> KeyHeap:
        """The heap of the given rows; CorruptFile if an offset leaves the heap.

        Reads no more than these rows where they are few.
        """
        if len(rows) * FEW < len(self.offsets):
            return self._few(rows)
        offsets = verified(self.offsets)  # the kernel reads them all
        verify_spans(self.data, offsets[rows], offsets[rows + 1])
        with _sound_keys():
            return KeyHeap(*_native.take_bytes(self.offsets, self.data, rows))

    def _few(self, rows: I64) -> KeyHeap:
        starts, ends = verified_at(self.offsets, rows), verified_at(self.offsets, rows + 1)
        verify_spans(self.data, starts, ends)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        pieces = list(zip(starts.tolist(), ends.tolist(), strict=True))
        with _sound_keys():
            if not all(0 <= start <= end <= len(self.data) for start, end in pieces):
                raise ValueError("offsets must rise and stay within the data")
        data = b"".join([self.data[start:end].tobytes() for start, end in pieces])
        return KeyHeap(offsets, np.frombuffer(data, np.uint8))

    def one(self, row: int, kind: KeyKind) -> str | bytes:
        """The key of a row as a Python value; CorruptFile as by `take` and `decoded`, in a third of
        the time."""
        start, end = verified(self.offsets[row : row + 2]).tolist()
        with _sound_keys():
            if not 0 <= start <= end <= len(self.data):
                raise ValueError("offsets must rise and stay within the data")
            raw = verified(self.data[start:end]).tobytes()
            return raw if kind == "bytes" else raw.decode()

    def slice(self, start: int, stop: int) -> KeyHeap:
        """Rows start to stop, without a copy of the bytes; CorruptFile if offsets fall."""
        size = len(self.data)
        offsets = np.clip(verified(self.offsets[start : stop + 1]), 0, size)
        with _sound_keys():
            if (offsets[1:] < offsets[:-1]).any():
                raise ValueError("offsets fall")
        low = int(offsets[0])
        return KeyHeap(offsets - low, verified(self.data[low : max(low, int(offsets[-1]))]))

    def hashes(self, secret: bytes) -> U64:
        """uint64 (n, 2): both halves of SipHash-2-4-128 of each key; half 0 is its id.

        `secret` is that of the index, 16 bytes.
        """
        with _sound_keys():
            return _native.siphash(self.data, self.offsets, np.frombuffer(secret, np.uint8))

    def equal(self, rows: I64, other: KeyHeap, other_rows: I64) -> Bools:
        """Which of the given rows have the bytes of the row of another heap at the same place.

        Reads no more of either heap than these rows. CorruptFile if an offset leaves its heap.
        """
        for heap, chosen in ((self, rows), (other, other_rows)):
            starts = verified_at(heap.offsets, chosen)
            verify_spans(heap.data, starts, verified_at(heap.offsets, chosen + 1))
        with _sound_keys():
            equal = _native.equal_bytes(
                self.offsets, self.data, rows, other.offsets, other.data, other_rows
            )
        return equal.view(np.bool_)

    def decoded(self, kind: KeyKind) -> list[str] | list[bytes]:
        """The keys as Python values; CorruptFile if one that is to be str is not UTF-8."""
        data, bounds = self.data.tobytes(), self.offsets.tolist()
        raw = [data[a:b] for a, b in pairwise(bounds)]
        if kind == "bytes":
            return ByteKeys(raw)
        with _sound_keys():
            return [key.decode() for key in raw]

    def within(self) -> Bools:
        """Which rows have a key that lies within the heap."""
        first, last = self.offsets[:-1], self.offsets[1:]
        inside: Bools = (first >= 0) & (first <= last) & (last <= len(self.data))
        return inside

    def faulty(self, ids: U64, kind: KeyKind, secret: bytes) -> Bools:
        """Which rows have a key that is not text where `kind` is "str", or another id than it
        makes.

        All keys must lie within the heap. O(bytes of keys).
        """
        wrong: Bools = self.hashes(secret)[:, 0] != ids
        return wrong if kind == "bytes" else wrong | ~self._decodable()

    def _decodable(self) -> Bools:
        """Which keys are text."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        data = self.data[first:last].tobytes()
        places = self.offsets[:-1][self.offsets[:-1] < self.offsets[1:]]
        try:
            data.decode()
            # All of it is text, so a key is none only if one begins within a character.
            if not (self.data[places] & 0xC0 == 0x80).any():
                return np.ones(len(self.offsets) - 1, np.bool_)
        except UnicodeDecodeError:
            pass
        bounds = (self.offsets - first).tolist()
        return np.array([_is_text(data[a:b]) for a, b in pairwise(bounds)], np.bool_)


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def key_hash(key: str | bytes, secret: bytes) -> tuple[int, int]:
    """Both halves of a key's 128-bit hash with the secret of its index; the first is its id."""
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return _native.siphash_key(raw, secret)
