"""A gate's report as a page."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gate_findings import HOSTILE, flagged, verdict, written

from simindex import Match
from simindex.reporting import gate_page
from simindex.reporting.gate_page import GatePage


def test_a_page_says_whether_it_passed() -> None:
    text = written(GatePage, [flagged("doc")])
    assert "Did not pass" in text and "doc</bdi>" in text and "a.jsonl:3" in text
    assert "0.97 ± 0.01" in text
    empty = written(GatePage, [])
    assert ">Passed<" in empty and "No document has a match" in empty


def test_hostile_names_and_texts_are_escaped() -> None:
    one = flagged(HOSTILE, HOSTILE, to=HOSTILE.encode("utf-8", "replace"), excerpt=HOSTILE * 50)
    text = written(GatePage, [one])
    assert "<script" not in text
    assert not {"\u202e", "\x1b", "\x00"} & set(text)


def test_long_names_do_not_make_a_long_page() -> None:
    text = written(GatePage, [flagged("x" * 10_000_000, to="y" * 10_000_000)])
    assert len(text) < 20_000


def test_the_nearest_documents_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_page, "MOST_SHOWN", 3)
    some = [flagged(f"doc{n}", distance=100 - n) for n in range(8)]
    text = written(GatePage, some)
    assert [f"doc{n}</bdi>" in text for n in range(8)] == [False] * 5 + [True] * 3
    assert text.index("doc7") < text.index("doc6") < text.index("doc5")
    assert "The 3 nearest are shown; 5 more" in text


def test_equally_near_documents_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_page, "MOST_SHOWN", 2)
    text = written(GatePage, [flagged(f"doc{n}") for n in range(4)])
    assert text.index("doc0") < text.index("doc1")
    assert "doc2" not in text


def test_many_matches_are_folded() -> None:
    matches = [Match(0, n, f"m{n}", n) for n in range(5)]
    text = written(GatePage, [replace(flagged(), matches=matches, more=True)])
    assert "<summary class=\"soft\">4 more</summary>" in text
    assert "3 bits" in text and "and perhaps more" in text


def test_bad_records_are_named() -> None:
    text = written(GatePage, [], verdict(0))
    assert "b&lt;b&gt;.jsonl:9: not JSON" in text
