"""An exception of a signal handler, of a class of its own, came while numpy made an array of the
ids that a call was given. It was raised as InvalidBatch, so the caller's `except` for it missed it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interrupts import Stop, interrupted_everywhere

from simindex import Batch, InvalidBatch
from simindex.records import arguments, dataframe_columns


class Column:
    """Of a library that numpy can make an array of."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.error is not None:
            raise self.error
        return np.arange(2, dtype=np.uint64)


@pytest.mark.parametrize("values", [[1, 2], Column()])
def test_an_interrupt_of_a_check_is_raised(values: Any) -> None:
    modules = (arguments, dataframe_columns)
    assert interrupted_everywhere(lambda: arguments.as_array(values, "ids"), modules) > 2


@pytest.mark.parametrize("error", [Stop(), TimeoutError("took too long")])
def test_an_error_of_neither_python_nor_the_library_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        Batch(Column(error))
    assert caught.value is error


class OfLibrary(Exception):
    """As each library has of its own."""


@pytest.mark.parametrize(
    "error", [OfLibrary("a null"), ValueError("no number"), RuntimeError("on another device")]
)
def test_an_error_of_the_library_says_what_is_wrong(error: Exception) -> None:
    with pytest.raises(InvalidBatch, match=f"fingerprints are not an array: {error}"):
        Batch(Column(error))
