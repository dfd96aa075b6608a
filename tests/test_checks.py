"""What arguments may be, of the types that callers give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simindex import checks
from simindex.errors import InvalidOption


@pytest.mark.parametrize(("value", "as_int", "as_whole", "number"), [
    (3, True, True, 3), (0, True, True, 0), (np.uint8(3), False, True, 3),
    (np.array(3), False, False, 3), (True, False, False, None),
    (np.bool_(True), False, False, None),
    (3.0, False, False, None), ("3", False, False, None), (None, False, False, None),
])
def test_truth_values_are_no_whole_numbers(
    value: Any, as_int: bool, as_whole: bool, number: int | None
) -> None:
    assert (checks.is_int(value), checks.is_whole(value)) == (as_int, as_whole)
    assert checks.whole(value) == number


@pytest.mark.parametrize(
    ("value", "held"),
    [(0, True), (1.5, True), (math.inf, True), (-1, False), (math.nan, False), (True, False),
     ("1", False), (None, False), (np.int64(2), True), (np.float32(-1), False)],
)
def test_times_are_from_0_on(value: Any, held: bool) -> None:
    assert checks.is_seconds(value) == held


@pytest.mark.parametrize(
    ("value", "time_s"), [(2, 2.0), (np.float32(0.5), 0.5), (np.uint8(3), 3.0), (10**400, math.inf)]
)
def test_a_time_is_a_number_of_python(value: Any, time_s: float) -> None:
    found = checks.require_seconds(value, "wait_s")
    assert found == time_s and type(found) is float


def test_a_wrong_time_names_its_option() -> None:
    with pytest.raises(InvalidOption, match="wait_s=-1"):
        checks.require_seconds(-1, "wait_s")


@pytest.mark.parametrize(("value", "share"), [
    (1, 1.0), (0.5, 0.5), (np.float32(0.25), 0.25), (1e-9, 1e-9),
])
def test_a_share_is_a_number_of_python(value: Any, share: float) -> None:
    found = checks.require_share(value, "recall")
    assert found == share and type(found) is float


@pytest.mark.parametrize(
    "value", [0, 1.01, -0.5, math.nan, True, np.bool_(True), 1j, np.array([0.5]), "0.5", 10**400]
)
def test_what_is_no_share_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match=r"recall=.* is not a share") as refused:
        checks.require_share(value, "recall")
    assert refused.value.remedy == "give a number above 0 and up to 1"


def test_bounds_are_inclusive_and_told() -> None:
    assert checks.require_whole(np.int64(3), "k", 3, 3) == 3
    for value, most, expected in ((2, None, "from 3"), (5, 4, "from 3 to 4")):
        with pytest.raises(InvalidOption, match=f"give a whole number {expected}$") as refused:
            checks.require_whole(value, "k", 3, most)
        assert refused.value.data == {"option": "k", "found": value, "expected": expected}
    for given in (0, 64, np.int64(3)):
        found = checks.require_distance(given, 64)
        assert found == given and type(found) is int
    for h in (-1, 65, True, np.bool_(True), np.int64(-1), 3.0, None):
        with pytest.raises(InvalidOption, match="from 0 to 64"):
            checks.require_distance(h, 64)


def test_truth_values_of_numpy_are_those_of_python() -> None:
    assert [checks.plain_truth(np.bool_(flag)) for flag in (True, False)] == [True, False]
    assert type(checks.plain_truth(np.True_)) is bool
    assert [checks.plain_truth(one) for one in (None, "str", 1, True)] == [None, "str", 1, True]
