"""A recipe's way through the kernels: portions of texts in, arrays out.

    texts -> [kernel: units, n-grams, hashes, weights, sums]              the usual way, in one call
    texts -> units (words.py: tokenizer, stop words, stems) -> [kernel]   when words are not plain
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import F32, U64
from simindex.errors import InvalidBatch, InvalidOption
from simindex.records.batch import as_array
from simindex.simhash import words
from simindex.simhash.features import (
    THREADED_TEXTS,
    UNITS,
    Column,
    Portion,
    Unit,
    portions,
    refuse_invalid,
    refuse_untext,
)
from simindex.simhash.idf import IdfTable
from simindex.simhash.projection import PROJECTIONS, ProjectionName, normal_quantiles
from simindex.simhash.weighting import COUNTINGS, STEPS_PER_UNIT, Weighting, sublinear_steps
from simindex.threads import thread_count

MOST_WEIGHT = 1e37
"""Most that a caller's weights of one document may add up to: sums are kept as float32."""

_NO_BUCKETS = np.empty((0, 8), dtype=np.uint64)
_NO_STEPS = np.empty(0, dtype=np.uint32)
_NO_QUANTILES = np.empty(0, dtype=np.int16)


@dataclass(frozen=True)
class Simhashes:
    """Fingerprints (n, b / 64), sums W (n, b), and distinct features (n,) of some documents.

    Features are counted exactly up to the recipe's `min_features`.
    """

    fingerprints: U64
    weights: F32
    features: NDArray[np.int64]


class Reader:
    """What a recipe asks of the kernels; immutable, for any number of threads."""

    def __init__(
        self,
        *,
        bits: int,
        unit: Unit,
        sizes: tuple[int, ...],
        weighting: Weighting,
        seed: int,
        min_features: int,
        idf: IdfTable | None,
        projection: ProjectionName,
        tokenizer: int | words.Tokenizer,
        stop_words: frozenset[str],
        stemmer: str | None,
    ) -> None:
        self._bits = bits
        self._tokenizer = tokenizer
        self._stop_words = stop_words
        self._stems = None if stemmer is None else words.stems_of(stemmer)
        self._kernel = _native.TextRecipe(
            UNITS.index(unit),
            True,  # letters of scripts without spaces come in pairs
            np.array(sizes, dtype=np.uint8),
            seed,
            COUNTINGS.index(weighting.counting),
            idf is not None,
            _NO_BUCKETS if idf is None else idf.buckets,
            STEPS_PER_UNIT if idf is None else idf.unseen,
            sublinear_steps() if weighting.counting == "sublinear" else _NO_STEPS,
            PROJECTIONS.index(projection),
            normal_quantiles() if projection == "gaussian" else _NO_QUANTILES,
            bits // 64,
            min_features,
        )

    def all_simhashes(self, texts: Iterable[Any], threads: int | None) -> Simhashes:
        """Fingerprints of all texts, taken in portions."""
        made, first = [], 0
        for portion in portions(texts, small=not self.plain):
            n = thread_count(threads, len(portion), worth=THREADED_TEXTS)
            made.append(self.simhashes(portion, first, n))
            first += len(portion)
        return made[0] if len(made) == 1 else _joined(made, self._bits)

    def all_frequencies(
        self, texts: Iterable[Any], threads: int | None
    ) -> Iterator[tuple[U64, NDArray[np.uint32], int]]:
        """Of each portion of the texts, its `frequencies` and how many texts it has."""
        first = 0
        for portion in portions(texts, small=True):
            n = thread_count(threads, len(portion), worth=THREADED_TEXTS)
            yield *self.frequencies(portion, first, n), len(portion)
            first += len(portion)

    def simhashes(self, portion: Portion, first: int, threads: int) -> Simhashes:
        """Fingerprints of a portion, whose first text has the position `first` in errors."""
        if self.plain:
            call = self._kernel.column if isinstance(portion, Column) else self._kernel.texts
            made = self._called(call, portion, first, threads)
        else:
            units = self._units(portion, first)
            made = self._kernel.units(
                units.data, units.starts, units.ends, units.offsets, threads
            )
        refuse_invalid(made[3], first)
        return Simhashes(*made[:3])

    def frequencies(
        self, portion: Portion, first: int, threads: int
    ) -> tuple[U64, NDArray[np.uint32]]:
        """Distinct features of a portion, ascending, and in how many of its texts each occurs."""
        if self.plain:
            kernel = self._kernel
            column = isinstance(portion, Column)
            call = kernel.column_frequencies if column else kernel.text_frequencies
            hashes, counts, invalid = self._called(call, portion, first, threads)
            refuse_invalid(invalid, first)
        else:
            units = self._units(portion, first)
            hashes, counts, _ = self._kernel.unit_frequencies(
                units.data, units.starts, units.ends, units.offsets, threads
            )
        return hashes, counts

    def hashed(
        self, hashes: U64, offsets: NDArray[np.int64], weights: NDArray[np.float64] | None,
        threads: int,
    ) -> Simhashes:
        """Fingerprints of features that are hashes already, with or without weights."""
        if weights is None:
            made = self._kernel.hashes(hashes, offsets, threads)
        else:
            made = self._kernel.given(hashes, weights, offsets, threads)
        return Simhashes(*made[:3])

    def units(self, portion: list[Any]) -> list[list[str]]:
        """The units of each text as str, after stop words and stems."""
        return words.as_lists(self._units(portion, 0))

    @property
    def plain(self) -> bool:
        """Whether words are those of the tokenizer, so that kernels need nothing of Python."""
        return (
            isinstance(self._tokenizer, int) and not self._stop_words and self._stems is None
        )

    def _units(self, portion: Portion, first: int) -> words.Units:
        listed = portion.listed() if isinstance(portion, Column) else portion
        if isinstance(self._tokenizer, int):
            *arrays, invalid = self._called(self._kernel.split, listed, first)
            refuse_invalid(invalid, first)
            units = words.Units(*arrays)
            if self.plain:
                return units
            chosen = words.as_lists(units)
        else:
            chosen = words.tokenized(self._tokenizer, _decoded(listed, first), first)
        if self._stop_words:
            chosen = [[word for word in some if word not in self._stop_words] for some in chosen]
        if self._stems is not None:
            chosen = [self._stems(some) for some in chosen]
        return words.as_units(chosen)

    def _called(self, call: Any, portion: Portion, first: int, *threads: int) -> Any:
        if isinstance(portion, Column):
            return call(portion.data, portion.offsets, *threads)
        try:
            return call(portion, *threads)
        except TypeError:
            refuse_untext(portion, first)
            raise


def _joined(made: list[Simhashes], bits: int) -> Simhashes:
    return Simhashes(
        np.concatenate([np.empty((0, bits // 64), np.uint64), *(m.fingerprints for m in made)]),
        np.concatenate([np.empty((0, bits), np.float32), *(m.weights for m in made)]),
        np.concatenate([np.empty(0, np.int64), *(m.features for m in made)]),
    )


def _decoded(texts: list[Any], first: int) -> list[str]:
    refuse_untext(texts, first)
    decoded = []
    for position, text in enumerate(texts):
        try:
            decoded.append(text if isinstance(text, str) else text.decode("utf-8"))
        except UnicodeDecodeError as error:
            refuse_invalid((position, error.start), first)
    return decoded


def require_known(tokenizer: int | str | words.Tokenizer) -> int | words.Tokenizer:
    """The tokenizer itself; InvalidOption if only its name is known."""
    if isinstance(tokenizer, str):
        raise InvalidOption(
            f"the recipe's words come from the tokenizer {tokenizer!r}, which an index stores by "
            "name only: give it back with recipe.using(tokenizer)",
            option="tokenizer", found=tokenizer, expected="recipe.using(tokenizer)",
        )
    return tokenizer


def checked_features(
    hashes: Any, offsets: Any, weights: Any
) -> tuple[U64, NDArray[np.int64], NDArray[np.float64] | None]:
    """Features of some documents as arrays; InvalidBatch names what does not fit."""
    hashes, offsets = as_array(hashes, "hashes"), as_array(offsets, "offsets")
    whole = hashes.dtype.kind == "u" or (
        hashes.dtype.kind == "i" and bool((hashes >= 0).all())
    )
    if hashes.ndim != 1 or not (whole or not len(hashes)):
        raise InvalidBatch(
            f"hashes are {hashes.dtype} of shape {hashes.shape}: give uint64 (f,)",
            found=str(hashes.dtype), expected="uint64 (f,)",
        )
    if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
        raise InvalidBatch(
            f"offsets are {offsets.dtype} of shape {offsets.shape}: give whole numbers (n + 1,), "
            "document i having the features offsets[i] to offsets[i + 1]",
            found=offsets.shape, expected="(n + 1,)",
        )
    ascending = offsets.astype(np.int64)
    steps = np.flatnonzero(ascending[1:] < ascending[:-1])
    if ascending[0] != 0 or ascending[-1] != len(hashes) or len(steps):
        row = int(steps[0]) + 1 if len(steps) else 0 if ascending[0] else len(ascending) - 1
        raise InvalidBatch(
            f"offset {row} is {offsets[row]}: offsets must ascend from 0 to the number of hashes, "
            f"{len(hashes)}",
            row=row, found=int(offsets[row]),
        )
    hashes = np.ascontiguousarray(hashes, dtype=np.uint64)
    if weights is None:
        return hashes, ascending, None
    given = as_array(weights, "weights")
    if given.shape != hashes.shape or given.dtype.kind not in "fiu":
        raise InvalidBatch(
            f"weights are {given.dtype} of shape {given.shape}: give numbers, one for each of the "
            f"{len(hashes)} hashes",
            found=given.shape, expected=hashes.shape,
        )
    numbers = np.ascontiguousarray(given, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(bad):
        document = int(np.searchsorted(ascending, bad[0], side="right")) - 1
        raise InvalidBatch(
            f"weight {bad[0]} (document {document}) is {numbers[bad[0]]}: weights must be finite "
            "and not negative",
            row=int(bad[0]), document=document, found=float(numbers[bad[0]]),
        )
    if len(numbers) and float(numbers.max()) > MOST_WEIGHT / len(numbers):
        _refuse_heavy(ascending, numbers)
    return hashes, ascending, numbers


def _refuse_heavy(offsets: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
    for document in range(len(offsets) - 1):
        with np.errstate(over="ignore"):
            total = float(weights[offsets[document] : offsets[document + 1]].sum())
        if total > MOST_WEIGHT:
            raise InvalidBatch(
                f"the weights of document {document} add up to {total:g}: scale them down, to "
                f"{MOST_WEIGHT:g} at most",
                document=document, found=total, expected=MOST_WEIGHT,
            )
