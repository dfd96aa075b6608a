"""Documents too short for the radius: counted while they are fingerprinted, and told once.

A text is short if it has fewer distinct features than `simindex.simhash.shortest_text` says: its
copies are found, but of its edits of one word more than a tenth are not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import simindex
from simindex.cli.chunks import Chunk, batch_of
from simindex.cli.console import count, say
from simindex.simhash.shortest_text import radius_for, shortest_text

LEAST_SHARE = 0.01
"""Of short texts among all: fewer are not spoken of. docs/how-to/choosing-a-recipe.md says so."""

WIDE_BITS = 256
LEAST_FEATURES = 10
"""Of the shortest texts that were measured."""


class Told(NamedTuple):
    """What there is to tell of a chunk once its batch is made."""

    skipped: Any
    """Of the texts without a fingerprint."""
    short: int
    """How many rows are of short texts."""


def fingerprinted(
    recipe: Any, least: int, chunk: Chunk, *, threads: int | None = None
) -> tuple[simindex.Batch, Told]:
    """The batch of a chunk, with the documents' keys. Texts of fewer features are short."""
    made = batch_of(recipe, chunk, count_features=least, threads=threads)
    short = 0 if made.features is None else int((made.features < least).sum())
    return made, Told(made.skipped, short)


class ShortTexts:
    """Makes the batches of a run, and counts the short texts among their rows."""

    def __init__(
        self, recipe: Any, h: int, *, fixed: bool = False, compares: bool = False,
        advice: str | None = None,
    ) -> None:
        self._recipe, self._h = recipe, h
        self._compares = compares
        """Whether the command itself compares within the radius that it is given."""
        self._advice = advice
        """What finds more where the radius cannot be given; None where it can."""
        self._fixed = fixed
        """Whether the documents go into an index that is there, so that the width is given."""
        self._kind = recipe.unit, recipe.sizes, recipe.weighting
        self.least: int = shortest_text(recipe.bits, *self._kind, h) or 0
        """Distinct features of a text that is long enough; 0 where that was not measured."""
        self.number: int = 0

    def batch(self, chunk: Chunk, *, threads: int | None = None) -> simindex.Batch:
        """The batch of a chunk, with the documents' keys."""
        made, told = fingerprinted(self._recipe, self.least, chunk, threads=threads)
        self.number += told.short
        return made

    def work(self) -> Callable[[Chunk, int | None], tuple[simindex.Batch, Told]]:
        """Makes batches on so many threads, for any thread to call; otherwise as `task`."""
        recipe, least = self._recipe, self.least
        return lambda chunk, threads: fingerprinted(recipe, least, chunk, threads=threads)

    def task(self) -> Callable[[Chunk], tuple[simindex.Batch, Told]]:
        """Makes batches elsewhere: it pickles. Who gets what is told adds up the short texts."""
        return partial(fingerprinted, self._recipe, self.least)

    def say(self, documents: int) -> None:
        """Say how many of the documents were short, and what finds more, unless these are few."""
        if self.number and self.number >= LEAST_SHARE * documents:
            have = "has" if self.number == 1 else "have"
            say(
                f"{self.number:,} of {count(documents, 'document')} {have} fewer than {self.least} "
                f"different {self._features}: one changed word often moves such a text by more "
                f"than {self._h} bits.{self._help} Equal texts are always found"
            )

    @property
    def _features(self) -> str:
        sizes: tuple[int, ...] = self._recipe.sizes
        if sizes == (1,):
            return "words"
        return "words and phrases" if sizes[0] == 1 else "phrases"

    @property
    def _help(self) -> str:
        """What else to try: a larger radius, or wider fingerprints with one larger still."""
        if self._advice is not None:
            return f" {self._advice}." if self._advice else ""
        options = []
        bits = self._recipe.bits
        for option, width, features in (
            ("", bits, self.least // 2),
            (f"--bits {WIDE_BITS} ", WIDE_BITS, max(self.least // 4, LEAST_FEATURES)),
        ):
            h = radius_for(width, *self._kind, features)
            wanted = not option or (width > bits and not self._fixed)
            if h is not None and h * bits > self._h * width and wanted:
                least = shortest_text(width, *self._kind, h)
                options.append((f"{option}-d {h}", least))
        if not options:
            return ""
        (first, least), *others = options
        more = "".join(f", {other} in texts of {enough} or more" for other, enough in others)
        if self._fixed and not self._compares:
            first = f"`simindex pairs {first}` or `query {first}`"
        return (
            f" {first} finds nine of ten such edits in texts of {least} {self._features} or "
            f"more{more}."
        )
