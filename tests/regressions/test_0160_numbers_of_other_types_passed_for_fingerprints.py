"""`simindex.compat.simhash_py.num_differing_bits` counted the bits of what is no fingerprint: of
-1 and 0 it gave 1, and simhash-py refuses -1. `Simhash` of `simindex.compat.simhash` took an `f` of
numpy and then failed on hashes that are numbers; a wrong `f`, `window` or hash was a TypeError.
`batch` refused the hashes of an iterator, which `compute` takes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import simindex.compat.simhash_py as simhash
from simindex.compat.simhash import Simhash
from simindex.errors import InvalidBatch, InvalidOption


@pytest.mark.parametrize(
    "pair", [(-1, 0), (0, -1), (-1, -1), (2**64, 0), (2**65, 2**65), (1.0, 2), ("a", 1), (None, 1)]
)
def test_what_is_no_fingerprint_has_no_bits(pair: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidBatch, match="not a whole number from 0 to"):
        simhash.num_differing_bits(*pair)


def test_numbers_of_numpy_have_the_same_bits() -> None:
    wide = 2**64 - 1
    assert simhash.num_differing_bits(wide, 0) == 64
    unsigned: Any = np.uint64(wide)
    signed: Any = np.int64(7)
    assert simhash.num_differing_bits(unsigned, 1) == 63
    found = simhash.num_differing_bits(unsigned, signed)
    assert found == 61 and type(found) is int


def test_a_batch_takes_what_compute_takes() -> None:
    documents = [[1, 2, 3], [], [2**64 - 1]]
    made = [
        simhash.batch(map(kind, documents)).rows[:, 0].tolist()
        for kind in (list, iter, set, np.array)
    ]
    assert made == [[simhash.compute(one) for one in documents if one]] * 4


def as_number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest(), "big")


@pytest.mark.parametrize("f", [8, 64, 128, 256])
def test_f_of_numpy_is_a_number(f: int) -> None:
    whole: Any = np.int64(f)
    made = Simhash(["a", "b", "c"], f=whole, hashfunc=as_number)
    assert made.value == Simhash(["a", "b", "c"], f=f, hashfunc=as_number).value
    assert type(made.f) is int and made.distance(Simhash(0, f=f)) == made.value.bit_count()


@pytest.mark.parametrize("f", [64.0, "64", None, True, 0, -8, 7])
def test_a_wrong_f_is_refused(f: Any) -> None:
    with pytest.raises(InvalidOption, match="is not a multiple of 8"):
        Simhash("a text", f=f)


@pytest.mark.parametrize("window", [0, -1, 2.5, "2", None])
def test_a_wrong_window_is_refused(window: Any) -> None:
    with pytest.raises(InvalidOption, match="window="):
        simhash.shingle("abc", window)


@pytest.mark.parametrize("gives", ["0123456789abcdef", 1.5, None, [1] * 8 + [256]])
def test_a_hash_of_another_type_is_refused(gives: Any) -> None:
    with pytest.raises(InvalidOption, match=f"hashfunc gives {type(gives).__name__}, not bytes"):
        Simhash("a text", hashfunc=lambda _: gives)
