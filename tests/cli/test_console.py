"""Numbers in sentences, and what a terminal is not to obey."""

from __future__ import annotations

import pytest

from simindex.cli.console import cell, duration, shown
from simindex.inputs.digits import unescaped


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


@pytest.mark.parametrize("character", [
    *map(chr, (0, 0x1B, 0x7F, 0x9B)), "\u061c", "\u200e", "\u200f", "\u2028", "\u202e", "\u2066",
    "\u2069",
])
def test_no_character_steers_a_terminal_or_turns_its_lines(character: str) -> None:
    key = f"漢字 \\ {character}é"
    assert shown(character) not in ("", character) and shown(character).isprintable()
    assert character not in cell(key) and cell(key).isprintable()
    assert unescaped(cell(key)) == key


def test_what_a_terminal_shows_is_left_as_it_is() -> None:
    """Joiners too, of which words and emoji consist."""
    for text in ("straße 漢字", "نیم\u200cفاصله", "👩\u200d🔬"):
        assert shown(text) == cell(text) == text
