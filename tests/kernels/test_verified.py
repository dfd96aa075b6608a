"""Bytes are compared with their checksums when they are first touched, and only then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native
from simindex.bits import vosh
from simindex.bits.volatility import STEP
from simindex.errors import CorruptFile

CHUNK = 1 << 16
BITS = 10
ROWS = 30_000


def section(data: np.ndarray[Any, Any], **said: Any) -> _native.Verified:
    """The bytes of an array as a section whose checksums hold."""
    raw = data.reshape(-1).view(np.uint8)
    return _native.Verified(raw, _native.crc32c_chunks(raw, CHUNK, 7), 7, **said)


def chunks_of(start: int, stop: int) -> set[int]:
    """Chunks that hold bytes start to stop - 1."""
    return {byte // CHUNK for byte in (*range(start, stop, CHUNK), stop - 1)} if stop > start else (
        set()
    )


@settings(max_examples=60)
@given(data=st.data(), size=st.integers(1, 5 * CHUNK + 3))
def test_a_touch_compares_the_chunks_it_reaches_once(data: st.DataObject, size: int) -> None:
    """Against sets of chunks, whole ranges and scattered spans alike, any chunk damaged."""
    bytes_ = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    one = section(bytes_, path=b"a file", offset=4096, remedy="do this")
    count = -(-size // CHUNK)
    damaged = data.draw(st.integers(0, size - 1))
    bytes_[damaged] ^= 1 << data.draw(st.integers(0, 7))
    whole: set[int] = set()
    for _ in range(6):
        spans = sorted(data.draw(st.lists(st.integers(0, size), min_size=2, max_size=2)))
        reached = chunks_of(*spans)
        try:
            if data.draw(st.booleans()):
                threads = data.draw(st.integers(1, 3))
                one.verify(one.address + spans[0], spans[1] - spans[0], threads)
            else:
                one.verify_spans(one.address, *(np.array([at], np.int64) for at in spans))
        except CorruptFile as error:
            at = damaged // CHUNK * CHUNK
            assert damaged // CHUNK in reached
            assert error.data == {"path": "a file", "offset": 4096 + at}
            assert str(error) == (
                f"a file is damaged within {min(CHUNK, size - at)} bytes at {4096 + at}: do this"
            )
            reached = set()  # some of them, as threads will have it
            whole = set(range(count - one.left))
            assert one.left >= 1
            break
        assert damaged // CHUNK not in reached
        whole |= reached
        assert one.left == count - len(whole)


def test_a_mark_is_kept(rng: np.random.Generator) -> None:
    """Invariant 1: what changes after its first touch is not noticed."""
    data = rng.integers(0, 256, 3 * CHUNK, dtype=np.uint8)
    one = section(data)
    one.verify(one.address, CHUNK)
    data[5] ^= 1
    data[CHUNK] ^= 1
    one.verify(one.address, CHUNK)
    with pytest.raises(CorruptFile):
        one.verify(one.address, CHUNK + 1)


def test_what_is_not_within_the_section_is_refused(rng: np.random.Generator) -> None:
    data = rng.integers(0, 256, CHUNK, dtype=np.uint8)
    one = section(data)
    for address, size in ((one.address - 1, 1), (one.address, CHUNK + 1), (one.address, 1 << 63)):
        with pytest.raises(ValueError, match="within"):
            one.verify(address, size)
    for start, end in ((-1, 2), (0, CHUNK + 1), (3, 2)):
        with pytest.raises(ValueError, match="within"):
            one.verify_spans(one.address, np.array([start]), np.array([end]))
    with pytest.raises(ValueError, match="one for each chunk"):
        _native.Verified(data, np.zeros(2, np.uint32), 7)
    rows = np.zeros((10, 1), np.uint64)
    with pytest.raises(ValueError, match="part of"):
        _native.CheckedTable(rows, np.array([0, 10], np.uint32), 0, rows[:, 0].copy(), one)


def test_threads_meet_at_chunks(rng: np.random.Generator) -> None:
    """Each chunk is counted once, whoever comes first."""
    data = rng.integers(0, 256, 40 * CHUNK, dtype=np.uint8)
    for _ in range(20):
        one = section(data)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _, one=one: one.verify(one.address, one.size, 2), range(8)))
        assert one.left == 0


# -- kernels that look at rows in no order ---------------------------------------------------------


class Stored:
    """A sorted table, its ids and queries near some of its rows."""

    def __init__(self, words: int) -> None:
        rng = np.random.default_rng(words)
        rows = rng.integers(0, 2**64, (ROWS, words), dtype=np.uint64)
        self.rows = rows[np.argsort(rows[:, 0])]
        self.ids = rng.permutation(ROWS).astype(np.uint64)
        self.directory = _native.header_directory(np.ascontiguousarray(self.rows[:, 0]), BITS)
        self.queries = self.rows[rng.integers(0, ROWS, 12)].copy()
        self.weights = np.ones((12, 64 * words), np.float32)

    def bucket(self, query: int, flip: int) -> tuple[int, int]:
        place = int(self.queries[query, 0] ^ np.uint64(flip)) >> (64 - BITS)
        return int(self.directory[place]), int(self.directory[place + 1])


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("first", [False, True])
def test_probes_touch_their_buckets_alone(words: int, first: bool, level: int) -> None:
    """Damage anywhere: an error if a bucket's chunk has it, else the answer of the whole table."""
    stored = Stored(words)
    masks = np.array([0, 1 << 63, 1 << 55], np.uint64)
    row_bytes = 8 * words
    expected: dict[str, Any] = {}
    for damaged in (None, *range(-(-ROWS * row_bytes // CHUNK))):
        rows = stored.rows.copy()
        checks = section(rows)
        if damaged is not None:
            rows.reshape(-1).view(np.uint8)[min(damaged * CHUNK + 77, rows.nbytes - 1)] ^= 1
        table = _native.CheckedTable(
            rows, stored.directory, BITS, stored.ids, checks, section(stored.ids)
        )
        needed = set[int]()
        for query in range(12):
            for mask in masks.tolist():
                lo, hi = stored.bucket(query, mask)
                needed |= chunks_of(max(0, lo - 1) * row_bytes, hi * row_bytes)
        try:
            found = _native.probe_checked(table, BITS, stored.queries, masks, 3, first, level)
        except CorruptFile:
            assert damaged in needed
            continue
        assert damaged not in needed
        assert checks.left == -(-rows.nbytes // CHUNK) - len(needed)
        expected.setdefault("found", [column.tolist() for column in found[:4]])
        assert [column.tolist() for column in found[:4]] == expected["found"]
    assert len(expected["found"][0]) >= 12


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("words", [1, 2])
def test_no_search_sees_damaged_rows(words: int, level: int) -> None:
    """PSM by networks and by a heap, sweeps, BPHS and slice lists, at every level."""
    stored = Stored(words)
    rows, ids = stored.rows.copy(), stored.ids.copy()
    order = vosh.plan(BITS, 3, 12)
    costs = np.linspace(0, 9, 64, dtype=np.float32)
    checked_vosh = _native.CheckedVosh(
        costs, STEP, 64 * words, BITS, 3, 12, order.candidates, order.sort_network,
        order.select_network,
    )
    width, count = 8, 8 * words
    starts, numbers = _native.slice_lists(rows, width, 0, count)
    none = np.empty((0, 4), np.uint64)
    header = np.zeros(words, np.uint64)
    header[0] = np.uint64(((1 << BITS) - 1) << (64 - BITS))
    masks = np.zeros(1, np.uint64)

    def table(of: list[_native.Verified]) -> _native.CheckedTable:
        return _native.CheckedTable(rows, stored.directory, BITS, ids, of[0], of[1])

    def slices(of: list[_native.Verified]) -> _native.CheckedSlices:
        return _native.CheckedSlices(rows, ids, starts, numbers, *of)

    def sweep(of: list[_native.Verified]) -> Any:
        checked = table(of)
        probes = _native.partition_headers(checked, BITS, stored.queries, None)
        return _native.sweep(checked, probes, 3, 0, probes.partitions, None, level)

    def bphs(of: list[_native.Verified], sweep_queries: int) -> Any:
        permuted = _native.CheckedPermuted(
            rows, stored.directory, BITS, BITS, none, none, masks, header, 0, of[0]
        )
        return _native.bphs(
            table(of), BITS, [permuted], stored.queries, 3, False, sweep_queries, level
        )

    searches = {
        "psm": lambda of: _native.psm_checked(
            table(of), checked_vosh, stored.queries, stored.weights, False, level
        ),
        "sweep": sweep,
        "bphs": lambda of: bphs(of, 0),
        "bphs swept": lambda of: bphs(of, 1),
        "top": lambda of: _native.top_slices(slices(of), stored.queries, 2, 1, 50, None, 2, level),
        "top whole": lambda of: _native.top_slices(
            slices(of), stored.queries, 2, 1, ROWS, None, 1, level
        ),
        "within": lambda of: _native.slices_within(slices(of), stored.queries, 3, 0, False, level),
        "within, all errors": lambda of: _native.slices_within(
            slices(of), stored.queries, 3, 8, False, level
        ),
    }
    arrays = (rows, ids, numbers)
    whole = [section(array) for array in arrays]

    def columns(found: Any) -> list[Any]:
        return [column.tolist() for column in found if isinstance(column, np.ndarray)]

    expected = {name: columns(ask(whole)) for name, ask in searches.items()}
    refused = dict.fromkeys(searches, 0)
    for array in arrays:
        raw = array.reshape(-1).view(np.uint8)
        for start in range(0, raw.size, CHUNK):
            sums = [_native.crc32c_chunks(a.reshape(-1).view(np.uint8), CHUNK, 7) for a in arrays]
            place = min(start + 4321, raw.size - 1)
            raw[place] ^= 1
            for name, ask in searches.items():
                of = [
                    _native.Verified(a.reshape(-1).view(np.uint8), sum_, 7)
                    for a, sum_ in zip(arrays, sums, strict=True)
                ]
                try:
                    assert columns(ask(of)) == expected[name], name
                except CorruptFile:
                    refused[name] += array is rows
            raw[place] ^= 1
    assert min(refused.values()) >= 2, refused  # for rows; ids are looked at by all of them
