"""Kernels by way of their bindings, with hostile arrays: what `native/` does, where no clang is.

A target's bytes choose the kernel, the sizes and the values; what a binding refuses with ValueError
is as good as an answer, and every answer must name rows that are there, at their distance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from fuzzing.target import Target
from simindex._kernels import _native
from simindex.arrays import U64

U32 = NDArray[np.uint32]
LEVELS = len(_native.levels())


class _Chosen:
    """Sizes and arrays that bytes choose; after them zeros."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = np.frombuffer(data, np.uint8), 0

    def __call__(self, most: int) -> int:
        return int(self.bytes(1)[0]) % (most + 1)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        found = self._data[self._at : self._at + count]
        self._at += count
        return np.pad(found, (0, count - len(found)))

    def rows(self, count: int, words: int) -> U64:
        """Rows near one of eight, in no order, now and then any."""
        kinds = self.bytes(count * words).astype(np.uint64).reshape(count, words)
        base = (kinds & np.uint64(7)) * np.uint64(0x9E3779B97F4A7C15)
        flip = np.where(kinds > 100, np.uint64(1) << (kinds & np.uint64(63)), np.uint64(0))
        made: U64 = base ^ flip
        return made

    def offsets(self, count: int, rows: int) -> U32:
        """Row numbers, some of them out of range."""
        kinds = self.bytes(count).astype(np.int64)
        made = np.where(kinds < 200, kinds % (rows + 2), (1 << 32) - kinds)
        return made.astype(np.uint32)


def _checked(rows: U64, queries: U64, found: tuple[object, ...], h: int) -> None:
    query, row, distance = (np.asarray(column) for column in found[:3])
    assert (query < len(queries)).all() and (row < len(rows)).all(), "a row that is not there"
    apart = np.bitwise_count(rows[row] ^ queries[query]).sum(axis=1)
    assert np.array_equal(apart, distance) and (apart <= h).all(), "another distance"


def _table(chosen: _Chosen, words: int) -> tuple[U64, U32, int]:
    rows = chosen.rows(chosen(70), words)
    bits = chosen(6)
    if chosen(1):
        directory = chosen.offsets((1 << bits) + 1, len(rows))
    else:
        rows = rows[np.lexsort(tuple(rows.T[::-1]))] if len(rows) else rows
        directory = _native.header_directory(np.ascontiguousarray(rows[:, 0]), bits)
        places = chosen.bytes(chosen(3)).astype(np.int64) % len(directory)
        directory[places] = chosen.offsets(len(places), len(rows))
    return rows, directory, bits


def probe(chosen: _Chosen) -> None:
    """Probes and sweeps under directories that lie."""
    words = 1 + chosen(2)
    rows, directory, bits = _table(chosen, words)
    queries = chosen.rows(1 + chosen(20), words)
    table = _native.CheckedTable(rows, directory, bits, np.arange(len(rows), dtype=np.uint64))
    h, level = chosen(80), chosen(LEVELS - 1)
    header = chosen(bits)
    flips = chosen.rows(chosen(9), 1)[:, 0].copy()
    _checked(rows, queries, _native.probe_checked(
        table, header, queries, flips, h, bool(chosen(1)), level
    ), h)
    if header:
        numbers = chosen.offsets(chosen(30), len(queries)) if chosen(1) else None
        probes = _native.partition_headers(table, header, queries, numbers)
        _checked(rows, queries, _native.sweep(
            table, probes, h, 0, probes.partitions, level=level
        ), h)


def slices(chosen: _Chosen) -> None:
    """Slice lists of arbitrary row numbers."""
    words = 1 + chosen(1)
    rows = chosen.rows(chosen(70), words)
    count = 8 * words
    starts = np.zeros((count, 257), np.uint32)
    for number in range(count):
        starts[number, 1:] = np.cumsum(np.bincount(chosen.bytes(len(rows)), minlength=256))
    numbers = np.stack([chosen.offsets(len(rows), len(rows)) for _ in range(count)])
    if not chosen(3):
        starts[chosen(count - 1), chosen(255)] = chosen.offsets(1, len(rows))[0]
    ids = np.arange(len(rows), dtype=np.uint64)
    lists = _native.CheckedSlices(rows, ids, starts, numbers)
    queries = chosen.rows(1 + chosen(9), words)
    h, level = chosen(100), chosen(LEVELS - 1)
    _checked(rows, queries, _native.slices_within(
        lists, queries, h, chosen(3), bool(chosen(1)), level
    ), h)
    _native.top_slices(lists, queries, 1 + chosen(90), chosen(3), 1 + chosen(90), level=level)


def columns(chosen: _Chosen) -> None:
    """Heaps, gathering and checksums."""
    offsets = np.cumsum(chosen.bytes(1 + chosen(20)).astype(np.int64) % 9)
    if chosen(1):
        offsets[chosen(len(offsets) - 1)] = (-1, 1 << 62, 1 << 40, 5)[chosen(3)]
    order = chosen.bytes(chosen(20)).astype(np.int64) % (len(offsets) + 1) - (chosen(5) == 5)
    data = chosen.bytes(chosen(200))
    _native.crc32c_chunks(data, 1 + chosen(60), chosen(255), level=chosen(LEVELS - 1))
    _native.murmur3(data, offsets)
    _native.siphash(data, offsets, chosen.bytes(16))
    _native.equal_bytes(offsets, data, order, offsets[::-1].copy(), data, order[::-1].copy())
    _native.take_bytes(offsets, data, order)


def nearest(chosen: _Chosen) -> None:
    """Scans, the nearest of each query, all pairs."""
    words = 1 + chosen(4)
    rows, queries = chosen.rows(chosen(60), words), chosen.rows(1 + chosen(30), words)
    h, level = chosen(100), chosen(LEVELS - 1)
    _checked(rows, queries, _native.scan(rows, queries, h, bool(chosen(1)), level), h)
    ids = chosen.rows(len(rows), 1)[:, 0].copy()
    dead = (chosen.bytes(len(rows)) & 1).astype(np.uint8)
    _native.top_scan(rows, ids, queries, 1 + chosen(90), dead, 1, level)
    blocks = np.array([[0, 20], [20, 20], [40, 24]], np.uint32)
    a, b, distance, *_ = _native.all_pairs(rows, blocks, chosen(3), h, True, 1 << 20, 1, level)
    _checked(rows, rows, (a, b, distance), h)


def text(chosen: _Chosen) -> None:
    """Arbitrary bytes and characters as text, equal at every level."""
    raw = chosen.bytes(chosen(200)).tobytes()
    some = [raw, raw.decode("latin-1"), raw.decode("utf-16-le", "surrogatepass" if chosen(1) else
                                                   "replace") if len(raw) % 2 == 0 else "a"]
    sizes = np.array([1 + chosen(3)], np.uint8)
    made = [
        _native.TextRecipe(
            chosen(0), True, sizes, 7, 1, False, np.empty((0, 8), np.uint64), 4096,
            np.empty(0, np.uint32), 0, np.empty(0, np.int16), 1, 1, level,
        ).texts(some)
        for level in range(LEVELS)
    ]
    for other in made[1:]:
        assert other[3] == made[0][3], "levels disagree on what is text"
        if made[0][3] == (-1, -1):
            assert np.array_equal(other[0], made[0][0]), "levels disagree"


JSON = (
    b'{"id":"k","text":"t"}\n',
    b'{"id": "k\\u0041", "n": [1.5e3, {"a": null}], "text": "\xc3\xa9"}\n',
)


def lines(chosen: _Chosen) -> None:
    """JSON lines with some bytes changed: plain is what `json` reads alike."""
    block = np.frombuffer(JSON[chosen(1)] * (1 + chosen(3)), np.uint8).copy()
    for _ in range(chosen(6)):
        block[chosen(255) % len(block)] = chosen(255)
    block = block[: chosen(255)]
    text, key = (np.frombuffer(name, np.uint8) for name in (b"text", b"id"))
    starts, plain, texts, text_ends, keys, key_ends = _native.json_lines(
        block, text, key, 10 + chosen(200), 1 + chosen(5)
    )
    for at in np.flatnonzero(plain).tolist():
        record = json.loads(block[starts[at] : starts[at + 1]].tobytes().decode())
        for name, data, ends in (("text", texts, text_ends), ("id", keys, key_ends)):
            assert data[ends[at] : ends[at + 1]].tobytes().decode() == str(record[name]), name
    if chosen(1):
        starts = chosen.offsets(1 + chosen(5), 40).astype(np.int64)
    inserts = chosen.bytes(chosen(20))
    insert_ends = np.sort(chosen.bytes(len(starts)).astype(np.int64) % (len(inserts) + 1))
    done, size, out = _native.spliced_lines(block, starts, inserts, insert_ends, block[:2].copy())
    assert done < len(starts) and size <= len(out), "more than there is"


def records(chosen: _Chosen) -> None:
    """Distances of the sketches of rows, to which no size adds."""
    words = 1 + chosen(20)
    some, others = (chosen.bytes(count * (8 * words + 1)).reshape(count, -1)
                    for count in (1 + chosen(9), 1 + chosen(9)))
    count = chosen(40)
    one, other = (chosen.offsets(count, len(side)).astype(np.int64) for side in (some, others))
    if chosen(7):  # most are rows that are there, so that distances are counted
        one, other = one % len(some), other % len(others)
    found = _native.record_distances(some, one, others, other, chosen(LEVELS - 1))
    apart = np.bitwise_count(some[one, :-1] ^ others[other, :-1]).sum(axis=1, dtype=np.int64)
    assert np.array_equal(found, apart), "another distance"


KERNELS: tuple[Callable[[_Chosen], None], ...] = (
    probe, slices, columns, nearest, text, lines, records,
)


def seeds() -> list[bytes]:
    """Bytes for each kernel."""
    noise = np.random.default_rng(7).integers(0, 256, 600, dtype=np.uint8).tobytes()
    return [bytes([kernel]) + noise[start : start + 300] for kernel in range(len(KERNELS))
            for start in (0, 100, 200)]


def execute(data: bytes) -> None:
    """Calls the kernel that the first byte names."""
    chosen = _Chosen(data[1:])
    with suppress(ValueError):  # a binding refused its arguments, before any kernel saw them
        KERNELS[data[0] % len(KERNELS) if data else 0](chosen)


TARGET = Target("kernels", seeds, execute)
