"""Two different keys of equal MurmurHash3 were one document, and were deleted together.

MurmurHash3 can be inverted block by block, so whoever chose keys, as a crawled site chooses its
addresses, could build one whose hash is that of another. Keys are hashed with a secret of the index
now, and a deletion compares whole keys.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import mmh3
import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.storage.tables.keys import KeyHeap

WORD = (1 << 64) - 1
C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
FINISH = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)

VICTIM = b"http://victim.example/page/00001"
BEGINNING = b"http://evil/aaa/"
"""Of the key that is built: the 16 bytes after it are what the hash demands."""

State = tuple[int, int]


def left(value: int, places: int) -> int:
    return (value << places | value >> (64 - places)) & WORD


def divided(value: int, odd: int) -> int:
    return value * pow(odd, -1, 1 << 64) & WORD


def mixed(state: State, block: bytes) -> State:
    """The state after a block of 16 bytes."""
    (h1, h2), (k1, k2) = state, struct.unpack("<2Q", block)
    h1 ^= left(k1 * C1 & WORD, 31) * C2 & WORD
    h1 = ((left(h1, 27) + h2) * 5 + 0x52DCE729) & WORD
    h2 ^= left(k2 * C2 & WORD, 33) * C1 & WORD
    h2 = ((left(h2, 31) + h1) * 5 + 0x38495AB5) & WORD
    return h1, h2


def block_between(before: State, after: State) -> bytes:
    """The block that leads from one state to another: there always is one."""
    (h1, h2), (g1, g2) = before, after
    scrambled1 = h1 ^ left((divided(g1 - 0x52DCE729, 5) - h2) & WORD, 64 - 27)
    scrambled2 = h2 ^ left((divided(g2 - 0x38495AB5, 5) - g1) & WORD, 64 - 31)
    return struct.pack(
        "<2Q", divided(left(divided(scrambled1, C2), 64 - 31), C1),
        divided(left(divided(scrambled2, C1), 64 - 33), C2),
    )


def finished(value: int) -> int:
    for factor in FINISH:
        value = (value ^ value >> 33) * factor & WORD
    return value ^ value >> 33


def unfinished(value: int) -> int:
    value ^= value >> 33
    for factor in reversed(FINISH):
        value = divided(value, factor)
        value ^= value >> 33
    return value


def last_state(key: bytes) -> State:
    return mixed(mixed((0, 0), key[:16]), key[16:])


def equal_in_128_bits(key: bytes) -> bytes:
    """Another key of 32 bytes that ends in the same state."""
    return BEGINNING + block_between(mixed((0, 0), BEGINNING), last_state(key))


def equal_in_64_bits(key: bytes) -> bytes:
    """Another key of 32 bytes whose hash has the same first half and another second one.

    The first half is the sum of two finished words: 1 less in one, 1 more in the other.
    """
    h1, h2 = (half ^ len(key) for half in last_state(key))
    h1 = (h1 + h2) & WORD
    h2 = (h2 + h1) & WORD
    g1, g2 = unfinished((finished(h1) - 1) & WORD), unfinished((finished(h2) + 1) & WORD)
    g2 = (g2 - g1) & WORD
    g1 = (g1 - g2) & WORD
    after = (g1 ^ len(key), g2 ^ len(key))
    return BEGINNING + block_between(mixed((0, 0), BEGINNING), after)


def test_the_keys_collide_as_they_did() -> None:
    """The constructions are right: an unseeded MurmurHash3 takes the keys for equal."""
    whole, half = equal_in_128_bits(VICTIM), equal_in_64_bits(VICTIM)
    assert len({VICTIM, whole, half}) == 3
    assert mmh3.hash64(whole) == mmh3.hash64(VICTIM)
    assert mmh3.hash64(half)[0] == mmh3.hash64(VICTIM)[0]
    assert mmh3.hash64(half)[1] != mmh3.hash64(VICTIM)[1]


@pytest.mark.parametrize("build", [equal_in_128_bits, equal_in_64_bits])
@pytest.mark.parametrize("batch_rows", [8, 1 << 20], ids=["segment", "pending"])
def test_keys_that_were_built_to_collide_stay_two_documents(
    index_path: Path, build: Callable[[bytes], bytes], batch_rows: int
) -> None:
    evil = build(VICTIM)
    rows = np.array([1, 2**63, 1, 2], np.uint64)
    options = IndexOptions(keys="bytes", batch_rows=batch_rows, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        ids = index.append(Batch(rows, keys=[VICTIM, evil, evil, VICTIM])).tolist()
        assert ids[0] == ids[3] != ids[1] == ids[2]
        index.commit()
        assert {(m.distance, m.key) for m in index.query(rows[:1], h=0)} == {
            (0, VICTIM), (0, evil)
        }
        top = index.top(rows[:1], k=4)
        assert top.distance[0].tolist()[:2] == [0, 0]
        assert {top.keys()[0][0], top.keys()[0][1]} == {VICTIM, evil}
        assert {
            frozenset(pair) for part in index.pairs(h=3) for pair in zip(*part.keys(), strict=True)
        } == {frozenset((VICTIM, evil))}
        assert index.clusters(h=3).documents == 2
        index.delete(keys=[evil])
        index.commit()
        for _ in range(2):
            left_over = [key for part in index.rows() for key in part.keys or []]
            assert left_over == [VICTIM, VICTIM]
            assert len(index) == 2
            assert index.check() == []
            index.compact(full=True)


@pytest.mark.parametrize("batch_rows", [8, 1 << 20], ids=["segment", "pending"])
def test_deletion_compares_whole_keys(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    """Also of keys whose 128 bits are equal, as whoever knows the secret may find some."""

    def hashes(heap: KeyHeap, *secret: bytes) -> np.ndarray:
        return np.full((len(heap.offsets) - 1, 2), 5, np.uint64)

    monkeypatch.setattr(KeyHeap, "hashes", hashes)
    options = IndexOptions(keys="bytes", batch_rows=batch_rows, min_merge=0)
    keys = [b"a", b"b", b"", b"ab"]
    with simindex.open(index_path, "c", options=options) as index:
        assert set(index.append(Batch(np.arange(4, dtype=np.uint64), keys=keys)).tolist()) == {5}
        index.commit()
        for doomed, kept in ((b"b", [b"", b"a", b"ab"]), (b"", [b"a", b"ab"]), (b"a", [b"ab"])):
            index.delete(keys=[doomed, b"c"])
            index.commit()
            assert sorted(key for part in index.rows() for key in part.keys or []) == kept
            assert sorted(index.query(np.arange(4, dtype=np.uint64), h=0).keys()) == kept
            assert len(index) == len(kept)
        assert index.check() == []
        index.compact(full=True)
        assert [key for part in index.rows() for key in part.keys or []] == [b"ab"]
        index.append(Batch(np.array([9], np.uint64), keys=[b"a"]))
        index.commit()
        assert len(index) == 2
