"""The kernel for a text that comes by itself gives what the kernels give that it is made of."""

from __future__ import annotations

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
from simindex.storage.tables.sortedrows import SortedRows
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
