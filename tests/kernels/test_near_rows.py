"""Buckets compared in any way give all rows within the radius, whatever bytes they differ in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native
from simindex.arrays import U64
from simindex.methods import psm

levels = pytest.mark.parametrize("level", range(len(LEVELS)))
NO_ROTATION = np.empty((0, 4), np.uint64)
Found = list[tuple[int, int, int]]


def spread(rng: np.random.Generator, queries: U64, flips: int, below: int) -> U64:
    """Queries with so many bits flipped, each in another byte, among the lowest `below` bits."""
    words = queries.copy()
    whole = -(-below // 8)
    for at in range(len(words)):
        for byte in rng.choice(whole, min(flips, whole), replace=False):
            bits = min(8, below - 8 * int(byte))
            words[at] ^= np.uint64(1) << np.uint64(8 * int(byte) + int(rng.integers(0, bits)))
    return words


def brute(rows: U64, queries: U64, h: int) -> Found:
    distance = np.bitwise_count(rows[None, :] ^ queries[:, None])
    query, row = np.nonzero(distance <= h)
    return [(int(q), int(r), int(distance[q, r])) for q, r in zip(query, row, strict=True)]


def ordered(query: object, row: object, distance: object) -> Found:
    columns = [np.asarray(column).tolist() for column in (query, row, distance)]
    return sorted(zip(*columns, strict=True))


class Case:
    """Rows that share headers with queries and are as far as h, among others."""

    def __init__(self, seed: int, h: int, header_bits: int, n: int, m: int, shift: int) -> None:
        rng = np.random.default_rng(seed)
        self.h, self.bits = h, header_bits
        self.queries = rng.integers(0, 1 << 64, m, dtype=np.uint64)
        of = self.queries[rng.integers(0, m, n // 2)]
        near = np.concatenate([
            spread(rng, part, flips, 64 - header_bits)
            for flips, part in enumerate(np.array_split(of, h + 2))
        ])
        rows = np.concatenate([near, rng.integers(0, 1 << 64, n - len(near), dtype=np.uint64)])
        # Not at the start of a cache line, as the rows of the second table of a file need not be.
        held = np.empty(n + 16, np.uint64)
        start = (-held.ctypes.data // 8 + shift) % 8
        self.rows = held[start : start + n]
        self.rows[:] = np.sort(rows)
        self.directory = _native.header_directory(self.rows.copy(), header_bits)

    def expected(self) -> Found:
        """Near rows under the query's own header."""
        shift = np.uint64(64 - self.bits)
        own = self.rows[None, :] >> shift == self.queries[:, None] >> shift
        if self.bits == 0:
            own[:] = True
        return [one for one in brute(self.rows, self.queries, self.h) if own[one[0], one[1]]]

    def probed(self, level: int) -> Found:
        found = _native.probe(
            self.rows[:, None], self.directory, self.bits, self.bits, self.queries[:, None],
            np.zeros(1, np.uint64), self.h, False, level,
        )
        return ordered(*found[:3])

    def swept(self, level: int) -> tuple[Found, int]:
        table = _native.CheckedTable(
            self.rows[:, None], self.directory, self.bits,
            np.arange(len(self.rows), dtype=np.uint64),
        )
        own = _native.CheckedPermuted(
            self.rows[:, None], self.directory, self.bits, self.bits, NO_ROTATION, NO_ROTATION,
            psm.exhaustive_masks(self.bits, 0), np.zeros(1, np.uint64), 0,
        )
        query, row, distance, *_, compared, missing = _native.bphs(
            table, self.bits, [own], self.queries[:, None], self.h, False, 1, level
        )
        assert missing == 0
        return ordered(query, row, distance), compared

    def compared(self) -> int:
        header = (self.queries >> np.uint64(64 - self.bits)).astype(np.int64)
        if self.bits == 0:
            header[:] = 0
        return int((self.directory[header + 1].astype(np.int64) - self.directory[header]).sum())


@levels
@pytest.mark.parametrize("header_bits", [0, 1, 4, 8, 13, 16, 20, 23])
@pytest.mark.parametrize("h", range(9))
def test_rows_that_differ_in_as_many_bytes_as_bits_are_found(
    level: int, h: int, header_bits: int
) -> None:
    case = Case(h, h, header_bits, n=600, m=40, shift=h)
    assert case.probed(level) == case.expected()
    found, compared = case.swept(level)
    assert found == case.expected()
    assert compared == case.compared()


@given(
    seed=st.integers(0, 2**20), h=st.integers(0, 8), header_bits=st.integers(0, 6),
    n=st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 24, 40, 64, 65, 300, 3000]),
    m=st.sampled_from([1, 3, 50, 400]), shift=st.integers(0, 7),
    level=st.integers(0, len(LEVELS) - 1),
)
@pytest.mark.slow
def test_long_and_short_buckets_anywhere_in_a_line(
    seed: int, h: int, header_bits: int, n: int, m: int, shift: int, level: int
) -> None:
    """With many queries to a header, and long buckets, a sweep goes bucket by bucket."""
    case = Case(seed, h, header_bits, n, m, shift)
    assert case.probed(level) == case.expected()
    found, compared = case.swept(level)
    assert found == case.expected()
    assert compared == case.compared()


@levels
@pytest.mark.parametrize("h", range(9))
def test_a_scan_finds_them_too(level: int, h: int) -> None:
    case = Case(h, h, 0, n=5000, m=20, shift=h)
    query, row, distance, _ = _native.scan(
        case.rows[:, None], case.queries[:, None], h, False, level
    )
    assert ordered(query, row, distance) == brute(case.rows, case.queries, h)
