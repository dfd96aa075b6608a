"""Pages that are one file."""

from __future__ import annotations

from html.parser import HTMLParser

from simindex.reporting.html_page import (
    CLOSING,
    facts,
    note,
    opening_of_page,
    section,
    table,
    tiles,
)

VOID = {"meta", "br"}


class Nesting(HTMLParser):
    """Fails where an element ends that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [name for name, _ in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_closed_and_loads_nothing() -> None:
    text = opening_of_page("<t>") + tiles([("1", "<n>")]) + section(
        "<s>", table(("<a>", "b"), [("<b>x</b>", "2")], numbers=(1,)) + facts([("<n>", "<i>v</i>")])
        + note("<z>")
    ) + CLOSING
    parser = Nesting()
    parser.feed(text)
    assert parser.open == [] and parser.loads == []
    assert "default-src &#x27;none&#x27;" in text
    for name in "tnsaz":
        assert f"&lt;{name}&gt;" in text and f"<{name}>" not in text
    assert "<b>x</b>" in text and "<i>v</i>" in text
    assert '<td class="number">2</td>' in text
