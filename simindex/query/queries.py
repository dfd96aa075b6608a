"""What a caller asks about: texts, a batch or fingerprints, as rows; and answers by their places.

    texts            recipe -> rows of those that have a fingerprint
    answers          query numbers are places among the texts that were given
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import F32, I64, U8, U64, keys_of_lists
from simindex.errors import InvalidBatch
from simindex.records import dataframe_columns
from simindex.records.arguments import as_fingerprints
from simindex.records.batch import Batch
from simindex.records.matches import NO_NEIGHBOUR, Matches, TopMatches
from simindex.simhash.recipe import Recipe

_WORDS = np.dtype(np.uint64)


class Asked(NamedTuple):
    """Rows to search for. A tuple, which is made in a third of the time of a frozen dataclass."""

    rows: U64
    """(m, W)."""
    weights: F32 | None = None
    """(m, b)."""
    recipe: Recipe | None = None
    """What made them, as far as they tell."""
    places: I64 | None = None
    """(m,): the place of each row's text, where some texts have no fingerprint."""
    given: int = 0
    """How many texts were given."""
    sketches: U8 | None = None
    """(m, S)."""

    def numbered(self, found: Matches) -> Matches:
        """Matches whose query numbers are places of texts."""
        if self.places is None:
            return found
        return Matches(
            self.places[found.query], found.id, found.distance, found.stats, found.fetch_keys
        )

    def each_numbered(
        self, parts: Generator[Matches, None, None]
    ) -> Generator[Matches, None, None]:
        """The same of parts of an answer; `parts` are closed with it."""
        with closing(parts):
            for found in parts:
                yield self.numbered(found)

    def numbered_top(self, found: TopMatches) -> TopMatches:
        """The nearest by places of texts; one without a fingerprint has none."""
        places = self.places
        if places is None:
            return found
        shape = (self.given, found.id.shape[1])
        ids = np.full(shape, NO_NEIGHBOUR, np.uint64)
        distance = np.full(shape, found.bits + 1, np.uint16)
        ids[places], distance[places] = found.id, found.distance

        def keys() -> Any:
            of_rows: Any = found.keys()
            listed = [keys_of_lists([], [of_rows]) for _ in range(self.given)]
            for place, some in zip(places.tolist(), of_rows, strict=True):
                listed[place] = some
            return keys_of_lists(listed, [of_rows])

        return TopMatches(
            ids, distance, found.stats, found.bits, keys if found.has_keys else None
        )


def asked(given: Any, *, recipe: Callable[[], Recipe | None], bits: int) -> Asked:
    """A text, several texts, a Batch, or fingerprints (m,) or (m, W), as rows.

    Texts and numbers come in a list, an array, an iterator or a column of another library. `recipe`
    is called for texts only. Raises InvalidBatch for texts where it gives none, and for another
    width.
    """
    if isinstance(given, np.ndarray) and given.dtype is _WORDS:  # other uint64 arrays are as right
        return Asked(as_fingerprints(given, bits=bits))
    if type(given) is Batch:
        if given.bits != bits:
            as_fingerprints(given.rows, bits=bits)
        return Asked(given.rows, given.weights, given.recipe, sketches=given.sketches)
    if isinstance(given, Iterator):
        first = list(islice(given, 1))
        text = dataframe_columns.holds_text(first)
        given = chain(first, given) if text else [*first, *given]
    else:
        given = [given] if isinstance(given, (str, bytes)) else given
        text = dataframe_columns.holds_text(given)
    return _asked_texts(given, recipe()) if text else Asked(as_fingerprints(given, bits=bits))


def _asked_texts(texts: Any, recipe: Recipe | None) -> Asked:
    if recipe is None:
        raise InvalidBatch(
            "this index has no recipe that turns texts into fingerprints",
            remedy="give fingerprints, or create the index with IndexOptions(recipe=...)",
        )
    batch = recipe.batch(texts)
    if not batch.skipped:
        return Asked(batch.rows, batch.weights, recipe, sketches=batch.sketches)
    skipped, count = [one.position for one in batch.skipped], len(batch) + len(batch.skipped)
    places = np.delete(np.arange(count, dtype=np.int64), skipped)
    return Asked(batch.rows, batch.weights, recipe, places, count, batch.sketches)
