"""A gate's report as JSON lines: a line for each document, and the verdict last."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from gate_findings import HOSTILE, OPENING, flagged, verdict, written

from simindex import GateLimits, Match
from simindex.reporting.gate_findings import name_of, nearness_of
from simindex.reporting.gate_json_lines import GateLines


def test_a_document_has_its_place_and_all_matches() -> None:
    one = flagged("doc", "a.jsonl", 3, more=True)
    first, last = map(json.loads, written(GateLines, [one]).splitlines())
    assert first == {
        "kind": "match", "document": "doc", "file": "a.jsonl", "line": 3,
        "matches": [{
            "id": 7, "key": "known", "distance": 40, "similarity": 0.97, "similarity_error": 0.01,
        }],
        "more": True,
    }
    assert last["kind"] == "verdict" and last["passed"] is False
    assert (last["documents"], last["matched"], last["share"]) == (100, 1, 0.01)
    assert (last["max_matches"], last["max_share"]) == (1, None)
    assert (last["without_fingerprint"], last["bad_records"]) == (2, 1)


def test_distances_have_no_similarity() -> None:
    one = replace(flagged(), matches=[Match(0, 7, None, 3)])
    (match,) = json.loads(written(GateLines, [one]).splitlines()[0])["matches"]
    assert match == {"id": 7, "key": None, "distance": 3}


def test_an_estimate_has_an_error() -> None:
    """Also of equal bits, where it is less than four decimals tell."""
    one = replace(flagged(), matches=[Match(0, 7, None, 0, 1.0, 1.3e-5)])
    (match,) = json.loads(written(GateLines, [one]).splitlines()[0])["matches"]
    assert (match["similarity"], match["similarity_error"]) == (1.0, 0.0001)


def test_hostile_names_come_back_as_they_were() -> None:
    text = written(GateLines, [flagged(HOSTILE, to=HOSTILE.encode("utf-8", "replace"))])
    assert text.count("\n") == 2
    assert json.loads(text.splitlines()[0])["document"] == HOSTILE


@pytest.mark.parametrize(("match", "name", "near"), [
    (Match(0, 7, None, 3), "7", "3 of 512 bits differ"),
    (Match(0, 7, b"\xff", 3, 0.914, 0.021), "\\xff", "similarity 0.91 ± 0.02"),
])
def test_matches_are_named_by_key_or_id(match: Match, name: str, near: str) -> None:
    assert (name_of(match), nearness_of(match, 512)) == (name, near)


def test_the_share_of_nothing_is_nothing() -> None:
    assert verdict(0, documents=0).share == 0
    assert (verdict(0).exit_code, verdict(1).exit_code) == (0, 1)
    assert OPENING.asked == "similarity 0.85 or more"
    assert replace(OPENING, similarity=None, bits=64, h=7).asked == "within 7 of 64 bits"
    assert str(GateLimits(1000, 0.01)) == "1,000 or 1% of the documents"
