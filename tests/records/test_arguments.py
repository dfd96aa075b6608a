"""What is not a fingerprint or key never becomes one.

What callers do wrong with a whole index is in tests/test_bad_input.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import InvalidBatch


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


@pytest.mark.parametrize("bits", [64, 128])
def test_the_remedy_for_texts_works_where_an_index_has_no_recipe_yet(
    bits: int, tmp_path: Path
) -> None:
    options = IndexOptions(bits=bits)
    with simindex.open(tmp_path / "i.sim", "c", options=options) as index:
        for call in (
            lambda: index.append(["a text"], keys=["x"]), lambda: index.ingest(["a text"]),
            lambda: index.replace(["a text"]), lambda: index.append(np.array(["a text"])),
        ):
            with pytest.raises(InvalidBatch, match="texts") as caught:
                call()
            told = str(caught.value.remedy)
            assert f"simindex.Recipe({'' if bits == 64 else 'bits=128'}) for an index" in told
            assert "index.recipe" in told
        recipe = index.recipe or simindex.Recipe(bits=bits)
        index.append(recipe.batch(["a text"], keys=["x"]))
        index.commit()
        assert [match.key for match in index.query("a text")] == ["x"]
