"""A page with one byte that is no character in its set was read as windows-1252, so that no word
with an umlaut was right in it. Pages that a crawler cut within a character came out so.
"""

from __future__ import annotations

import pytest

from simindex.inputs.markup import page_of

WORDS = {
    "utf-8": "Löwis über Größe, und fährt für fünf Tage fort. ",
    "shift_jis": "日本語の文章です。",
    "gb18030": "这是一个中文句子。",
    "euc-kr": "한국어 문장입니다. ",
    "iso-8859-2": "Zażółć gęślą jaźń. ",
    "windows-1250": "Zażółć gęślą jaźń. ",
}
WRONG = {"iso-8859-2": b"", "windows-1250": b"\x81"}


@pytest.mark.parametrize("name", WORDS)
def test_a_wrong_byte_is_one_character(name: str) -> None:
    half = WORDS[name] * 3
    wrong = WRONG.get(name, b"\xff")
    page = half.encode(name) + wrong + b" " + half.encode(name)
    for declared in (name, None):
        data = page if declared else f'<meta charset="{name}">'.encode() + page
        read = page_of(data, declared)
        assert read.count(half) == 2
        assert read.count("\ufffd") == len(wrong)


def test_a_page_that_is_cut_within_a_character_keeps_the_others() -> None:
    text = WORDS["utf-8"]
    for declared in ("utf-8", None):
        assert page_of(text.encode() + "ö".encode()[:1], declared) == text + "\ufffd"


def test_a_wrong_declaration_counts_for_nothing() -> None:
    text = WORDS["utf-8"]
    assert page_of(text.encode("windows-1252"), "utf-8") == text
    assert page_of((text + "”").encode(), "iso-8859-1") == text + "”"
