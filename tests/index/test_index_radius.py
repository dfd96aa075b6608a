"""Calls without an h use the radius of the index's recipe, in every call alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex import Batch, Index, IndexOptions, Recipe
from simindex.arrays import U64
from simindex.index import arrivals
from simindex.planning.machine import Machine
from simindex.simhash.radius import RADII


def spread(bits: int = 64, most: int = 14) -> U64:
    """A fingerprint, and others at each distance from it: any radius finds other pairs."""
    rows = np.zeros((most + 1, bits // 64), np.uint64)
    for distance in range(most + 1):
        rows[distance, 0] = (1 << distance) - 1
    return rows


def beyond(h: int) -> U64:
    """A fingerprint that is h + 1 bits from the nearest of `spread`."""
    return np.array([((1 << (h + 1)) - 1) << 40], np.uint64)


def listed(found: Any) -> list[str]:
    """What a call found, as comparable values."""
    return [repr(one) for one in found]


def tuned(index: Index, h: dict[str, int]) -> list[int]:
    index.tune(machine=False, **h)
    return list(index.stats().flips_from)


CALLS: dict[str, Callable[[Index, dict[str, int], U64], Any]] = {
    "query": lambda index, h, _: listed(index.query(spread(), **h)),
    "query_stream": lambda index, h, _: [
        pair for part in index.query_stream(spread(), **h) for pair in listed(part)
    ],
    "first": lambda index, h, one: listed(index.query(one, first=True, **h)),
    "gate": lambda index, h, _: listed(
        index.gate(spread(), limit=None, **h).matches
    ),
    "explain_pair": lambda index, h, _: index.explain_pair(ids=(0, 1), **h).h,
    "explain": lambda index, h, _: index.explain(spread(), **h).h,
    "pairs": lambda index, h, _: [pair for part in index.pairs(**h) for pair in listed(part)],
    "clusters": lambda index, h, _: listed(index.clusters(mode="star", **h)),
    "audit": lambda index, h, _: index.audit(**h).h,
    "tune": lambda index, h, _: tuned(index, h),
    "seen_or_add": lambda index, h, one: repr(index.seen_or_add(Batch(one, ids=[99]), **h)),
    "ingest": lambda index, h, _: listed(
        index.ingest(spread() ^ np.uint64(1 << 63), ids=range(50, 65), **h)
    ),
}


def made(path: Path, recipe: Recipe | None) -> Iterator[Index]:
    with simindex.open(path, "n", options=IndexOptions(recipe=recipe)) as index:
        rows = spread()
        index.append(rows, ids=range(len(rows)), weights=np.ones((len(rows), 64), np.float32))
        index.commit()
        yield index


@settings(deadline=None, max_examples=5)
@given(h=st.integers(0, 12))
@pytest.mark.slow
def test_without_h_every_call_answers_as_with_the_radius_of_the_recipe(h: int) -> None:
    """Another radius answers otherwise, so the answers tell which was used."""
    answers = []
    for recipe, asked in (
        (Recipe(h=h), {}), (Recipe(h=40), {"h": h}), (None, {"h": h}), (Recipe(h=h + 2), {}),
    ):
        with TemporaryDirectory() as folder:
            for index in made(Path(folder) / "i.sim", recipe):
                one = beyond(h)
                answers.append({name: call(index, asked, one) for name, call in CALLS.items()})
    usual, explicit, bare, other = answers
    assert usual == explicit == bare
    assert [name for name in CALLS if usual[name] == other[name]] == []


def test_every_call_that_takes_h_is_asked() -> None:
    takes = {
        name for name, call in vars(Index).items()
        if name[0] != "_" and "h" in getattr(call, "__annotations__", {})
    }
    assert takes == CALLS.keys() - {"first"}


@pytest.mark.parametrize("bits", [64, 256])
def test_without_a_recipe_the_radius_is_three_of_each_64_bits(
    index_path: Path, bits: int
) -> None:
    rows = spread(bits)
    with simindex.open(index_path, "n", options=IndexOptions(bits=bits)) as index:
        index.append(rows)
        index.commit()
        assert index.h == index.stats().h == 3 * bits // 64
        assert len(index.query(rows[:1])) == index.h + 1
    stars = partial(simindex.find_clusters, mode="star")
    rotated = partial(simindex.rotation_pairs, window=99)
    for find in (simindex.find_all, stars, rotated):
        assert listed(find(rows)) == listed(find(rows, h=3 * bits // 64))
        assert listed(find(rows)) != listed(find(rows, h=3 * bits // 64 + 1))


def test_the_index_stores_the_radius(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(recipe=Recipe(h=9))) as index:
        index.append(Recipe().batch(["a text of some words"]))
    with simindex.open(index_path, "w", options=IndexOptions(recipe=Recipe(h=9))) as again:
        assert again.recipe is not None
        assert (again.h, again.recipe.h, again.stats().h) == (9, 9, 9)
        assert "h=9" in repr(again.recipe)
    assert again.h == 9  # also of a handle that is closed


@pytest.mark.parametrize("call", ["ingest", "seen_or_add"])
@pytest.mark.parametrize(("h", "found"), [(4, False), (5, True)])
def test_the_radius_of_the_first_batch_counts_from_its_first_call(
    index_path: Path, call: str, h: int, found: bool
) -> None:
    """An index without a recipe takes that of its first rows."""
    recipe = Recipe(h=h)
    one, two = spread()[:1], spread()[5:6]
    with simindex.open(index_path, "n") as index:
        if call == "ingest":
            matches = index.ingest(Batch(np.concatenate([one, two]), recipe=recipe))
            assert (len(matches) == 1) is found
        else:
            assert index.seen_or_add(Batch(one, recipe=recipe)) is None
            assert (index.seen_or_add(Batch(two, recipe=recipe)) is not None) is found
        assert index.h == h


def test_the_radius_of_a_batch_counts_if_another_thread_adds_the_first_row(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(h=5)
    one, two = (Batch(rows, recipe=recipe) for rows in (spread()[:1], spread()[5:6]))
    nearest = arrivals.nearest
    waiting = [one]

    def while_another_adds(*asked: Any) -> Any:
        if waiting:
            assert index.seen_or_add(waiting.pop()) is None
        return nearest(*asked)

    monkeypatch.setattr(arrivals, "nearest", while_another_adds)
    with simindex.open(index_path, "n") as index:
        found = index.seen_or_add(two)
    assert found is not None and found.distance == 5


def test_the_first_text_of_an_index_has_the_usual_radius(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RADII, ("word", (1, 2), "sublinear"), {64: 64})
    with simindex.open(index_path, "n") as index:
        assert index.seen_or_add("one text about a thing, of some words") is None
        assert index.seen_or_add("another that is not like it in any phrase") is not None
        assert index.h == 64


def test_a_reader_follows_the_radius_of_a_recipe_that_came_later(index_path: Path) -> None:
    rows = spread()
    with simindex.open(index_path, "n") as writer, simindex.open(index_path) as reader:
        assert reader.h == 3
        writer.append(Batch(rows, recipe=Recipe(h=8)))
        writer.commit()
        assert len(reader.query(rows[:1])) == 9
        assert reader.h == 8


def test_the_recall_that_compact_measures_is_that_of_the_radius(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: Machine())
    monkeypatch.setattr("simindex.index.changes.SELF_AUDIT_ROWS", 1)
    asked: list[int] = []

    def self_audit(self: Any, snapshot: Any, *, h: int | None = None, usual_h: int) -> None:
        asked.append(usual_h if h is None else h)

    monkeypatch.setattr("simindex.query.answerer.Answerer.self_audit", self_audit)
    for index in made(index_path, Recipe(h=7)):
        index.compact(full=True)
        index.tune()
        index.tune(h=2)
    assert asked == [7, 7, 2]
