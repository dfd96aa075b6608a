"""Documents added one at a time that no commit has taken yet, and what is near them.

    fingerprints  (capacity, W)   r0 r1 r2 ... r(n-1) | free        in order of arrival
    weights       (capacity, b)   the same, where any row has them
    ids, keys     lists beside them

Queries compare all of them, at any h and however skewed: 3 us for 8,192 rows of 64 bits, 11 for
65,536, the most there are (AVX-512; without wide instructions 30 and 220). Sorted runs would have
to be rebuilt as rows come, and save nothing at that size.

Invariants
1. Rows count once everything about them stands, so that an interrupt leaves one whole or out.
2. What `drop` forgets a writer has taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import F32, U64
from simindex.errors import InvalidBatch, InvalidOption
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.records.matches import Match, Matches
from simindex.simhash.recipe import Recipe
from simindex.storage.tables.keys import key_hash
from simindex.writing.admission import checked_batch

MOST_WORDS = 1 << 16
"""Of all rows together: half a megabyte."""

LEAST_ROWS = 256
"""For which there is room at first."""


def admitted(
    given: Any, key: Any, options: IndexOptions, recipe: Recipe | None
) -> Batch | None:
    """One document as a batch that fits the index; None for a text that has no fingerprint.

    Parameters
    ----------
    given : str, bytes or Batch
        A text, which needs the index's recipe, or a batch of one.
    key : str, bytes or int, optional
        The row's key or id, where a batch brings none.

    Raises
    ------
    InvalidBatch, RecipeMismatch
        If it is not one document, or does not fit.
    """
    named: dict[str, Any] = {}
    if key is not None:
        named = {"keys": [key]} if options.keyed else {"ids": [key]}
    if isinstance(given, (str, bytes)):
        if recipe is None:
            raise InvalidBatch(
                "this index has no recipe to make a fingerprint of a text: give a Batch of one, or "
                "create the index with IndexOptions(recipe=...)"
            )
        if options.keyed and key is None:
            raise InvalidBatch("this index has keys: give key=")
        batch = recipe.batch([given], **named)
    elif not isinstance(given, Batch):
        raise InvalidBatch(
            f"{type(given).__name__} is no document: give a text, or a Batch of one",
            found=type(given).__name__,
        )
    elif not named:
        batch = given
    elif given.ids is not None or given.keys is not None:
        raise InvalidBatch("the batch names its row: give no key beside it")
    else:
        batch = Batch(
            given.rows, weights=given.weights, recipe=given.recipe, skipped=given.skipped, **named
        ) if len(given) else given
    if len(batch) == 0 and len(batch.skipped) == 1:
        return None
    if len(batch) != 1:
        raise InvalidBatch(
            f"the batch has {len(batch)} rows: give one, or all of them to Index.ingest",
            found=len(batch), expected=1,
        )
    return checked_batch(batch, options, recipe)


def nearest(search: Callable[..., Matches], h: int, recall: float) -> Match | None:
    """A row nearest to one query, of those within h.

    Parameters
    ----------
    search : function (h, recall) -> Matches
        The first match that is found.

    Notes
    -----
    Nearer ones are asked for, exactly, until there is none: at most h + 1 searches, which stop at
    their first match. So a million rows like it cost no more than one, where all matches would be
    put in order.
    """
    best = None
    found = search(h=h, recall=recall)
    while len(found):
        best = next(iter(found))
        if not best.distance:
            break
        found = search(h=best.distance - 1, recall=1.0)
    return best


def nearer(one: Match | None, other: Match | None) -> Match | None:
    """The nearer of two matches, of equally near ones that of the smaller id."""
    return min(
        (match for match in (one, other) if match is not None),
        key=lambda match: (match.distance, match.id), default=None,
    )


def check_commit_s(commit_s: object) -> None:
    """Refuses what is no time with InvalidOption."""
    if commit_s is None or (
        isinstance(commit_s, (int, float)) and not isinstance(commit_s, bool) and commit_s >= 0
    ):
        return
    raise InvalidOption(
        f"commit_s={commit_s!r} is no time: give seconds, 0 or more, or None",
        option="commit_s", found=commit_s,
    )


class Recent:
    """Rows and when the first of them came; the caller keeps threads apart."""

    def __init__(self, options: IndexOptions) -> None:
        self._secret = options.key_secret
        self._keeps_weights = options.reservoir_rows > 0
        self.most_rows = min(options.seal_rows, max(1, MOST_WORDS // options.words))
        """With which a commit is due: enough for a segment, or for a comparison."""
        self._count = 0
        self._since = 0.0
        self._rows: U64 = np.empty((0, options.words), np.uint64)
        self._weights: F32 | None = None
        self._weighted: list[bool] = []
        self._ids: list[int] = []
        self._keys: list[Any] = []

    def __len__(self) -> int:
        return self._count

    def due(self, commit_s: float | None) -> bool:
        """Whether they are as many as a commit should take, or have waited for `commit_s`."""
        if not self._count:
            return False
        if self._count >= self.most_rows:
            return True
        return commit_s is not None and time.monotonic() - self._since >= commit_s

    def nearest(self, row: U64, h: int) -> Match | None:
        """A row nearest to one query (1, W), of those within h."""
        if not self._count:
            return None
        _, place, distance, _ = _native.scan(self._rows[: self._count], row, h, False)
        if not len(place):
            return None
        best = int(np.argmin(distance))
        at = int(place[best])
        return Match(0, self._ids[at], self._keys[at], int(distance[best]))

    def add(self, document: Batch, ordinal: int) -> None:
        """Takes a batch of one; `ordinal` is its id where it has no name."""
        count = self._count
        if count == len(self._rows):
            self._grow(max(LEAST_ROWS, 2 * count))
        key = None if document.keys is None else document.keys[0]
        for column in (self._weighted, self._ids, self._keys):
            del column[count:]  # of a row that an interrupt left half there
        self._rows[count] = document.rows[0]
        kept = document.weights is not None and self._keeps_weights
        if document.weights is not None and kept:
            if self._weights is None:
                self._weights = np.empty((len(self._rows), document.weights.shape[1]), np.float32)
            self._weights[count] = document.weights[0]
        self._weighted.append(kept)
        self._keys.append(key)
        if key is not None:
            assert self._secret is not None
            self._ids.append(key_hash(key, self._secret)[0])
        else:
            self._ids.append(ordinal if document.ids is None else int(document.ids[0]))
        if not count:
            self._since = time.monotonic()
        self._count = count + 1

    def _grow(self, capacity: int) -> None:
        count = self._count
        if self._weights is not None:
            weights = np.empty((capacity, self._weights.shape[1]), np.float32)
            weights[:count] = self._weights[:count]
            self._weights = weights
        rows = np.empty((capacity, self._rows.shape[1]), np.uint64)
        rows[:count] = self._rows[:count]
        self._rows = rows

    def portion(self) -> tuple[Batch, NDArray[np.bool_]]:
        """Rows that make one batch, and which they are: those with weights, then those without."""
        taken = np.array(self._weighted[: self._count], np.bool_)
        if not taken.any():
            taken = ~taken
        weights = None if self._weights is None else self._weights[: self._count][taken]
        if not self._weighted[int(np.argmax(taken))]:
            weights = None
        places = np.flatnonzero(taken).tolist()
        if self._secret is None:
            named: dict[str, Any] = {"ids": np.array([self._ids[at] for at in places], np.uint64)}
        else:
            named = {"keys": [self._keys[at] for at in places]}
        return Batch(self._rows[: self._count][taken], weights=weights, **named), taken

    def without(self, taken: NDArray[np.bool_]) -> Recent:
        """The others, once a writer has these."""
        left = np.flatnonzero(~taken)
        places = left.tolist()
        others = copy(self)
        others._count = len(left)
        others._rows = self._rows[left]
        others._weights = None if self._weights is None else self._weights[left]
        others._weighted = [self._weighted[at] for at in places]
        others._ids = [self._ids[at] for at in places]
        others._keys = [self._keys[at] for at in places]
        return others
