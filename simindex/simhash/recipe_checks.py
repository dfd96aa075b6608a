"""What a recipe may be given: its options, and the features of documents; checked once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from simindex.arrays import F64, I64, U64
from simindex.checks import is_int, require
from simindex.errors import InvalidBatch, InvalidOption
from simindex.options import MAX_BITS
from simindex.records.arguments import as_array
from simindex.simhash import words
from simindex.simhash.features import MOST_NGRAM, TOKENIZER, UNITS
from simindex.simhash.projection import PROJECTIONS
from simindex.simhash.weighting import WEIGHTINGS, IdfTable

DEFAULT_NGRAM: dict[str, int | tuple[int, ...]] = {"word": (1, 2), "char": 5}
"""n-gram sizes by unit, if none are given."""

MOST_WEIGHT = 1e37
"""Most that a caller's weights of one document may add up to: sums are kept as float32."""


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a recipe, by name, in the one form that is stored and compared.

    Sizes ascend, stop words are folded and sorted, a stemmer has its version. Raises InvalidOption,
    with the option, what was found and what is expected, and MissingExtra.
    """
    options = {
        name: int(value) if isinstance(value, np.integer) else value
        for name, value in options.items()
    }
    bits, unit = options["bits"], options["unit"]
    require(
        is_int(bits) and 64 <= bits <= MAX_BITS and bits % 64 == 0,
        "bits", bits, f"a multiple of 64 from 64 to {MAX_BITS}",
    )
    require(isinstance(unit, str) and unit in UNITS, "unit", unit, '"word" or "char"')
    weighting, projection = options["weighting"], options["projection"]
    require(
        isinstance(weighting, str) and weighting in WEIGHTINGS,
        "weighting", weighting,
        "one of " + ", ".join(name for name in WEIGHTINGS if name != "given")
        + ', or "given" for weights of your own, which Recipe.batch_features takes',
    )
    require(
        isinstance(projection, str) and projection in PROJECTIONS,
        "projection", projection, "one of " + ", ".join(PROJECTIONS),
    )
    seed, min_features, idf = options["seed"], options["min_features"], options["idf"]
    require(is_int(seed) and 0 <= seed < 1 << 32, "seed", seed, "from 0 to 2**32 - 1")
    require(
        is_int(min_features) and 1 <= min_features < 1 << 31,
        "min_features", min_features, "from 1 to 2**31 - 1",
    )
    require(
        idf is None or (isinstance(idf, IdfTable) and WEIGHTINGS[weighting].idf),
        "idf", idf, "None, or with a weighting by idf what fit learned",
    )
    require(
        options["h"] is None or (is_int(options["h"]) and 0 <= options["h"] <= bits),
        "h", options["h"], f"a whole number from 0 to {bits}",
    )
    sketch_bits = options["sketch_bits"]
    require(
        is_int(sketch_bits) and 0 <= sketch_bits <= MAX_BITS and sketch_bits % 64 == 0,
        "sketch_bits", sketch_bits, f"0, or a multiple of 64, at most {MAX_BITS}",
    )
    language = options["stop_words"]
    require(
        not isinstance(language, str) or language not in words.PAIRED_LANGUAGES
        or not is_int(options["tokenizer"]),
        "stop_words", language,
        "words, together with a tokenizer of the language: without one its words are pairs of "
        "letters here, which no list of stop words knows",
    )
    chosen = {
        "ngram": _ngram(
            DEFAULT_NGRAM[unit] if options["ngram"] is None else options["ngram"], MOST_NGRAM[unit]
        ),
        "stop_words": _stop_words(options["stop_words"]),
        "stemmer": _stemmer(options["stemmer"]),
    }
    tokenizer = options["tokenizer"]
    require(
        (is_int(tokenizer) and tokenizer == TOKENIZER)
        or (words.storable(tokenizer) and ":" in tokenizer) or callable(tokenizer),
        "tokenizer", tokenizer, "a function that gives the words of a text",
    )
    if callable(tokenizer):
        words.name_of(tokenizer)
    require(
        unit == "word"
        or not (chosen["stop_words"] or chosen["stemmer"] or not is_int(tokenizer)),
        "unit", unit, '"word", for a tokenizer, stop words or stems are about words',
    )
    return {**options, **chosen}


def _ngram(given: Any, most: int) -> int | tuple[int, ...]:
    several = isinstance(given, (tuple, list, range, set, frozenset))
    sizes = tuple(int(size) if isinstance(size, np.integer) else size for size in given) if (
        several
    ) else (given,)
    require(
        len(sizes) > 0 and all(is_int(size) and 1 <= size <= most for size in sizes),
        "ngram", given, f"a number from 1 to {most}, or a tuple of such numbers",
    )
    ascending = tuple(sorted(set(sizes)))
    return ascending if len(ascending) > 1 else ascending[0]


def _stop_words(given: Any) -> tuple[str, ...]:
    listed: Any = words.language_stop_words(given) if isinstance(given, str) else given
    try:
        listed = tuple(listed) if isinstance(listed, Iterable) else None
    except TypeError:  # an array of no dimension says that it is one
        listed = None
    require(
        listed is not None and all(map(words.storable, listed)),
        "stop_words", given, "words, or the code of a language",
    )
    return tuple(sorted({word.casefold() for word in listed}))


def _stemmer(given: Any) -> str | None:
    if given is None:
        return None
    require(words.storable(given), "stemmer", given, "the name of an algorithm of Snowball")
    if "/" not in given:
        return words.stemmer_name(given)
    require(
        words.STORED_STEMMER.fullmatch(given) is not None,
        "stemmer", given, 'the name of an algorithm of Snowball, such as "english"',
    )
    return str(given)


def require_weighing(weighting: str, *, fitted: bool) -> None:
    """Raises InvalidOption where the features of a text have no weights yet, or by the caller."""
    if weighting == "given":
        raise InvalidOption(
            'weighting="given" takes the weights from the caller',
            remedy="use batch_features, or give another weighting for texts", option="weighting",
            found="given",
        )
    require_fitted(weighting, fitted=fitted)


def require_fitted(weighting: str, *, fitted: bool) -> None:
    """Raises InvalidOption where a recipe has not learned the idf that it weighs by."""
    if not fitted:
        raise InvalidOption(
            "the recipe has not learned an idf yet",
            remedy='call recipe = recipe.fit(texts), or give weighting="tf"',
            option="weighting", found=weighting,
        )


def require_learned_alike(source: str, expected: str) -> None:
    """Raises InvalidOption for an idf of features that the recipe does not make, by whose hashes
    it would know none of its own."""
    if source != expected:
        raise InvalidOption(
            "the idf was learned with another unit, ngram, seed, tokenizer, stop words or stemmer",
            remedy="give idf=None with them, and fit the recipe again", option="idf", found=source,
            expected=expected,
        )


def checked_features(
    hashes: Any, offsets: Any, weights: Any
) -> tuple[U64, I64, F64 | None]:
    """Features of some documents as arrays; InvalidBatch names what does not fit."""
    hashes, offsets = as_array(hashes, "hashes"), as_array(offsets, "offsets")
    whole = hashes.dtype.kind == "u" or (
        hashes.dtype.kind == "i" and bool((hashes >= 0).all())
    )
    if hashes.ndim != 1 or not (whole or not len(hashes)):
        raise InvalidBatch(
            f"hashes are {hashes.dtype} of shape {hashes.shape}",
            remedy="give uint64 (f,)", found=str(hashes.dtype), expected="uint64 (f,)",
        )
    if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
        raise InvalidBatch(
            f"offsets are {offsets.dtype} of shape {offsets.shape}",
            remedy="give whole numbers (n + 1,), document i having the features offsets[i] to "
            "offsets[i + 1]", found=offsets.shape, expected="(n + 1,)",
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
            f"weights are {given.dtype} of shape {given.shape}",
            remedy=f"give numbers, one for each of the {len(hashes)} hashes", found=given.shape,
            expected=hashes.shape,
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


def _refuse_heavy(offsets: I64, weights: F64) -> None:
    for document in range(len(offsets) - 1):
        with np.errstate(over="ignore"):
            total = float(weights[offsets[document] : offsets[document + 1]].sum())
        if total > MOST_WEIGHT:
            raise InvalidBatch(
                f"the weights of document {document} have the sum {total:g}, which is too large",
                remedy=f"scale them, so that the sum is at most {MOST_WEIGHT:g}", document=document,
                found=total, expected=MOST_WEIGHT,
            )
