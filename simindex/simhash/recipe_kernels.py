"""A recipe's way through the kernels: portions of texts in, a batch out.

    texts -> [kernel: units, n-grams, hashes, weights, sums]              the usual way, in one call
    texts -> units (words.py: tokenizer, stop words, stems) -> [kernel]   when words are not plain
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, F64, I64, U32, U64
from simindex.errors import InvalidBatch, InvalidOption
from simindex.records.arguments import as_ids, as_keys, check_one_kind
from simindex.records.batch import Batch, Skipped
from simindex.records.sketches import packed, size_codes
from simindex.resources.threads import thread_count
from simindex.simhash import words
from simindex.simhash.feature_columns import FeatureColumn
from simindex.simhash.features import (
    COUNTED_CHARACTERS,
    SPLIT_CHARACTERS,
    THREADED_TEXTS,
    UNITS,
    Column,
    Portion,
    portions,
    refuse_invalid,
    refuse_untext,
)
from simindex.simhash.projection import PROJECTIONS, normal_quantiles
from simindex.simhash.weighting import COUNTINGS, STEPS_PER_UNIT, WEIGHTINGS, sublinear_steps
from simindex.values import dataclass

TAKEN_FEATURES, TAKEN_TEXTS = 1 << 18, 1 << 24
"""Features, or texts, from which counts are taken out of the kernel's tables. A table of 32 bytes a
feature is to fit a cache; and most features of a portion are also those of the one before, so that
taking each portion would sort them again and again."""

_NO_BUCKETS = np.empty((0, 8), dtype=np.uint64)
_NO_STEPS = np.empty(0, dtype=np.uint32)
_NO_QUANTILES = np.empty(0, dtype=np.int16)

_Calls = tuple[Any, Any, Any]
"""Of the kernel, for texts, for columns and for units."""


@dataclass(frozen=True)
class Simhashes:
    """Fingerprints (n, b / 64) followed by sketches, in the same rows, sums W (n, b), and distinct
    features (n,) of some documents.

    Features are counted exactly up to the recipe's `min_features`, or as far as was asked for; all
    of them with sketches.
    """

    bits: U64
    weights: F32
    features: I64


class RecipeKernels:
    """What a `Recipe` asks of the kernels; immutable, for any number of threads."""

    def __init__(self, recipe: Any) -> None:
        tokenizer, idf, projection = recipe.tokenizer, recipe.idf, recipe.projection
        if isinstance(tokenizer, str):
            raise InvalidOption(
                f"the recipe needs the tokenizer {tokenizer!r}, of which an index stores only the "
                "name",
                remedy="give the function with recipe.using(tokenizer)", option="tokenizer",
                found=tokenizer, expected="recipe.using(tokenizer)",
            )
        counting = WEIGHTINGS[recipe.weighting].counting
        self._bits: int = recipe.bits
        self._sketch_bits: int = recipe.sketch_bits
        self._tokenizer: int | words.Tokenizer = tokenizer
        self._stop_words = frozenset(recipe.stop_words)
        self._stems = None if recipe.stemmer is None else words.stems_of(recipe.stemmer)
        self._least: int = recipe.min_features
        self._arguments = (
            UNITS.index(recipe.unit),
            True,  # letters of scripts without spaces come in pairs
            np.array(recipe.sizes, dtype=np.uint8),
            recipe.seed,
            COUNTINGS.index(counting),
            idf is not None,
            _NO_BUCKETS if idf is None else idf.buckets,
            STEPS_PER_UNIT if idf is None else idf.unseen,
            sublinear_steps() if counting == "sublinear" else _NO_STEPS,
            PROJECTIONS.index(projection),
            normal_quantiles() if projection == "gaussian" else _NO_QUANTILES,
            recipe.bits // 64,
        )
        self.kernel: _native.TextRecipe = self._counting(self._least)

    def _counting(self, features: int) -> _native.TextRecipe:
        """The kernel that counts so many distinct features of a document."""
        return _native.TextRecipe(
            *self._arguments, features, sketch_words=self._sketch_bits // 64
        )

    def simhashes(
        self, texts: Iterable[Any], threads: int | None, count_features: int = 0
    ) -> Simhashes:
        """Fingerprints of all texts, taken in portions; features counted up to a number."""
        kernel = self.kernel
        if count_features > self._least:
            kernel = self._counting(count_features)
        if isinstance(texts, FeatureColumn):
            return Simhashes(*texts.simhashes(self.kernel, kernel, threads))
        calls = kernel.texts, kernel.column, kernel.units
        most = None if self.plain else SPLIT_CHARACTERS
        answers = self._answers(texts, threads, calls, most)
        made = [Simhashes(*arrays) for arrays, _ in answers]
        return made[0] if len(made) == 1 else _joined(made, self._bits, self._sketch_bits)

    def simhash(self, text: Any) -> Simhashes:
        """The fingerprint of one text."""
        if not self.plain:
            return self.simhashes([text], 1)
        *arrays, invalid = self._called(self.kernel.texts, [text], 0, 1)
        refuse_invalid(invalid, 0)
        return Simhashes(*arrays)

    def frequencies(
        self, texts: Iterable[Any], threads: int | None
    ) -> Iterator[tuple[U64, U32, int]]:
        """Of some portions of the texts: their features, their counts, and how many texts they are.

        Features ascend; the count of one is in how many of the texts it occurs.
        """
        tables = _native.DocumentTables()
        counted = 0
        for number in self.count_into(tables, texts, threads):
            counted += number
            if self.is_full(tables, counted):
                yield *tables.take(), counted
                counted = 0
        if counted:
            yield *tables.take(), counted

    def count_into(
        self, tables: _native.DocumentTables, texts: Iterable[Any], threads: int | None
    ) -> Iterator[int]:
        """Counts the features of texts in the kernel's tables; how many texts each portion had."""
        kernel = self.kernel
        calls = (
            partial(kernel.count_in_texts, tables), partial(kernel.count_in_column, tables),
            partial(kernel.count_in_units, tables),
        )
        most = COUNTED_CHARACTERS if self.plain else SPLIT_CHARACTERS
        return (number for _, number in self._answers(texts, threads, calls, most))

    @staticmethod
    def is_full(tables: _native.DocumentTables, texts: int, calls: int = 1) -> bool:
        """Whether counts are to be taken out of tables with so many texts; as many tables are in
        memory as there are `calls` at once."""
        return tables.features * calls >= TAKEN_FEATURES or texts >= TAKEN_TEXTS

    def _answers(
        self, texts: Iterable[Any], threads: int | None, calls: _Calls, most: int | None
    ) -> Iterator[tuple[Any, int]]:
        """What a kernel makes of each portion, and how many texts the portion has."""
        first = 0
        for portion in portions(texts, most):
            n = thread_count(threads, len(portion), worth=THREADED_TEXTS)
            yield self._answer(portion, first, n, calls), len(portion)
            first += len(portion)

    def _answer(self, portion: Portion, first: int, threads: int, calls: _Calls) -> Any:
        """Of a portion, whose first text has the position `first` in errors."""
        of_texts, of_column, of_units = calls
        if self.plain:
            call = of_column if isinstance(portion, Column) else of_texts
            *arrays, invalid = self._called(call, portion, first, threads)
        else:
            units = self._units(portion, first)
            *arrays, invalid = of_units(
                units.data, units.starts, units.ends, units.offsets, threads
            )
        refuse_invalid(invalid, first)
        return arrays

    def hashed(
        self, hashes: U64, offsets: I64, weights: F64 | None, threads: int | None
    ) -> Simhashes:
        """Fingerprints of features that are hashes already, with or without weights."""
        n = thread_count(threads, len(offsets) - 1, worth=THREADED_TEXTS)
        if weights is None:
            made = self.kernel.hashes(hashes, offsets, n)
        else:
            made = self.kernel.given(hashes, weights, offsets, n)
        return Simhashes(*made[:3])

    def features(self, texts: list[Any]) -> tuple[U64, U32, I64]:
        """Hashes and counts of the features of plain texts, and where those of each begin."""
        *arrays, invalid = self._called(self.kernel.features, texts, 0)
        refuse_invalid(invalid, 0)
        hashes, counts, starts = arrays
        return hashes, counts, starts

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
            *arrays, invalid = self._called(self.kernel.split, listed, first)
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

    @staticmethod
    def batched(
        made: Simhashes, recipe: Any, ids: Any, keys: Any, *, counted: int = 0
    ) -> Batch:
        """The batch of a recipe's fingerprints, without texts of fewer than its `min_features`.

        It has the numbers of features where they were `counted` up to some number.

        Raises InvalidBatch where ids or keys are not one for each text.
        """
        features, least, words = made.features, recipe.min_features, recipe.bits // 64
        _check_length("ids", ids, len(features))
        _check_length("keys", keys, len(features))
        check_one_kind(ids, keys)
        sketched = recipe.sketch_bits > 0
        batch = Batch.checked(
            np.ascontiguousarray(made.bits[:, :words]) if sketched else made.bits,
            ids=None if ids is None else as_ids(ids, len(features)),
            keys=None if keys is None else as_keys(keys, len(features)),
            weights=made.weights,
            recipe=recipe,
            features=np.minimum(features, counted) if counted else None,
            sketches=packed(made.bits[:, words:], size_codes(features)) if sketched else None,
        )
        kept = features >= least
        if kept.all():
            return batch
        skipped = tuple(
            Skipped(position, _name(batch, position), _reason(int(features[position]), least))
            for position in np.flatnonzero(~kept).tolist()
        )
        batch = batch.take(np.flatnonzero(kept))
        batch.skipped = skipped
        return batch


def kernel_of_arrivals(recipe: Any) -> _native.TextRecipe | None:
    """What makes the rows of texts that come one at a time; None where words are not plain, or the
    recipe cannot weigh them."""
    if recipe.weighting == "given" or not recipe.fitted or isinstance(recipe.tokenizer, str):
        return None
    kernels: RecipeKernels = recipe._kernels
    return kernels.kernel if kernels.plain else None


def _joined(made: list[Simhashes], bits: int, sketch_bits: int) -> Simhashes:
    words = (bits + sketch_bits) // 64
    return Simhashes(
        np.concatenate([np.empty((0, words), np.uint64), *(m.bits for m in made)]),
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


def _reason(features: int, least: int) -> str:
    return f"too few features: {features} < {least}" if features else "empty"


def _check_length(name: str, values: Any, n: int) -> None:
    if values is not None and hasattr(values, "__len__") and len(values) != n:
        raise InvalidBatch(
            f"{n} texts but {len(values)} {name}",
            remedy="give one for each text", found=len(values), expected=n,
        )


def _name(batch: Batch, position: int) -> Any:
    if batch.keys is not None:
        return batch.keys[position]
    return None if batch.ids is None else int(batch.ids[position])
