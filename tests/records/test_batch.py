"""What is not a fingerprint or key never becomes one.

What callers do wrong with a whole index is in tests/test_bad_input.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from simindex import Batch
from simindex.errors import (
    InvalidBatch,
)


def test_length_of_a_key_is_in_bytes() -> None:
    with pytest.raises(InvalidBatch, match="longer"):
        Batch(np.zeros(1, np.uint64), keys=["\U00010000" * 20_000])
    assert len(Batch(np.zeros(1, np.uint64), keys=["\U00010000" * 16_383])) == 1


def test_fingerprints_below_zero_are_refused() -> None:
    """Numbers of numpy's, too, which it would wrap."""
    for values in ([-1], [np.int64(-1)], [3, np.int8(-1)]):
        with pytest.raises(InvalidBatch, match=r"not from 0 to 2\*\*64"):
            Batch(values)
    assert Batch([np.int64(3), np.uint64(2**64 - 1)]).fingerprints.tolist() == [3, 2**64 - 1]


def test_one_element_of_an_array_is_a_fingerprint() -> None:
    rows = np.arange(3, dtype=np.uint64)
    assert Batch(rows[2]).fingerprints.tolist() == [2]


def test_keys_of_numpy_are_plain_keys() -> None:
    rows = np.arange(2, dtype=np.uint64)
    for given, plain in ((np.array(["a", "b"]), ["a", "b"]), (np.array([b"a", b"b"]), [b"a", b"b"]),
                         (["a", np.str_("b")], ["a", "b"])):
        keys = Batch(rows, keys=given).keys
        assert keys == plain
        assert keys is not None
        assert {type(key) for key in keys} == {type(plain[0])}
