"""What a page tells of an index that there is not."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from gate_findings import HOSTILE

from simindex.reporting.index_report import (
    Chance,
    Clustering,
    Cost,
    Family,
    IndexReport,
    Member,
    Pairing,
    Segment,
    Template,
    sizes_of,
)

VOID = {"meta", "br", "input"}

REPORT = IndexReport(
    path=HOSTILE, version="0.1.0", made="now", facts=[("fact", HOSTILE)], rows=1200, dead_rows=3,
    size_bytes=54_321, bytes_a_row=45.3, bits=64, sketch_bits=512, h=3,
    segments=[Segment(HOSTILE, 1000, 50_000), Segment("waiting for a file", 200, None)],
    structures=[("psm", 12)], pairing=Pairing((0, 30, 20, 10), 5),
    clustering=Clustering(
        "star", 1200, 1000, 80, 12, sizes_of([(1, 1000), (2, 70), (6, 10)]),
        [Family(12, [Member(HOSTILE, 0), Member("other", 2), Member("same", 0)]),
         Family(2, [Member("x" * 10_000_000, 0), Member("y", 1)])],
    ),
    gate_similarity=0.85, chances=[Chance(0.95, 0.6, 0.99), Chance(0.5, 0.0, 0.0)],
    strangers=0.004, audit="recall 0.99", costs=[Cost("psm", 1.0, 16.0, 9000, 1e6, 1.0, True)],
    equal=[Template("00ff", 5, [HOSTILE])], crowded=[Template("0101", 70)], header_bits=4,
    rows_per_header=10.0, notes=[HOSTILE], texts_given=True,
    texts={HOSTILE: f"one two three {HOSTILE}", "other": "one 2 three <img src=x>",
           "same": f"one  two\nthree {HOSTILE}"},
)


def without(**fields: Any) -> IndexReport:
    """The same with other fields."""
    return replace(REPORT, **fields)


class Page(HTMLParser):
    """Fails where an element ends that is not open; collects what a page would load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.acts: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.acts += [
            (name, value) for name, value in attrs
            if name in ("src", "href", "srcset", "action", "data") or name.startswith("on")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        """What is read of it."""
        return " ".join(" ".join(self.words).split())
