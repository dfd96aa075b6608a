"""Edited copies of some documents of a sample, and which of them a threshold misses."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from simindex.advising.edits import EDITS, count_words
from simindex.advising.intervals import wilson
from simindex.advising.sample_pairs import between, columns
from simindex.records.advice import EditRates
from simindex.simhash.alignment import word_pattern
from simindex.simhash.vectors import vectors_of
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.advising.judged_pairs import Choice
    from simindex.records.batch import Batch
    from simindex.simhash.recipe import Recipe

EDITED = 400
"""Documents of which each edit makes a copy."""

LENGTHS: tuple[tuple[int, int | None], ...] = ((1, 50), (50, 200), (200, 1000), (1000, None))
"""Classes of documents by their words."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A document and an edited copy of it."""

    place: int
    text: str
    edit: str
    strength: float
    words: int


def copies_of(texts: list[str], seed: int) -> Iterator[Copy]:
    random = Random(seed)
    chosen = random.sample(range(len(texts)), min(EDITED, len(texts)))
    lengths = {place: count_words(texts[place]) for place in chosen}
    lenders = random.sample(range(len(texts)), min(200, len(texts)))
    words = [
        found.group() for place in lenders
        for found in word_pattern().finditer(texts[place][:20_000])
    ]
    for name, (edit, strengths) in EDITS.items():
        for strength in strengths:
            for place, length in lengths.items():
                copy = edit(texts[place], strength, words, random)
                yield Copy(place, copy, name, strength, length)


def edit_rates(
    name: str, recipe: Recipe, texts: list[str], batch: Batch, copies: list[Copy],
    choice: Choice,
) -> list[EditRates]:
    """By edit, strength and length of the document."""
    edited = recipe.batch([copy.text for copy in copies])
    gone = {skip.position for skip in edited.skipped}
    copies = [copy for place, copy in enumerate(copies) if place not in gone]
    if not copies:
        return []
    places = np.array([copy.place for copy in copies])
    rows, sketch = columns(batch)
    new_rows, new_sketch = columns(edited)
    width = choice.sketch_bits
    new = np.arange(len(copies))
    sketched = {width: sketch.apart(places, new_sketch, new, width)} if width else {}
    found, kept = between(rows[places], new_rows) <= choice.h, choice.kept(sketched)
    found = found if kept is None else found & kept
    sources = sorted(set(places.tolist()))
    at = {place: number for number, place in enumerate(sources)}
    both = [texts[place] for place in sources] + [copy.text for copy in copies]
    cosine = vectors_of(recipe, both).cosines(
        np.array([at[copy.place] for copy in copies]), len(sources) + np.arange(len(copies))
    )
    words = np.array([copy.words for copy in copies])
    made = []
    for edit, (_, strengths) in EDITS.items():
        for strength in strengths:
            alike = np.array([(one.edit, one.strength) == (edit, strength) for one in copies])
            for low, high in LENGTHS:
                some = alike & (words >= low) & (words < (high or np.inf))
                if some.any():
                    made.append(EditRates(
                        name, choice.sketch_bits, choice.h, edit, strength, low, high,
                        float(cosine[some].mean()),
                        wilson(int((~found[some]).sum()), int(some.sum())),
                    ))
    return made
