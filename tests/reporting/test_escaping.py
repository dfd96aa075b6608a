"""Foreign text within a page."""

from __future__ import annotations

import pytest
from gate_findings import HOSTILE

from simindex.reporting.escaping import html_name, html_text, plain_name, shortened, visible


@pytest.mark.parametrize(("text", "shown"), [
    ("plain é 漢字 שלום 👩‍👩", "plain é 漢字 שלום 👩‍👩"),
    ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
    ("\x00\x1b\x7f\x9b\u2028\ufeff\ud800", "\\u0000\\u001b\\u007f\\u009b\\u2028\\ufeff\\ud800"),
    ("tab\tline\n", "tab\tline\n"),
])
def test_what_is_not_seen_shows_its_number(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_markup_is_escaped() -> None:
    assert html_text("<b a=\"'&") == "&lt;b a=&quot;&#x27;&amp;"
    assert html_name("<b>") == "<bdi>&lt;b&gt;</bdi>"


def test_long_names_keep_both_ends() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcdef…ijk"
    assert len(shortened("x" * 10_000_000, 160)) == 160
    assert shortened("abc", 1) == "…"


def test_names_are_one_printable_line() -> None:
    assert plain_name("a\r\nb\tc") == "a\\r\\nb\\tc"
    assert plain_name(HOSTILE).isprintable()
    plain_name(HOSTILE).encode()
