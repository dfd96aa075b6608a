"""What cannot be a path is refused as one.

What callers do wrong with a whole index is in tests/test_bad_input.py.
"""

from __future__ import annotations

from typing import Any

import pytest

import simindex
from simindex.errors import (
    InvalidOption,
)


@pytest.mark.parametrize("mode", ["r", "w", "c", "n"])
def test_path_with_a_null_byte_is_none(mode: Any) -> None:
    with pytest.raises(InvalidOption, match="null byte"):
        simindex.open("a\0b", mode)
    with pytest.raises(InvalidOption, match="null byte"):
        simindex.repair("a\0b")
