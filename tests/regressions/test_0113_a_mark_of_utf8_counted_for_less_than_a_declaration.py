"""A page that begins with the mark of UTF-8, and declares another set, was read in that set, unlike
in browsers. One that declares UTF-16 in a tag, which cannot be true, was read as UTF-16.
"""

from __future__ import annotations

import pytest

from simindex.inputs.markup import page_of

TEXT = "<p>Löwis läuft über die Wiese"


@pytest.mark.parametrize("tag", ["", "<meta charset=latin1>", '<meta charset="shift_jis">'])
@pytest.mark.parametrize("charset", [None, "iso-8859-1", "utf-16"])
def test_the_mark_counts(tag: str, charset: str | None) -> None:
    assert page_of(("\ufeff" + tag + TEXT).encode(), charset) == tag + TEXT


@pytest.mark.parametrize("name", ["utf-16", "utf-16le", "UTF-16BE", "unicode"])
@pytest.mark.parametrize("more", ["", " "])
@pytest.mark.parametrize("text", [TEXT, "<p>a page of plain letters"])
def test_a_tag_that_can_be_read_is_not_in_utf16(name: str, more: str, text: str) -> None:
    page = f'<meta charset="{name}">{text}{more}'
    assert page_of(page.encode(), None) == page
    assert page_of(page.encode(), name) == page


@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be"])
def test_pages_in_utf16_are_read(name: str) -> None:
    assert page_of(TEXT.encode(name), "utf-16be" if "be" in name else "utf-16") == TEXT
    page = f'<meta charset="utf-16">{TEXT}'
    assert page_of(page.encode("utf-16"), None) == page
