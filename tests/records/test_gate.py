"""From how many matches on a collection does not pass."""

from __future__ import annotations

from typing import Any

import pytest

from simindex import GateLimits
from simindex.errors import InvalidOption


@pytest.mark.parametrize(("most", "share", "documents", "matched", "passes"), [
    (None, None, 10, 0, True), (None, None, 10, 1, False),
    (3, None, 10, 2, True), (3, None, 10, 3, False),
    (None, 0.2, 10, 1, True), (None, 0.2, 10, 2, False), (None, 1.0, 10, 9, True),
    (None, 0.01, 0, 0, True), (None, 0.001, 10, 0, True),
    (5, 0.2, 100, 4, True), (5, 0.9, 100, 5, False), (50, 0.2, 100, 20, False),
    # The share of 0.07 of 100 is a little more than 7 as floats go.
    (None, 0.07, 100, 7, False),
])
def test_a_limit_is_the_first_number_that_does_not_pass(
    most: int | None, share: float | None, documents: int, matched: int, passes: bool
) -> None:
    assert GateLimits.of(most, share).passes(documents, matched) is passes


@pytest.mark.parametrize(("most", "share"), [
    (0, None), (-1, None), (1.5, None), (True, None), ("3", None),
    (None, 0), (None, 1.1), (None, float("nan")), (None, "0.1"), (None, True),
])
def test_limits_out_of_range_are_refused(most: Any, share: Any) -> None:
    with pytest.raises(InvalidOption) as raised:
        GateLimits.of(most, share)
    assert raised.value.data["option"] == ("max_matches" if share is None else "max_share")
    assert raised.value.remedy
