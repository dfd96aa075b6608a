"""Numbers in sentences."""

from __future__ import annotations

import pytest

from simindex.cli.console import duration


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0000042, "4 µs"), (0.25, "250.0 ms"), (8, "8.0 s"), (119, "119.0 s"), (150, "2.5 min"),
        (7140, "119 min"), (7320, "2 h"), (9000, "2.5 h"), (1_600_128, "18.5 days"),
        (86400 * 1234, "1,234 days"),
    ],
)
def test_spans_are_told_in_the_unit_that_suits_them(seconds: float, told: str) -> None:
    assert duration(seconds) == told
