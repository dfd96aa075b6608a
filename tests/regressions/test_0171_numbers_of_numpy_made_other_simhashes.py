"""`Simhash` ended with an OverflowError if its width was a number of numpy, and summed weights of
one byte past 255; `IndexOptions(keys=)` refused a truth value of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simindex import IndexOptions
from simindex.compat.simhash import Simhash, SimhashIndex
from simindex.errors import InvalidOption

WHOLE = [np.int64, np.uint64, np.uint32, np.int8, np.uint8]
TEXTS = "the quick brown fox", "the quick brown dog"


@pytest.mark.parametrize("kind", WHOLE)
def test_a_width_of_numpy_is_a_number(kind: Any) -> None:
    one, other = (Simhash(text, f=kind(64)) for text in TEXTS)
    plain = [Simhash(text) for text in TEXTS]
    assert [one.value, other.value] == [each.value for each in plain]
    assert one.distance(other) == plain[0].distance(plain[1])
    assert type(one.f) is int
    with SimhashIndex([("one", one)], f=kind(64), k=kind(2)) as index:
        assert index.get_near_dups(plain[0]) == ["one"]


@pytest.mark.parametrize("width", [64.0, "64", None, 12, -8, 0, np.float64(64)])
def test_a_width_that_is_none_is_refused(width: Any) -> None:
    with pytest.raises(InvalidOption, match="f="):
        Simhash("text", f=width)


@pytest.mark.parametrize("kind", WHOLE)
def test_weights_of_numpy_are_summed_as_numbers(kind: Any) -> None:
    weights = {"abc": 3, "def": 100, "xyz": 120, "uvw": 90}
    given = {name: kind(weight) for name, weight in weights.items()}
    assert Simhash(given).value == Simhash(weights).value
    assert Simhash(list(given.items())).value == Simhash(weights).value


def test_options_take_truth_values_of_numpy() -> None:
    for flag in (True, False):
        given: Any = np.bool_(flag)
        options = IndexOptions(keys=given, times=given, allow_remote=given)
        assert options == IndexOptions(keys=flag, times=flag, allow_remote=flag)
        assert {type(options.times), type(options.allow_remote)} == {bool}
