"""`Index.gate`: what it asks by, and what it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex import IndexOptions, Recipe
from simindex.errors import InvalidOption
from simindex.index.gate_nearness import USUAL_LIMIT, gate_nearness

TEXTS = [
    f"the {word} minister said on monday that the new {word} line near {word} will open in "
    f"spring if {word} weather and {number} workers allow it" for number, word in enumerate(
        ["railway", "harbour", "museum", "station", "bridge", "tunnel"]
    )
]
NEW = ["snow is expected in the mountains over the weekend", "", TEXTS[2] + " again", TEXTS[4]]


@pytest.fixture(params=[0, 512], ids=["bits", "sketch"])
def index(request: pytest.FixtureRequest, index_path: Path) -> simindex.Index:
    recipe = Recipe(sketch_bits=request.param)
    options = IndexOptions(keys="str", recipe=recipe)
    with simindex.open(index_path, "n", options=options) as made:
        made.append(recipe.batch(TEXTS, keys=[f"k{n}" for n in range(len(TEXTS))]))
    return simindex.open(index_path)


def test_documents_with_a_match_are_counted(index: simindex.Index) -> None:
    with index:
        found = index.gate(NEW, max_matches=3)
        assert (found.documents, found.matched, found.passed) == (4, 2, True)
        assert found.share == 0.5
        nearest = {match.query: match.key for match in reversed(list(found.matches))}
        assert nearest[2] == "k2" and nearest[3] == "k4" and len(nearest) == 2
        assert not index.gate(NEW).passed
        assert not index.gate(NEW, max_share=0.5).passed
        assert index.gate(NEW, max_share=0.51).passed
        assert index.gate(NEW[:2]).passed
        assert index.gate([]).passed and index.gate([]).documents == 0


def test_documents_of_which_none_can_be_checked_do_not_pass(index: simindex.Index) -> None:
    with index:
        found = index.gate(["", " "], max_matches=10)
        assert (found.documents, found.checked, found.matched, found.passed) == (2, 0, 0, False)
        assert index.gate(["", NEW[0]]).checked == 1 and index.gate(["", NEW[0]]).passed


def test_the_answer_is_that_of_a_query(index: simindex.Index) -> None:
    with index:
        near = gate_nearness(None, None, None, sketched=index.options.sketch_bits > 0)
        asked = index.query(NEW, **near, limit=USUAL_LIMIT)
        assert list(index.gate(NEW).matches) == list(asked)
        assert list(index.gate(NEW, h=64, limit=None).matches) == list(index.query(NEW, h=64))
        assert len(index.gate(NEW, h=64, limit=1).matches) == 3


def test_batches_and_fingerprints_are_documents(index: simindex.Index) -> None:
    with index:
        assert index.recipe is not None
        batch = index.recipe.batch(NEW)
        assert (index.gate(batch).documents, index.gate(batch).matched) == (3, 2)
        assert index.gate(batch.rows, h=0).matched == 1
        assert index.gate(TEXTS[0]).matched == 1
        assert index.gate(iter(NEW)).documents == 4


@pytest.mark.parametrize(("given", "sketched", "asked"), [
    ((None, None, None), True, (None, 0.85, 0.95)),
    ((None, None, None), False, (None, None, 1.0)),
    ((5, None, None), True, (5, None, 1.0)),
    ((None, 0.9, None), False, (None, 0.9, 0.95)),
    ((None, 0.9, 0.5), True, (None, 0.9, 0.5)),
    ((3, None, 0.9), False, (3, None, 0.9)),
    ((None, None, None, "jaccard"), True, (None, None, 1.0)),
    ((None, 0.7, None, "jaccard"), True, (None, 0.7, 0.95)),
])
def test_sketches_are_asked_by_similarity(given: Any, sketched: bool, asked: Any) -> None:
    near = gate_nearness(*given, sketched=sketched)
    assert (near["h"], near["similarity"], near["recall"]) == asked


def test_a_gate_goes_by_a_resemblance(index_path: Path) -> None:
    """Of sets of words, which the caller gives."""
    recipe = Recipe(ngram=1, weighting="binary", sketch_bits=512)
    with simindex.open(index_path, "n", options=IndexOptions(keys="str", recipe=recipe)) as made:
        made.append(recipe.batch(TEXTS[:1], keys=["k0"]))
    near = TEXTS[0].replace("monday", "friday").replace("spring", "autumn")
    words = [set(text.split()) for text in (TEXTS[0], near)]
    resemblance = len(words[0] & words[1]) / len(words[0] | words[1])
    assert 0.8 < resemblance < 0.84
    with simindex.open(index_path) as index:
        found = index.gate([near], similarity=0.7, measure="jaccard")
        assert found.matches.similarity is not None and found.matches.similarity_error is not None
        error = float(found.matches.similarity_error[0])
        assert abs(float(found.matches.similarity[0]) - resemblance) < 2 * error
        assert not index.gate([near], similarity=0.95, measure="jaccard").matched
        with pytest.raises(InvalidOption, match="none is given"):
            index.gate([near], measure="jaccard")


def test_wrong_options_are_refused(index: simindex.Index) -> None:
    with index:
        refused: list[dict[str, Any]] = [
            {"h": 3, "similarity": 0.9}, {"max_matches": 0}, {"similarity": 2},
            {"similarity": 0.9, "measure": "jaccard"}, {"similarity": 0.9, "measure": "words"},
        ]
        for wrong in refused:
            with pytest.raises(InvalidOption):
                index.gate(NEW, **wrong)
