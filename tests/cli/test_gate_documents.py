"""What a gate counts of the answers to a batch, however they are divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simindex import GateLimits, Matches, QueryStats
from simindex.cli import gate_documents
from simindex.cli.gate_documents import GateTally
from simindex.records.sketches import packed
from simindex.reporting.gate_findings import Place

PLACES = [Place(f"d{n}", "a.jsonl", n + 1) for n in range(5)]


def matches(*found: tuple[int, int, int], guarantee: str = "exact") -> Matches:
    """Of queries, ids and distances."""
    query, ids, distance = zip(*found, strict=True) if found else ((), (), ())
    stats = QueryStats("scan", guarantee, True, 0, 0, 0, 1, 0.0)
    return Matches(
        np.array(query, np.int64), np.array(ids, np.uint64), np.array(distance, np.uint16), stats
    )


def flagged(*answers: tuple[int, Matches], limit: int = 2) -> tuple[GateTally, dict[str, Any]]:
    tally = GateTally(GateLimits(1), limit)
    found = tally.flagged([[place] for place in PLACES], answers)
    return tally, {
        one.place.key: ([match.id for match in one.matches], one.more) for one in found
    }


@pytest.mark.parametrize("at_once", [1, 2, 4096])
def test_a_document_may_have_matches_in_several_parts(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_documents, "MATCHES_AT_ONCE", at_once)
    tally, found = flagged(
        (0, matches((0, 9, 1), (0, 8, 2), (2, 7, 0))), (0, matches()),
        (0, matches((2, 6, 0), (2, 5, 0), (4, 4, 3), guarantee="expected")),
    )
    assert found == {"d0": ([9, 8], False), "d2": ([5, 6], True), "d4": ([4], False)}
    assert tally.matched == 3
    assert list(tally.guarantees) == ["exact", "expected"]


def test_parts_may_begin_at_a_later_document() -> None:
    _, found = flagged((0, matches((1, 9, 1))), (2, matches((1, 8, 2))))
    assert found == {"d1": ([9], False), "d3": ([8], False)}


def test_equal_documents_come_in_their_order() -> None:
    """Each question is asked once, for all documents that ask it."""
    places = [Place(f"d{n}", "a.jsonl", n + 1, number=n) for n in range(7)]
    questions = [[places[0], places[3], places[6]], [places[1], places[4]], [places[2]],
                 [places[5]]]
    tally = GateTally(GateLimits(1), 2)
    found = list(tally.flagged(questions, [(0, matches((0, 9, 1), (2, 8, 0), (3, 7, 0)))]))
    assert [one.place.key for one in found] == ["d0", "d2", "d3", "d5", "d6"]
    assert tally.matched == 5 and [one.matches[0].id for one in found] == [9, 8, 9, 7, 9]


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("sketched", [False, True])
def test_equal_rows_are_one_question(words: int, sketched: bool) -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (200, words), dtype=np.uint64)
    sketch = rng.integers(0, 3, (200, 2), dtype=np.uint64) if sketched else None
    first, question = gate_documents.distinct(
        rows, None if sketch is None else packed(sketch, None)
    )
    whole = [tuple(row) for row in np.concatenate(
        [rows] if sketch is None else [rows, sketch], axis=1
    ).tolist()]
    kinds = list(dict.fromkeys(whole))
    assert [whole[at] for at in first] == kinds and first.tolist() == sorted(first)
    assert question.tolist() == [kinds.index(row) for row in whole]
    assert len(gate_documents.distinct(rows[:0], None)[0]) == 0


def test_no_answer_flags_nothing() -> None:
    tally, found = flagged()
    assert found == {} and tally.matched == 0
