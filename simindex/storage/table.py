"""Rows sorted by fingerprint, in memory or on a map, with a header directory over them.

    fingerprints (n, W)   sorted by word 0; rows with an equal word 0 stand in order of age
    ids          (n,)     in the same order
    keys                  an optional heap: offsets (n + 1,) into bytes, in the same order
    directory    (2^t+1,) first row of each header, the top t bits of word 0

A pending batch and a segment file are both tables; a method need not know which it searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.options import KeyKind
from simindex.records import U64
from simindex.storage.verification import map_of, section_of, verified, verified_at, verify_spans

if TYPE_CHECKING:
    from simindex.storage.permuted import PermutedTables
    from simindex.storage.slicelist import SliceLists

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
        """The heap of some keys; str as UTF-8, which `records.as_keys` has found possible."""
        raw = [key if isinstance(key, bytes) else key.encode() for key in keys]
        offsets = np.zeros(len(raw) + 1, np.int64)
        np.cumsum([len(key) for key in raw], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(raw), np.uint8))

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
        """The heap of the given rows; CorruptFile if an offset leaves the heap."""
        offsets = verified(self.offsets)  # the kernel reads them all
        verify_spans(self.data, offsets[rows], offsets[rows + 1])
        with _sound_keys():
            return KeyHeap(*_native.take_bytes(self.offsets, self.data, rows))

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
        """The keys as Python values; CorruptFile if one that is to be str is no UTF-8."""
        data, bounds = self.data.tobytes(), self.offsets.tolist()
        raw = [data[a:b] for a, b in pairwise(bounds)]
        if kind == "bytes":
            return raw
        with _sound_keys():
            return [_text(key) for key in raw]

    def within(self) -> Bools:
        """Which rows have a key that lies within the heap."""
        first, last = self.offsets[:-1], self.offsets[1:]
        inside: Bools = (first >= 0) & (first <= last) & (last <= len(self.data))
        return inside

    def faulty(self, ids: U64, kind: KeyKind, secret: bytes) -> Bools:
        """Which rows have a key that is no text where `kind` is "str", or another id than it makes.

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
            _text(data)
            # All of it is text, so a key is none only if one begins within a character.
            if not (self.data[places] & 0xC0 == 0x80).any():
                return np.ones(len(self.offsets) - 1, np.bool_)
        except UnicodeDecodeError:
            pass
        bounds = (self.offsets - first).tolist()
        return np.array([_is_text(data[a:b]) for a, b in pairwise(bounds)], np.bool_)


def _text(raw: bytes) -> str:
    return raw.decode()


def _is_text(raw: bytes) -> bool:
    try:
        _text(raw)
    except UnicodeDecodeError:
        return False
    return True


_SLICE_ROWS = 1 << 20


def key_hash(key: str | bytes, secret: bytes) -> tuple[int, int]:
    """Both halves of a key's 128-bit hash with the secret of its index; the first is its id."""
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return _native.siphash_key(raw, secret)


def header_bits(rows: int) -> int:
    """Width t of a table's header directory.

    6 to 11 rows fall under one header when fingerprints are uniform: about two cache lines,
    compared eight rows at a time, for 0.35 to 0.7 bytes a row. Searches may use any narrower
    header of the same directory. ([PSM] (21) has t = d, for rows compared one at a time. With
    t = d - 3.25 a query takes 0.24 us at 10 M rows, with one bit less 0.35, with one more no less.)
    Tables below 4 M rows stay near the processor, where twice the rows cost little: they get one
    bit less, since most of them are soon merged and their directories would only swell the catalog.
    """
    narrower = 3 if rows >= 1 << 22 else 4
    return min(30, max(0, round(log2(max(1, rows))) - narrower))


class SortedRows:
    """Fingerprints in order of their first word. Immutable; the directory is made or loaded when
    first needed."""

    __slots__ = ("_directory", "_load", "_lock", "fingerprints", "header_bits")

    def __init__(
        self,
        fingerprints: U64,
        *,
        header_bits: int,
        load_directory: Callable[[], U32 | None] | None = None,
    ) -> None:
        self.fingerprints, self.header_bits = fingerprints, header_bits
        self._load = load_directory
        self._directory: U32 | None = None
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.fingerprints)

    @property
    def directory(self) -> U32:
        """uint32 (2**header_bits + 1,): monotone, first 0, last the number of rows."""
        if self._directory is None:
            with self._lock:
                if self._directory is None:
                    loaded = self._load() if self._load is not None else None
                    self._directory = self.compute_directory() if loaded is None else loaded
        return self._directory

    def compute_directory(self) -> U32:
        """The header directory, from the rows. O(n), in bounded memory.

        Where the rows are out of order, it leads to some of them only, or raises CorruptFile.
        """
        if self.fingerprints.shape[1] == 1:
            return _native.header_directory(verified(self.fingerprints)[:, 0], self.header_bits)
        counts = np.zeros((1 << self.header_bits) + 1, np.int64)
        shift = np.uint64(64 - self.header_bits) if self.header_bits else None
        for start in range(0, len(self), _SLICE_ROWS):
            words = verified(self.fingerprints[start : start + _SLICE_ROWS])[:, 0]
            if (words[1:] < words[:-1]).any():
                owner = map_of(self.fingerprints)
                path = "a table" if owner is None else owner.path
                raise CorruptFile(f"{path} has rows that are not sorted", path=path)
            headers = np.zeros(len(words), np.int64) if shift is None else words >> shift
            first = int(headers[0])
            found = np.bincount((headers - headers[0]).astype(np.int64))
            counts[first + 1 : first + 1 + len(found)] += found
        return np.cumsum(counts).astype(np.uint32)


class Table(SortedRows):
    """One sorted run of rows, table 0 of whatever else was built over them."""

    __slots__ = ("_checked", "horizon", "ids", "keys", "name", "slices", "structures")

    def __init__(
        self,
        name: str,
        fingerprints: U64,
        ids: U64,
        keys: KeyHeap | None,
        *,
        horizon: int,
        header_bits: int,
        load_directory: Callable[[], U32 | None] | None = None,
    ) -> None:
        super().__init__(fingerprints, header_bits=header_bits, load_directory=load_directory)
        self.name, self.horizon = name, horizon
        self.ids, self.keys = ids, keys
        self.structures: Mapping[str, PermutedTables] = {}
        self.slices: SliceLists | None = None
        self._checked: _native.CheckedTable | None = None

    @property
    def checked(self) -> _native.CheckedTable:
        """The table as the probing kernels take it."""
        if self._checked is None:
            self._checked = _native.CheckedTable(
                self.fingerprints, self.directory, self.header_bits, self.ids,
                section_of(self.fingerprints), section_of(self.ids),
            )
        return self._checked


def sort_table(
    name: str, fingerprints: U64, ids: U64, keys: KeyHeap | None, *, horizon: int
) -> Table:
    """A table of rows in any order; equal first words keep their order. O(n) radix sort."""
    if fingerprints.shape[1] == 1 and keys is None:
        words, sorted_ids = _native.sort_pairs(np.ascontiguousarray(fingerprints[:, 0]), ids)
        rows = words[:, None]
    else:
        order = _native.sort_rows(np.ascontiguousarray(fingerprints[:, 0]))
        rows = _native.take_rows(fingerprints, order)
        sorted_ids = ids[order]
        keys = None if keys is None else keys.take(order)
    return Table(
        name, rows, sorted_ids, keys, horizon=horizon, header_bits=header_bits(len(rows))
    )
