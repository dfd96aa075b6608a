"""What enters the package: a batch of fingerprints, with the ids or keys and weights of its rows.

Data travels as columns, not as objects. `arguments` checks them where they enter.

    Batch    fingerprints (n,) or (n, W)   ids or keys (n,)   weights (n, b)   sketch (n, S)
             skipped
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F32, I64, U8, U64, picked
from simindex.checks import require
from simindex.records import arrow
from simindex.records.arguments import (
    as_features,
    as_fingerprints,
    as_ids,
    as_keys,
    as_sketch,
    as_weights,
    check_one_kind,
)
from simindex.records.sketches import numbers_of, sizes_of, words_of
from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text that got no fingerprint, and why."""

    position: int
    """Place among the given texts, from 0."""
    key: Any
    """Its id or key, or None."""
    reason: str
    """`"empty"` or `"too few features: 2 < 4"`."""


class Batch:
    """Fingerprints of some documents, with their ids or keys and their bit weights.

    Parameters
    ----------
    fingerprints : uint64 (n,) or (n, W)
        Bit 63 of word 0 comes first. An array, a list of numbers, or a column of pandas, polars or
        Arrow, as ids and keys may be; (n, W) also as a column of lists of W numbers.
    ids : integers (n,), optional
        Numbers from 0 to 2**64 - 1. They need not be unique.
    keys : sequence or column of str, or of bytes, optional
        Names instead of ids, all of one type, at most 65,535 bytes each. A str is stored as UTF-8,
        so it may not contain a lone surrogate.
    weights : float32 (n, b), optional
        The sums W whose signs are the bits, in any unit. Column 0 belongs to bit 63 of word 0. A
        weight of 0 or more means a bit of 1.
    recipe, skipped
        `Recipe.batch` sets them: the Recipe, and the texts that got no fingerprint.
    features : integers (n,), optional
        How many distinct features each document has, 0 where that is not known. With a sketch they
        say how large the sets are that ``measure="jaccard"`` compares. `Recipe.batch` sets it with
        `count_features`: up to that number.
    sketch : uint64 (n, S), optional
        Further bits of each document, S words of 64; or `sketches` of another batch. `Recipe.batch`
        sets it where the recipe has ``sketch_bits``.

    Raises
    ------
    InvalidBatch
        If a dtype, shape, length or value is wrong, or a value is null. The error has the first
        such row.
    """

    __slots__ = ("_rows", "features", "ids", "keys", "recipe", "sketches", "skipped", "weights")

    def __init__(
        self,
        fingerprints: Any,
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
        weights: Any = None,
        recipe: Any = None,
        skipped: Sequence[Skipped] = (),
        features: Any = None,
        sketch: Any = None,
    ) -> None:
        self._rows = as_fingerprints(fingerprints)
        n = len(self._rows)
        check_one_kind(ids, keys)
        self.ids: U64 | None = None if ids is None else as_ids(ids, n)
        self.keys: list[str] | list[bytes] | None = None if keys is None else as_keys(keys, n)
        self.weights: F32 | None = None if weights is None else as_weights(weights, self._rows)
        self.recipe: Any = recipe
        self.skipped: tuple[Skipped, ...] = tuple(skipped)
        self.features: I64 | None = None if features is None else as_features(features, n)
        self.sketches: U8 | None = None
        """The sketches with their sizes, uint8 (n, 8 S + 1), as files have them."""
        if sketch is not None:
            self.sketches = as_sketch(sketch, n, self.features)

    @classmethod
    def checked(
        cls,
        rows: U64,
        *,
        ids: U64 | None,
        keys: list[str] | list[bytes] | None,
        weights: F32 | None,
        recipe: Any,
        features: I64 | None = None,
        sketches: U8 | None = None,
    ) -> Batch:
        """A batch of arrays that a kernel has made, or another batch, and of names that were
        checked: a document takes a third of the time that `Batch` takes to look at all of them."""
        batch = cls.__new__(cls)
        batch._rows, batch.ids, batch.keys, batch.weights = rows, ids, keys, weights
        batch.recipe, batch.skipped = recipe, ()
        batch.features, batch.sketches = features, sketches
        return batch

    @property
    def fingerprints(self) -> U64:
        """uint64 (n,) for 64 bits, else (n, W)."""
        return self._rows[:, 0] if self._rows.shape[1] == 1 else self._rows

    @property
    def rows(self) -> U64:
        """The fingerprints as uint64 (n, W), also for 64 bits."""
        return self._rows

    @property
    def bits(self) -> int:
        """Width b of a fingerprint."""
        return int(self._rows.shape[1]) * 64

    @property
    def sketch_bits(self) -> int:
        """Width of a sketch; 0 if there is none."""
        return 0 if self.sketches is None else 64 * (int(self.sketches.shape[1]) // 8)

    @property
    def sketch(self) -> U64 | None:
        """uint64 (n, S): the sketches, copied. None if there are none."""
        return None if self.sketches is None else words_of(self.sketches)

    @property
    def sizes(self) -> I64 | None:
        """int64 (n,): how many distinct features each document has, within 4.5 %, 0 where that is
        not known. None without sketches, beside which an index stores them."""
        return None if self.sketches is None else numbers_of(sizes_of(self.sketches))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        named = "keys" if self.keys is not None else "ids" if self.ids is not None else "no ids"
        weighted = "with" if self.weights is not None else "without"
        sketched = f" and {self.sketch_bits} of sketch" if self.sketches is not None else ""
        return f"<Batch of {len(self)} x {self.bits} bits{sketched}, {named}, {weighted} weights>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns `id` or `key`, `fingerprint`, `weights`, `features`, `sketch` and, with it,
        `size`, if given."""
        named: dict[str, arrow.Column] = {}
        if self.ids is not None:
            named["id"] = self.ids
        if self.keys is not None:
            named["key"] = self.keys
        named["fingerprint"] = self.fingerprints
        if self.weights is not None:
            named["weights"] = self.weights
        if self.features is not None:
            named["features"] = self.features
        sketch, sizes = self.sketch, self.sizes
        if sketch is not None and sizes is not None:
            named |= {"sketch": sketch, "size": sizes}
        return arrow.stream(named)

    def without_weights(self) -> Batch:
        """The same documents; queries of them are answered exactly."""
        batch = Batch.checked(
            self._rows, ids=self.ids, keys=self.keys, weights=None, recipe=self.recipe,
            features=self.features, sketches=self.sketches,
        )
        batch.skipped = self.skipped
        return batch

    def take(self, rows: NDArray[np.integer]) -> Batch:
        """The batch of the given rows, by their numbers from 0 on, in the given order.

        Raises InvalidOption unless they are such numbers.
        """
        given, expected = np.asarray(rows), f"integers from 0 to {len(self) - 1}, in one dimension"
        if given.size:
            require(given.dtype.kind in "iu", "rows", str(given.dtype), expected)
            for number in (int(given.min()), int(given.max())):
                require(0 <= number < len(self), "rows", number, expected)
        require(given.ndim == 1, "rows", given.shape, expected)
        rows = given.astype(np.intp, copy=False)
        keys: Any = None if self.keys is None else picked(self.keys, rows.tolist())
        return Batch.checked(
            self._rows[rows],
            ids=None if self.ids is None else self.ids[rows],
            keys=keys,
            weights=None if self.weights is None else self.weights[rows],
            recipe=self.recipe,
            features=None if self.features is None else self.features[rows],
            sketches=None if self.sketches is None else np.take(self.sketches, rows, axis=0),
        )
