"""The kernel for a text that comes by itself gives what the kernels give that it is made of."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import oracle
import pytest

from simindex import Recipe
from simindex._kernels import _native
from simindex.bits.design import BlockDesign
from simindex.methods import bphs
from simindex.methods.psm import exhaustive_masks
from simindex.records.sketches import record_bytes
from simindex.simhash.recipe_kernels import kernel_of_arrivals
from simindex.storage.tables.permuted import permuted_rows
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table, sort_table

H = 5
TEXTS = [" ".join(f"w{number * place % 97}" for place in range(40)) for number in range(1, 60)]


def table_near(rows: Any) -> Table:
    """Strangers, and rows of which each is near one of some others, from 0 to H + 3 bits."""
    rng = np.random.default_rng(3)
    near = oracle.flip(rng, rows, np.arange(len(rows)) % (H + 4))
    made = np.concatenate([near, oracle.uniform(rng, 500, rows.shape[1])])
    return sort_table("", made, np.arange(len(made), dtype=np.uint64), None, horizon=0)


def passages(way: str, table: Table, words: int) -> _native.Passages:
    found = _native.Passages(words, H)
    if way == "scan":
        found.scan(table.fingerprints)
    elif way == "probe":
        found.probe(table.checked, table.header_bits, exhaustive_masks(table.header_bits, H))
    else:
        design = BlockDesign.parse("bphs:G=3,g=1,r=1", 64 * words)
        found.permuted(table.checked, table.header_bits, [
            bphs.checked_table(
                table if number == 0 else SortedRows(
                    permuted_rows(table.fingerprints, design, number),
                    header_bits=min(10, design.header_bits[number]),
                ), design, number, flips,
            ) for number, flips in enumerate(design.table_flips(H))
        ])
    return found


@pytest.mark.parametrize("way", ["scan", "probe", "permuted"])
@pytest.mark.parametrize("recipe", [Recipe(), Recipe(bits=128, sketch_bits=64)], ids=["64", "128"])
def test_a_text_is_near_the_rows_of_least_distance(way: str, recipe: Recipe) -> None:
    """Of a table, and of the rows before its place; its own row is that of `batch`."""
    kernel = kernel_of_arrivals(recipe)
    assert kernel is not None
    batch = recipe.batch(TEXTS)
    words, sketch_words = recipe.bits // 64, recipe.sketch_bits // 64
    table = table_near(batch.rows[::3])
    rows = np.zeros((len(TEXTS), words), np.uint64)
    sketches = np.zeros((len(TEXTS), record_bytes(sketch_words)), np.uint8)
    weights = np.zeros((len(TEXTS), recipe.bits), np.float32)
    ways = passages(way, table, words)
    for places in (_native.Places(rows, sketches), _native.Places(rows, sketches, weights)):
        count = as_near = 0
        for number, text in [*enumerate(TEXTS), *enumerate(TEXTS[:30])]:
            given = text.encode() if number % 2 else text
            told = kernel.arrive(given, places, count, ways)
            query = batch.rows[number : number + 1]
            waiting = oracle.distances(rows[:count], query)[0]
            stored = oracle.distances(table.fingerprints, query)[0]
            least = min([*waiting.tolist(), *stored.tolist()])
            if least > H:
                assert told == 0
            else:
                assert isinstance(told, tuple)
                distance, place, passage, row = told
                assert distance == least
                assert place == next(iter(np.flatnonzero(waiting == least).tolist()), -1)
                assert passage == (0 if stored.min() == least else -1)
                assert row == -1 if passage < 0 else stored[row] == least
                as_near += place >= 0 and passage == 0
            assert np.array_equal(rows[count], batch.rows[number])
            if sketch_words:
                assert np.array_equal(sketches[count], batch.sketches[number])
            count += least > H or (least > 0 and number % 2) or (number == 27 and least == 0)
        assert 10 < count < len(TEXTS) - 5
        assert as_near, "to a row of the table and to one that waits"
    assert np.array_equal(weights[count], batch.weights[29])


def test_texts_without_a_fingerprint_are_told_apart() -> None:
    kernel = kernel_of_arrivals(Recipe(min_features=4))
    assert kernel is not None
    places = _native.Places(np.zeros((2, 1), np.uint64), np.empty((2, 0), np.uint8))
    none = _native.Passages(1, 3)
    for text, told in (("", 2), ("one word", 2), (b"\xff one two three", 3),
                       ("one two three four five", 0), ("🙂 wörter und noch mehr davon", 0)):
        assert kernel.arrive(text, places, 0, none) == told


def test_what_does_not_fit_is_refused() -> None:
    kernel = kernel_of_arrivals(Recipe())
    assert kernel is not None
    rows, sketches = np.zeros((2, 1), np.uint64), np.empty((2, 0), np.uint8)
    places, none = _native.Places(rows, sketches), _native.Passages(1, 3)
    wide = _native.Places(np.zeros((2, 2), np.uint64), sketches)
    sketched = _native.Places(rows, np.zeros((2, 9), np.uint8))
    for wrong in ((places, 2, none), (wide, 0, none), (sketched, 0, none),
                  (places, 0, _native.Passages(2, 3))):
        with pytest.raises(ValueError):
            kernel.arrive("a text", *wrong)
    with pytest.raises(ValueError):
        kernel.arrive("w " * (1 << 16), places, 0, none)
    with pytest.raises(TypeError):
        kernel.arrive(5, places, 0, none)  # type: ignore[arg-type]
    frozen = rows.copy()
    frozen.setflags(write=False)
    for columns in ((frozen, sketches), (rows, np.empty((3, 0), np.uint8)),
                    (rows, sketches, np.zeros((2, 32), np.float32)),
                    (rows, np.zeros((2, 8), np.uint8))):
        with pytest.raises((ValueError, TypeError)):
            _native.Places(*columns)
    for wrong_passages in ((0, 3), (1, -1)):
        with pytest.raises(ValueError):
            _native.Passages(*wrong_passages)
    with pytest.raises(ValueError):
        none.scan(np.zeros((2, 2), np.uint64))


@pytest.mark.parametrize("wide", [False, True])
def test_a_place_is_written_and_no_other(wide: bool) -> None:
    recipe = Recipe(bits=192 if wide else 64)
    kernel = kernel_of_arrivals(recipe)
    assert kernel is not None
    words = recipe.bits // 64
    rows = np.full((5, words), 7, np.uint64)
    weights = np.full((5, recipe.bits), 7, np.float32)
    places = _native.Places(rows, np.empty((5, 0), np.uint8), weights)
    kernel.arrive("a text of some words", places, 2, _native.Passages(words, 0))
    others = [0, 1, 3, 4]
    assert (rows[others] == 7).all() and (weights[others] == 7).all()
    assert np.array_equal(weights[2:3], recipe.batch(["a text of some words"]).weights)


# Apart -------------------------------------------------------------------------------------------


def columns(recipe: Recipe, count: int, value: int = 7) -> tuple[Any, Any, Any]:
    words = recipe.bits // 64
    return (
        np.full((count, words), value, np.uint64),
        np.full((count, record_bytes(recipe.sketch_bits // 64)), value, np.uint8),
        np.full((count, recipe.bits), value, np.float32),
    )


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(bits=128, sketch_bits=64)], ids=["64", "128"])
def test_a_row_apart_is_taken_and_compared_with_those_that_came(recipe: Recipe) -> None:
    kernel = kernel_of_arrivals(recipe)
    assert kernel is not None
    batch, baton = recipe.batch(TEXTS[:6]), _native.Baton()
    rows, sketches, weights = columns(recipe, 6, 0)
    places = _native.Places(rows, sketches, weights)
    own = columns(recipe, 1)
    apart, none = _native.Places(*own), _native.Passages(recipe.bits // 64, 0)
    for number in range(5):
        assert kernel.arrive(TEXTS[number], places, number, none) == 0
    assert kernel.arrive(TEXTS[5], places, 5, none, apart, baton) == 0
    assert not rows[5].any(), "places stay as they are"
    for made, wanted in zip(own, (batch.rows, batch.sketches, batch.weights), strict=True):
        assert wanted is None or np.array_equal(made[0], wanted[5])
    assert places.take(apart, 2, 5, none) is None
    for made, column in zip(own, (rows, sketches, weights), strict=True):
        assert np.array_equal(made[0], column[5])
    assert kernel.arrive(TEXTS[3], places, 2, none, apart, baton) == 0, "of the first two"
    assert places.take(apart, 2, 5, none) == (0, 3)
    assert places.take(apart, 3, 5, none) == (0, 3)
    assert places.take(apart, 4, 5, none) is None
    found = kernel.arrive(TEXTS[3], places, 5, none, apart, baton)
    assert found == (0, 3, -1, -1)
    rows[4] = rows[3]
    assert places.take(apart, 2, 5, none) == (0, 3), "the first"


def test_a_row_apart_that_does_not_fit_is_refused() -> None:
    recipe = Recipe()
    kernel = kernel_of_arrivals(recipe)
    assert kernel is not None
    places, none = _native.Places(*columns(recipe, 2)), _native.Passages(1, 3)
    apart = _native.Places(*columns(recipe, 1))
    wide, sketched = (
        _native.Places(*columns(one, 1)) for one in (Recipe(bits=128), Recipe(sketch_bits=64))
    )
    nothing, unweighted = _native.Places(*columns(recipe, 0)), _native.Places(
        *columns(recipe, 1)[:2]
    )
    for wrong in (wide, sketched, nothing):
        with pytest.raises(ValueError):
            kernel.arrive("a text", places, 1, none, wrong)
    with pytest.raises(ValueError):
        kernel.arrive("a text", places, 3, none, apart)
    kernel.arrive("a text of some words", places, 2, none, apart)
    for wrong in (wide, sketched, nothing, unweighted):
        with pytest.raises(ValueError):
            places.take(wrong, 0, 1, none)
    for first, count, passages in ((0, 2, none), (1, 0, none), (0, 1, _native.Passages(2, 3))):
        with pytest.raises(ValueError):
            places.take(apart, first, count, passages)


def test_threads_with_a_baton_are_told_the_same() -> None:
    """One that keeps it is not waited for longer than for a moment."""
    recipe = Recipe()
    kernel = kernel_of_arrivals(recipe)
    assert kernel is not None
    rows = recipe.batch(TEXTS).rows
    places, none = _native.Places(rows.copy(), np.empty((len(TEXTS), 0), np.uint8)), (
        _native.Passages(1, 0)
    )
    baton, wrong = _native.Baton(), []

    def ask() -> None:
        apart = _native.Places(*columns(recipe, 1))
        for number in [*range(len(TEXTS))] * 20:
            told = kernel.arrive(TEXTS[number], places, len(TEXTS), none, apart, baton)
            if not isinstance(told, tuple) or told[0]:
                wrong.append(told)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
