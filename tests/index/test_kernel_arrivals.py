"""Texts that come one at a time are found or added by one call of a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex import Index, IndexOptions, Match, Recipe
from simindex.errors import ClosedIndex, CorruptFile, InvalidBatch
from simindex.index import arrivals, kernel_arrivals, turns
from simindex.index.pace import Pace
from simindex.query.answerer import Answerer
from simindex.storage.tables.keys import key_hash
from simindex.writing.recent import Recent


def pages(count: int, seed: int = 1) -> list[str]:
    """Pages of which each fifth is an earlier one but for a word."""
    rng = np.random.default_rng(seed)
    found: list[str] = []
    for number in range(count):
        words = [f"word{value}" for value in rng.integers(0, 4000, 60).tolist()]
        if number % 5 == 4:
            words = found[int(rng.integers(0, number))].split()
            words[int(rng.integers(0, 60))] = "changed"
        found.append(" ".join(words))
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The documents that were searched for in the usual way."""
    documents: list[Any] = []
    nearest = arrivals.nearest

    def counted(*arguments: Any) -> Any:
        documents.append(arguments[2])
        return nearest(*arguments)

    monkeypatch.setattr(arrivals, "nearest", counted)
    monkeypatch.setattr(arrivals, "SLOW_CALLS", 1 << 30)  # on a busy machine any call may be slow
    return documents


def as_it_came(self: Any, text: Any, key: Any, *_: Any, accompanied: bool) -> kernel_arrivals.Left:
    """In place of `found`, so that every text is asked in the usual way."""
    return kernel_arrivals.Left(text, key)


def crawled(
    path: Path, options: IndexOptions, texts: list[str], name: Callable[[int], Any], **asking: Any
) -> tuple[list[Match | None], list[Any]]:
    """What each page was near, and all that is stored in the end: with commits, deletions and
    merges on the way."""
    found = []
    with simindex.open(path, "n", options=options) as index:
        for number, text in enumerate(texts):
            found.append(index.seen_or_add(text, name(number), commit_s=None, **asking))
            if number % 30 == 20:
                index.commit()
            if number == 75 and options.keys:
                index.delete(keys=[name(n) for n in range(0, 60, 3)])
        index.commit()
        index.compact(full=True)
        stored: list[Any] = []
        for part in index.rows():
            named = part.keys if part.ids is None else part.ids.tolist()
            stored += [named, part.fingerprints.tolist()]
        sample = index._current().reservoir
        stored += [sample.weights.tolist(), sample.fingerprints.tolist()]
        assert index.check() == []
    return found, stored


RECIPES = {
    "default": Recipe(),
    "wide": Recipe(bits=128),
    "sketched": Recipe(sketch_bits=128),
    "least": Recipe(min_features=118, ngram=(1, 2)),
    "ternary": Recipe(unit="char", projection="ternary"),
    "fitted": Recipe(ngram=1, weighting="balanced-tfidf").fit(pages(30, 9)),
    "stop words": Recipe(stop_words=["word1"]),
}


@pytest.fixture
def accompanied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call takes another thread to be beside it."""
    monkeypatch.setattr(
        turns._Beside, "__enter__", lambda beside: beside._turns()._enter(aside=True) or True
    )
    monkeypatch.setattr(arrivals, "ALONE_CALLS", 0)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("recipe", [
    pytest.param(recipe, id=name, marks=[] if name == "default" else pytest.mark.slow)
    for name, recipe in RECIPES.items()
])
def test_they_are_found_and_stored_as_in_the_usual_way(
    tmp_path: Path, recipe: Recipe, asked: list[Any], monkeypatch: pytest.MonkeyPatch,
    beside: bool, request: pytest.FixtureRequest,
) -> None:
    """Whatever the recipe makes of texts, and while rows are committed, deleted and merged."""
    if beside:
        request.getfixturevalue("accompanied")
    options = IndexOptions(
        keys=True, key_secret=bytes(16), recipe=recipe, batch_rows=256, min_merge=2
    )
    texts = pages(120)
    texts[7], texts[9] = "", "zwei wörter 漢字の"

    def name(number: int) -> str:
        return f"https://example.org/{number}"

    found = crawled(tmp_path / "a.sim", options, texts, name)
    usual = len(asked)
    monkeypatch.setattr(kernel_arrivals.KernelArrivals, "found", as_it_came)
    assert crawled(tmp_path / "b.sim", options, texts, name) == found
    assert sum(match is not None for match in found[0]) > 10
    if recipe is not RECIPES["stop words"]:
        assert usual < 12, "only what follows a deletion, or is near a deleted row"


@pytest.mark.parametrize(
    ("keys", "name"),
    [(False, lambda number: None), (False, lambda number: 7 * number),
     ("bytes", lambda number: b"\xff%d" % number), ("str", lambda number: f"straße {number}")],
)
def test_rows_have_the_names_of_the_usual_way(
    tmp_path: Path, keys: Any, name: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = IndexOptions(keys=keys, key_secret=bytes(16) if keys else None, recipe=Recipe())
    texts = [page.encode() if number % 2 else page for number, page in enumerate(pages(60))]
    given: Any = texts
    found = crawled(tmp_path / "a.sim", options, given, name, h=4)
    monkeypatch.setattr(kernel_arrivals.KernelArrivals, "found", as_it_came)
    assert crawled(tmp_path / "b.sim", options, given, name, h=4) == found


def test_a_nearest_row_is_found_of_those_that_wait_and_the_others(
    index_path: Path, asked: list[Any]
) -> None:
    """Of two equally near ones that of the smaller id, and none that is deleted."""
    texts = pages(1000)[::5]  # of which none is another but for a word
    fingerprints = Recipe().batch(texts).rows
    options = IndexOptions(keys=True, key_secret=bytes(16), recipe=Recipe())
    names = [f"page {number}" for number in range(40)]
    ids = [key_hash(name, bytes(16))[0] for name in names]
    with simindex.open(index_path, "n", options=options) as index:
        for number in range(30):
            assert index.seen_or_add(texts[number], names[number], h=0) is None
        index.commit()
        index.delete(keys=names[:10])
        index.commit()
        for number in range(30, 40):
            assert index.seen_or_add(texts[number], names[number], h=0) is None
        away = oracle.distances(fingerprints[:40], fingerprints[40:])
        deleted = away[:, :10].min(axis=1)
        away[:, :10], smaller = 99, [0, 0]
        asked.clear()
        for number, distances in enumerate(away):
            found = index.seen_or_add(texts[40 + number], "new", h=40)
            nearest = np.flatnonzero(distances == distances.min()).tolist()
            assert found is not None and found.distance == distances.min()
            assert found.key in [names[at] for at in nearest] and found.id == ids[
                names.index(str(found.key))
            ]
            if len(nearest) == 2 and nearest[0] < 30 <= nearest[1]:
                assert found.id == min(ids[at] for at in nearest)
                smaller[found.key == names[nearest[0]]] += 1
        assert min(smaller) > 0
        live = away.min(axis=1)
        assert 0 < (deleted < live).sum() <= len(asked) <= (deleted <= live).sum()


def opened(path: Path) -> Index:
    return simindex.open(path, "n", options=IndexOptions(keys=True, recipe=Recipe()))


def test_what_does_not_fit_is_refused_as_in_the_usual_way(index_path: Path) -> None:
    text = pages(1)[0]
    with opened(index_path) as index:
        for given, key in (
            (text, None), (text, 5), (text, b"bytes"), (text, "\ud800"), (text, "k" * 65_536),
            (text, "é" * 40_000), (b"\xff" + text.encode(), "key"),
        ):
            with pytest.raises(InvalidBatch):
                index.seen_or_add(given, key)
        for option in ({"h": True}, {"h": 65}, {"recall": True}, {"recall": 0.0},
                       {"measure": "jaccard"}, {"measure": 5}, {"commit_s": True},
                       {"commit_s": float("nan")}):
            with pytest.raises(simindex.SimindexError):
                index.seen_or_add(text, "key", **option)
        assert index.seen_or_add(text, "k" * 65_535) is None
        assert index.seen_or_add(text, "é" * 30_000) is not None


def test_a_damaged_structure_is_gone_round(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pages(2)
    with opened(index_path) as index:
        index.seen_or_add(first, "first")
        index.commit()

        def damaged(*_: Any) -> Any:
            raise CorruptFile("a structure is damaged")

        monkeypatch.setattr(Answerer, "ways", damaged)
        assert index.seen_or_add(second, "second") is None
        found = index.seen_or_add(first, "third")
        assert found is not None and found.key == "first"


def test_a_row_that_a_signal_handler_has_overwritten_is_not_counted(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler may add a document between any two steps; both go into the same free place."""
    first, second, third = pages(3)
    usual, waiting = kernel_arrivals.WritingCall.__enter__, [second]
    with opened(index_path) as index:

        def interrupted(*arguments: Any) -> Any:
            if waiting:
                assert index.seen_or_add(waiting.pop(), "handler") is None
            return usual(*arguments)

        index.seen_or_add(third, "third")
        monkeypatch.setattr(kernel_arrivals.WritingCall, "__enter__", interrupted)
        assert index.seen_or_add(first, "caller") is None
        monkeypatch.undo()
        for text, key in ((first, "caller"), (second, "handler"), (third, "third")):
            found = index.seen_or_add(text, "again")
            assert found is not None and (found.key, found.distance) == (key, 0)
        index.commit()
        assert len(index) == 3


def test_what_is_ready_goes_with_the_commit(index_path: Path) -> None:
    """Else it would keep the files of segments that were merged."""
    first, second, third = pages(3)
    with opened(index_path) as index:
        index.seen_or_add(first, "first")
        index.seen_or_add(second, "second")
        assert index._current().ready is not None
        index.commit()
        assert index._current().ready is None
        assert index.seen_or_add(third, "third") is None
        assert index._current().ready is not None


# Beside another thread ---------------------------------------------------------------------------


Meanwhile = Callable[[Index, Callable[[], Any]], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch, accompanied: None) -> Meanwhile:
    """Has something done once, after a call has read what waits and before its text is asked."""
    usual, waiting = Recent.place_apart, list[Callable[[], Any]]()

    def place_apart(recent: Recent) -> Any:
        if waiting:
            waiting.pop()()
        return usual(recent)

    def then(index: Index, change: Callable[[], Any]) -> None:
        if index._current().ready is not None:
            index._current().ready.apart.clear()  # so that a place is made
        waiting.append(change)

    monkeypatch.setattr(Recent, "place_apart", place_apart)
    return then


def test_of_equal_texts_that_come_at_once_one_is_new(
    index_path: Path, meanwhile: Meanwhile
) -> None:
    first, second, third = pages(3)
    with opened(index_path) as index:
        index.seen_or_add(first, "first")
        meanwhile(index, lambda: index.seen_or_add(second, "inner"))
        found = index.seen_or_add(second, "outer")
        assert found is not None and (found.key, found.distance) == ("inner", 0)
        meanwhile(index, lambda: index.seen_or_add(third, "third"))
        found = index.seen_or_add(f"{second} more", "outer", h=64)
        assert found is not None and found.key == "inner", "the nearest, which waited before"
        assert len(index) == 0
        index.commit()
        assert len(index) == 3 and index.check() == []


def test_what_another_thread_changes_meanwhile_is_seen(
    index_path: Path, meanwhile: Meanwhile
) -> None:
    first, second, third = pages(3)
    with opened(index_path) as index:
        index.seen_or_add(first, "first")
        index.commit()

        def deleted() -> None:
            index.delete(keys=["first"])

        def committed() -> None:
            index.seen_or_add(second, "second")
            index.commit()

        for change, text, found in (
            (deleted, first, None), (committed, second, "second"), (committed, third, None),
        ):
            meanwhile(index, change)
            match = index.seen_or_add(text, "new")
            assert (match and match.key) == found
        index.commit()
        assert len(index) == 3 and index.check() == []


def test_a_close_or_an_interrupt_meanwhile_reaches_the_caller(
    index_path: Path, meanwhile: Meanwhile
) -> None:
    first, second = pages(2)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with opened(index_path) as index:
        index.seen_or_add(first, "first")
        meanwhile(index, interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.seen_or_add(second, "second")
        assert index.seen_or_add(second, "second") is None
        meanwhile(index, index.close)
        with pytest.raises(ClosedIndex):
            index.seen_or_add("another text of five words", "third")
    with simindex.open(index_path) as index:
        assert len(index) == 2


def test_errors_reach_the_thread_whose_text_caused_them(
    index_path: Path, accompanied: None
) -> None:
    with opened(index_path) as index:
        index.seen_or_add(pages(1)[0], "first")
        with pytest.raises(InvalidBatch):
            index.seen_or_add(b"\xff is not UTF-8", "key")
        assert index.seen_or_add("", "empty") is None
        index.commit()
        assert len(index) == 1


def test_threads_beside_each_other_keep_the_promises(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four threads give the same texts under their own keys, each in an order of its own; in what
    order a thread gave them, they are stored."""
    monkeypatch.setattr(turns, "QUICK_S", 1.0)
    monkeypatch.setattr(turns, "MOST_TURN_S", 0.002)
    monkeypatch.setattr(arrivals, "ALONE_CALLS", 0)
    monkeypatch.setattr(Pace, "count", lambda *_, **__: None)
    texts, beside = pages(5000)[::5], [0]
    usual = Recent.place_apart

    def place_apart(recent: Recent) -> Any:
        beside[0] += 1
        return usual(recent)

    monkeypatch.setattr(Recent, "place_apart", place_apart)
    new: dict[int, list[int]] = {}
    met: list[BaseException] = []

    def give(seed: int) -> None:
        own: list[int] = []
        try:
            for number in np.random.default_rng(seed).permutation(len(texts)).tolist():
                if index.seen_or_add(texts[number], f"{seed}/{number}", h=0) is None:
                    own.append(number)
        except BaseException as error:
            met.append(error)
        new[seed] = own

    with opened(index_path) as index:
        index._handle.turns._most = 2
        index.seen_or_add("a first text of six words", "first", h=0)
        threads = [threading.Thread(target=give, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert met == []
        assert beside[0], "no call ran beside another"
        recent = index._handle.writer.committer.recent  # type: ignore[union-attr]
        stored = recent._keys[1 : recent.count]
        for seed, own in new.items():
            assert [key for key in stored if key.startswith(f"{seed}/")] == [
                f"{seed}/{number}" for number in own
            ]
        assert sorted(number for own in new.values() for number in own) == list(range(len(texts)))
        index.commit()
        assert len(index) == len(texts) + 1 and index.check() == []
