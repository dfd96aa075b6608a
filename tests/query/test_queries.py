"""Texts as questions: what is asked by a text is what is asked by its fingerprint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidBatch, InvalidOption
from simindex.records.matches import NO_NEIGHBOUR

TEXTS = [f"text of number {number}, one of many that stand in here" for number in range(60)]
KEYS = [f"k{number}" for number in range(60)]
RECIPE = simindex.Recipe()


@pytest.fixture(params=[True, False], ids=["keys", "ids"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> simindex.Index:
    options = simindex.IndexOptions(keys=request.param, recipe=RECIPE)
    made = simindex.open(tmp_path / "i.sim", "n", options=options)
    request.addfinalizer(made.close)
    made.append(RECIPE.batch(TEXTS, keys=KEYS if request.param else None))
    made.commit()
    return made


@pytest.mark.parametrize("recall", [1.0, 0.9])
@pytest.mark.parametrize("kind", [list, tuple])
def test_texts_are_asked_as_their_batch_is(
    index: simindex.Index, recall: float, kind: type
) -> None:
    found = index.query(kind(TEXTS[:20]), h=9, recall=recall)
    expected = index.query(index.recipe.batch(TEXTS[:20]), h=9, recall=recall)
    assert list(found) == list(expected)
    assert found.stats.guarantee == expected.stats.guarantee
    near = index.top(kind(TEXTS[:20]), k=3)
    assert list(near) == list(index.top(index.recipe.batch(TEXTS[:20]), k=3))


def test_one_text_is_one_question(index: simindex.Index) -> None:
    for text in (TEXTS[7], TEXTS[7].encode()):
        (match,) = index.query(text, h=0)
        assert (match.query, match.distance) == (0, 0)
        assert index.top(text, k=1)[0] == match
    told, batch = index.explain(TEXTS[7]), RECIPE.batch(TEXTS[7:8])
    assert [one.matches for one in told.segments] == [
        one.matches for one in index.explain(batch).segments
    ]


def test_query_numbers_are_places_of_texts_where_some_have_no_fingerprint(
    index: simindex.Index,
) -> None:
    """A text without one has no matches, and no nearest document."""
    asked = ["", TEXTS[3], "!", " ", TEXTS[5], ""]
    found = index.query(asked, h=0)
    assert found.query.tolist() == [1, 4]
    near = index.top(asked, k=2)
    assert near.found.tolist() == [0, 2, 0, 0, 2, 0]
    assert near.id[0].tolist() == [NO_NEIGHBOUR] * 2
    assert near.distance[0].tolist() == [65, 65]
    if index.options.keys:
        assert found.keys() == ["k3", "k5"]
        keys = near.keys()
        assert keys is not None
        assert [some[:1] for some in keys] == [[], ["k3"], [], [], ["k5"], []]
        assert [near[number] for number in range(len(near))] == list(near)
        assert near[-1] == list(near)[-1]
    with pytest.raises(IndexError):
        near[len(near)]


def test_nothing_to_ask_finds_nothing(index: simindex.Index) -> None:
    for asked in ("", [""], ["", " "]):
        assert len(index.query(asked)) == len(index.top(asked, k=3)) == 0
    assert len(index.query([])) == 0


def test_texts_need_a_recipe(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "raw.sim", "n") as raw:
        raw.append(np.arange(5, dtype=np.uint64))
        raw.commit()
        for ask in (raw.query, raw.top, raw.explain):
            with pytest.raises(InvalidBatch, match="no recipe that turns texts into fingerprints"):
                ask("a text")


@pytest.mark.parametrize(
    "kind",
    [iter, np.array, lambda texts: np.array(texts, object), lambda texts: (one for one in texts)],
)
def test_texts_of_any_sequence_are_those_of_the_list(index: simindex.Index, kind: Any) -> None:
    asked = [TEXTS[3], "", TEXTS[5]]
    assert list(index.query(kind(asked))) == list(index.query(asked))
    assert list(index.top(kind(asked), k=2)) == list(index.top(asked, k=2))
    near = [part for parts in index.query_stream(kind(asked)) for part in parts]
    assert near == list(index.query(asked))


def test_an_iterator_of_others_is_their_list(index: simindex.Index) -> None:
    words = RECIPE.batch(TEXTS[:2]).fingerprints.tolist()
    assert list(index.query(iter(words), h=0)) == list(index.query(words, h=0))
    assert len(index.query(iter([]))) == 0
    with pytest.raises(InvalidBatch, match="text 1 is int"):
        index.query(iter(["a b", 5]))


@pytest.mark.parametrize("mode", ["c", "w", "r"])
@pytest.mark.parametrize("bits", [64, 192])
def test_an_index_without_rows_knows_nothing_near_a_text(
    tmp_path: Path, mode: Any, bits: int
) -> None:
    """A process that ended before its first commit leaves it without a recipe."""
    options = simindex.IndexOptions(bits=bits)
    simindex.open(tmp_path / "i.sim", "n", options=options).close()
    with simindex.open(tmp_path / "i.sim", mode) as index:
        for asked in ("abc", ["abc", ""], ""):
            assert list(index.query(asked)) == []
        assert list(index.query_stream("abc").__next__()) == []
        assert index.explain("abc").segments == ()
        with pytest.raises(InvalidOption, match="k=10"):  # as in every index without rows
            index.top("abc")
        assert index.recipe is None
        if mode != "r":
            assert index.seen_or_add("abc def", key="x") is None
            index.commit()
            assert [match.key for match in index.query("abc def")] == ["x"]


def test_an_index_whose_rows_have_no_recipe_takes_no_text_once_they_wait(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "c") as index:
        index.append(np.arange(3, dtype=np.uint64))
        with pytest.raises(InvalidBatch, match="no recipe"):
            index.query("abc")
        index.discard()
        assert len(index.query("abc")) == 0


def test_a_list_of_texts_and_others_is_refused(index: simindex.Index) -> None:
    for asked in (["a b c", 5], [5, "a b c"], ["a b c", None]):
        with pytest.raises(InvalidBatch):
            index.query(asked)
