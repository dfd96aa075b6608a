"""What a page has of tags, against expressions that say what a tag is."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simindex._kernels import _native

MOST = 5
TAG = re.compile(rb"<[A-Za-z]")
NAME = re.compile(rb"[^ \t\n\f\r/>]*")
ATTRIBUTE = re.compile(
    rb"[ \t\n\f\r/]*([^ \t\n\f\r/>][^ \t\n\f\r/>=]*)"
    rb"(?:[ \t\n\f\r]*=[ \t\n\f\r]*"
    rb"(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[^ \t\n\f\r>\"'][^ \t\n\f\r>]*|(?=>)|\Z))?",
    re.DOTALL,
)
FORMATTING = re.compile(
    rb"<(/?)(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[ \t\n\f\r/>])", re.IGNORECASE
)
ONCE = re.compile(rb"(?:html|body)(?![A-Za-z0-9_\x80-\xff])", re.IGNORECASE)
WORK = 64
NESTED = re.compile(rb"<(?:div|article|ol)(?![A-Za-z0-9_\x80-\xff])", re.IGNORECASE)

pieces = st.lists(
    st.sampled_from(
        ["<", ">", "/", "=", '"', "'", " ", "\n", "\x1f", "a", "b", "P", "é", "<p ", "</b>", "<b>",
         "<I ", "<div", "<ol>", "<article ", "</", "<!--", "a=1 ", "<strong/", "x='>' ",
         "<strongest>", "<html a ", "<body b='", "<bodyb c "]
    ),
    max_size=40,
).map("".join)


def page_tags(page: str | bytes, most: int = MOST) -> tuple[int, int, int]:
    data = page.encode() if isinstance(page, str) else page
    return _native.page_tags(np.frombuffer(data, np.uint8), most)


def expected(page: bytes, most: int) -> tuple[int, int, int]:
    attributes = once = work = 0
    for tag in TAG.finditer(page):
        name = NAME.match(page, tag.start() + 1)
        assert name is not None
        at, found = name.end(), 0
        while (one := ATTRIBUTE.match(page, at)) is not None:
            at, found = one.end(), found + 1
        work += min(found, most + 1) ** 2
        if ONCE.match(page, tag.start() + 1):
            found = once = once + found
        attributes = max(attributes, min(found, most + 1))
        if work > WORK * most * most:
            attributes = most + 1
    unclosed: dict[bytes, int] = {}
    for closing, name in FORMATTING.findall(page):
        name = name.lower()
        unclosed[name] = max(0, unclosed.get(name, 0) + (-1 if closing else 1))
    return attributes, sum(unclosed.values()), len(NESTED.findall(page))


@given(pieces)
@example("<p a b=c d='>' e>")
@example("<p a = 'x' / b>")
@example("<p a=")
@example("<p a= >")
@example("<p a='")
@example("<")
@example("</")
@example("<b/><B ></b>")
@example("<div><div1><divé><DIV")
@example("<html a><HTML b><body c><html d><body/e f g><htmls h i>")
@example("<p a b c d e>" * (WORK + 1))
@example("<p a b c d>" * (WORK + 40))
def test_tags_are_counted_as_the_expressions_say(page: str) -> None:
    assert page_tags(page) == expected(page.encode(), MOST)


@pytest.mark.parametrize(
    "before", ["", "<!--<a b=\"-->", "<script>x='<a b=\"'</script>", "<textarea><a b='</textarea>"]
)
def test_nothing_before_a_tag_hides_it(before: str) -> None:
    """A parser ends comments and scripts where quotes do not matter."""
    many = " ".join(f"a{number}" for number in range(9))
    assert page_tags(f"{before}<p {many}>", most=8)[0] == 9
    assert page_tags(f"{before}<p {many}>", most=9)[0] == 9


def test_a_page_on_which_tags_overlap_all_the_time_has_too_many() -> None:
    """Looking at each of them would take time with the square of the page."""
    assert page_tags('<a x="' * (1 << 20), most=1 << 12)[0] == (1 << 12) + 1
    assert page_tags("<a x='1'>" * (1 << 20), most=1 << 12)[0] == 1


def test_tags_of_one_element_are_added_up() -> None:
    """A parser gives the attributes of each `<html>` to the first."""
    page = "".join(f"<html a{number}=1>" for number in range(1 << 16))
    assert page_tags(page, most=1 << 12)[0] == (1 << 12) + 1
    assert page_tags(page.replace("html", "div"), most=1 << 12)[0] == 1


def test_many_tags_with_many_attributes_are_too_much_work() -> None:
    tag = "<p " + " ".join(f"a{number}" for number in range(1 << 10)) + ">"
    assert page_tags(tag * 1024, most=1 << 12)[0] == 1 << 10
    assert page_tags(tag * 1025, most=1 << 12)[0] == (1 << 12) + 1


def test_a_page_ends_anywhere() -> None:
    page = b"<div a='b' c=\"d\" e = f ><b><strong></b></article "
    for end in range(len(page) + 1):
        assert page_tags(page[:end]) == expected(page[:end], MOST)


def test_a_page_of_nothing_has_none() -> None:
    assert page_tags(b"") == (0, 0, 0)
    with pytest.raises(TypeError):
        _native.page_tags(np.zeros(3, np.int8), 1)  # type: ignore[arg-type]
