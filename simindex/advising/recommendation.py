"""A recommendation by a sample of one's own documents: what a radius misses, and what it takes in.

    sample -> fingerprints, sketches, weights of features     of each recipe
           -> pairs that stand in it, edited copies           exact cosine, distances
           -> misses and strangers over h, width, cosine      -> the cheapest that reaches both
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import floor, nextafter
from random import Random
from typing import Any

import numpy as np

from simindex.advising.copies import Copy, copies_of, edit_rates
from simindex.advising.goals import (
    LEAST_PAIRS,
    MOST_SAMPLE,
    PRECISION,
    RECALL,
    SAMPLE,
    SIMILARITY,
    Asked,
)
from simindex.advising.intervals import Shares
from simindex.advising.judged_pairs import EQUAL, Choice, Judged
from simindex.advising.sample_pairs import columns, standing
from simindex.bits.cosine import candidate_radius, share_within
from simindex.checks import is_whole, require, require_share
from simindex.errors import InvalidBatch
from simindex.records.advice import (
    Advice,
    CalibrationReport,
    EditRates,
    PairRates,
    Rate,
    SimilarityRates,
)
from simindex.simhash.recipe import Recipe
from simindex.simhash.vectors import vectors_of
from simindex.simhash.weighting import WEIGHTINGS
from simindex.values import dataclass

WIDTHS = (0, 512, 1024)
"""Of sketches that are compared."""

WIDEST = 1024

STEPS = (0.0, -0.01, -0.02, -0.03, -0.04, -0.06, 0.01, 0.02)
"""Similarities that are asked for in place of the one that is meant: just below it fewer are
missed."""

LEAST_SHARE = 0.9
"""Of the pairs at the similarity asked for, within the radius before a sketch. Queries with weights
are answered by that share, not by a radius: of pairs that are more similar they lose more than a
radius does, by 0.04 of 0.63, by 0.015 of 0.85 and by 0.009 of 0.9."""

COSINES = (0.7, 0.8, 0.85, 0.9, 0.95, 0.99, EQUAL)
"""Ranges of the table by cosine."""

Told = Callable[[int, int], None]


def calibrate(
    documents: Iterable[str | bytes],
    *,
    recipe: Recipe | None = None,
    others: Sequence[Recipe] | None = None,
    similarity: float = SIMILARITY,
    recall: float = RECALL,
    precision: float = PRECISION,
    sample: int = SAMPLE,
    seed: int = 0,
    threads: int | None = None,
    progress: Told | None = None,
) -> CalibrationReport:
    """Measures misses and strangers on a sample of documents, and recommends a threshold.

    Parameters
    ----------
    documents : iterable of str or bytes
        Texts. If there are more than `sample`, as many are drawn.
    recipe : Recipe, optional
        How texts become fingerprints. Default: ``Recipe()``. One that learns idf and has not
        learned yet learns from the sample.
    others : list of Recipe, optional
        Other features to compare. Default: single words with a balanced idf, or ``Recipe()``.
    similarity : float
        Pairs of this exact cosine and above are near-duplicates, from 0.7 to 1.
    recall, precision : float
        What the recommended threshold should reach.
    sample : int
        At most so many documents, up to 100,000. The time grows with their square.
    seed : int
        Of the sample, the edits and the intervals.
    progress : function (done, all), optional
        Called from time to time.

    Returns
    -------
    CalibrationReport
        Tables of rates, and `advice`: None if the sample has fewer than 20 similar pairs whose
        features differ.

    Raises
    ------
    InvalidOption
        If an option is out of range, or a recipe cannot make fingerprints of texts.
    InvalidBatch
        If a text is neither str nor UTF-8, or fewer than two texts have a fingerprint.

    Notes
    -----
    A pair of equal features is found by any radius, so it does not count for misses. A uniform
    sample has the pairs of all documents in their proportions. Rates are those of pairs: a page
    with many copies counts by the square of their number.
    """
    started = time.perf_counter()
    similarity = require_share(similarity, "similarity")
    require(similarity >= 0.7, "similarity", similarity, "0.7 to 1")
    recall, precision = require_share(recall, "recall"), require_share(precision, "precision")
    require(is_whole(sample) and 2 <= sample <= MOST_SAMPLE, "sample", sample, "2 to 100,000")
    require(is_whole(seed) and 0 <= seed < 1 << 32, "seed", seed, "0 to 2**32 - 1")
    sample, seed = int(sample), int(seed)
    given = sampled(documents, sample, seed)
    recipes = _recipes(Recipe() if recipe is None else recipe, others, given)
    asked = Asked(similarity, recall, precision, seed, threads)
    texts, skipped = _with_fingerprint(recipes[0], given, threads)
    copies = list(copies_of(texts, seed))
    tables: list[_Tables] = []
    for place, one in enumerate(recipes):
        def told(done: int, of: int, place: int = place) -> None:
            if progress is not None:
                progress(place * of + done, len(recipes) * of)

        tables.append(_tables(one, texts, copies, asked, told))
    first = tables[0]
    return CalibrationReport(
        len(texts), skipped, similarity,
        tuple(row for table in tables for row in table.pairs),
        tuple(row for table in tables for row in table.by_similarity),
        tuple(row for table in tables for row in table.edits),
        first.advice, first.own, time.perf_counter() - started,
    )


def sampled(documents: Iterable[str | bytes], sample: int, seed: int) -> list[str]:
    """A uniform sample of documents, in no order; all of them if they are few."""
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
        one = "one text" if isinstance(documents, (str, bytes)) else type(documents).__name__
        raise InvalidBatch(
            f"{one} is given, and a sample has several texts", remedy="give an iterable of texts",
        )
    random = Random(seed)
    kept: list[str | bytes] = []
    for number, text in enumerate(documents):
        if len(kept) < sample:
            kept.append(text)
        elif (place := random.randrange(number + 1)) < sample:
            kept[place] = text
    return [_decoded(text, place) for place, text in enumerate(kept)]


def _decoded(text: Any, place: int) -> str:
    if isinstance(text, str):
        return text
    try:
        return bytes(text).decode("utf-8") if isinstance(text, bytes) else _refuse(text, place)
    except UnicodeDecodeError as error:
        raise InvalidBatch(
            f"text {place} of the sample is not UTF-8 at byte {error.start}", row=place,
            offset=error.start,
        ) from error


def _refuse(text: Any, place: int) -> str:
    kind = type(text).__name__
    raise InvalidBatch(
        f"text {place} of the sample is a {kind}", remedy="give str, or bytes of UTF-8", row=place,
        found=kind,
    )


def _recipes(own: Recipe, others: Sequence[Recipe] | None, texts: list[str]) -> list[Recipe]:
    """The user's own first, each once, and with idf."""
    if others is None:
        single = own.weighting == "balanced-tfidf"
        others = [Recipe() if single else Recipe(ngram=1, weighting="balanced-tfidf")]
    fitted = [
        one if one.fitted or not WEIGHTINGS[one.weighting].idf else one.fit(texts)
        for one in (own, *others)
    ] if texts else [own]
    seen: dict[str, Recipe] = {}
    for one in fitted:
        seen.setdefault(replace(one, sketch_bits=0).identity, one)
    return list(seen.values())


def _with_fingerprint(
    recipe: Recipe, texts: list[str], threads: int | None
) -> tuple[list[str], int]:
    skipped = {skip.position for skip in recipe.batch(texts, threads=threads).skipped}
    kept = [text for place, text in enumerate(texts) if place not in skipped]
    if len(kept) < 2:
        raise InvalidBatch(
            f"{len(kept)} of {len(texts)} document{'s' * (len(texts) != 1)} "
            f"{'has' if 1 in (len(kept), len(texts)) else 'have'} a fingerprint, and it takes two "
            "to compare",
            remedy="give more documents with words", found=len(kept), expected=2,
        )
    return kept, len(skipped)


@dataclass(frozen=True, slots=True)
class _Tables:
    pairs: list[PairRates]
    by_similarity: list[SimilarityRates]
    edits: list[EditRates]
    advice: Advice | None
    own: Advice | None


def features_of(recipe: Recipe) -> str:
    """What texts are compared by, and of how many bits a fingerprint is."""
    sizes = "+".join(map(str, recipe.sizes))
    return f"{recipe.bits} bits of {recipe.unit} {sizes}, {recipe.weighting}"


def _tables(
    recipe: Recipe, texts: list[str], copies: list[Copy], asked: Asked, told: Told
) -> _Tables:
    wide = replace(recipe, sketch_bits=max(WIDEST, recipe.sketch_bits), min_features=1)
    batch = wide.batch(texts, threads=asked.threads)
    kept = np.delete(np.arange(len(texts)), [skip.position for skip in batch.skipped])
    texts = [texts[place] for place in kept.tolist()]
    row_of = {place: row for row, place in enumerate(kept.tolist())}
    copies = [replace(copy, place=row_of[copy.place]) for copy in copies if copy.place in row_of]
    widths = tuple(sorted({*WIDTHS, recipe.sketch_bits} - {0}))
    rows, sketch = columns(batch)
    found = standing(rows, sketch, vectors_of(wide, texts), widths, asked.seed, told)
    of = Judged(found, len(texts), asked)
    advice, own = _advice(recipe, of, asked, (0, *widths), len(texts))
    name = features_of(recipe)
    most = candidate_radius(asked.similarity, 0.99, recipe.bits)
    choices = [
        Choice(width, h, asked.similarity) for width in (0, *widths)
        for h in range(0, most + 1, max(1, recipe.bits // 64))
    ]
    measured = of.rates([share for choice in choices for share in of.shares(choice)])
    pairs = [
        PairRates(name, choice.sketch_bits, choice.h, misses, strangers, _f1(misses, strangers))
        for choice, misses, strangers in zip(
            choices, measured[::2], measured[1::2], strict=True
        )
    ]
    best = own or advice
    choice = Choice(0, recipe.h, asked.similarity)
    if best is not None:
        choice = Choice(best.sketch_bits, best.h, best.ask_similarity or asked.similarity)
    return _Tables(
        pairs, _by_similarity(name, of, choice),
        edit_rates(name, wide, texts, batch, copies, choice), advice, own,
    )


def _f1(misses: Rate, strangers: Rate) -> float | None:
    if misses.value is None or strangers.value is None:
        return None
    recall, precision = 1 - misses.value, 1 - strangers.value
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def _advice(
    recipe: Recipe, of: Judged, asked: Asked, widths: Sequence[int], documents: int
) -> tuple[Advice | None, Advice | None]:
    """The best of all widths, and the best of the recipe's own."""
    if of.judged.sum() < LEAST_PAIRS:
        return None, None
    best = {width: _best(recipe, of, asked, width) for width in widths}
    reaching = [width for width in widths if best[width][0]]
    width = reaching[0] if reaching else max(widths, key=lambda one: best[one][1])
    made = {}
    for one in {width, recipe.sketch_bits}:
        reached, _, choice = best[one]
        misses, strangers = of.rates(of.shares(choice))
        share = share_for(choice.asked, choice.h, recipe.bits) if one else None
        made[one] = Advice(
            asked.similarity, asked.recall, asked.precision, features_of(recipe), one, choice.h,
            choice.asked if one else None, share,
            misses.value or 0.0, misses.low, misses.high, strangers.value or 0.0, strangers.low,
            strangers.high, reached, documents, int(of.judged.sum()),
            replace(recipe, sketch_bits=one).identity,
        )
    return made[width], made[recipe.sketch_bits]


def share_for(similarity: float, h: int, bits: int) -> float:
    """A recall below 1 that makes h the radius of candidates, in as few decimals as do."""
    within = share_within(h, similarity, bits)
    for decimals in range(3, 17):
        share = floor(within * 10.0**decimals) / 10.0**decimals
        if 0 < share < 1 and candidate_radius(similarity, share, bits) == h:
            return share
    return min(max(within, nextafter(0.0, 1.0)), nextafter(1.0, 0.0))


def _best(
    recipe: Recipe, of: Judged, asked: Asked, width: int
) -> tuple[bool, float, Choice]:
    """Of one width: whether recall and precision are reached, F1, and by what.

    Where both are reached, the least radius does; else that of the best F1.
    """
    best: tuple[bool, float, Choice] | None = None
    for h in range(recipe.bits // 3 + 1):
        for step in STEPS if width else (0.0,):
            at = min(1.0, round(asked.similarity + step, 6))
            if width and share_within(h, at, recipe.bits) < LEAST_SHARE:
                continue
            choice = Choice(width, h, at)
            misses, strangers = of.quickly(choice)
            recall, precision = 1 - misses, 1 - strangers
            reached = recall >= asked.recall and precision >= asked.precision
            f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
            if best is None or (reached, f1) > best[:2]:
                best = (reached, f1, choice)
        if best is not None and best[0]:
            break
    assert best is not None
    return best


def _by_similarity(name: str, of: Judged, choice: Choice) -> list[SimilarityRates]:
    cosine, found = of.pairs.cosine, of.found(choice)
    ends = list(pairwise(COSINES))
    shares: Shares = [(found, (cosine >= low) & (cosine < high), 0.0) for low, high in ends]
    return [
        SimilarityRates(name, choice.sketch_bits, choice.h, low, min(high, 1.0), rate)
        for (low, high), rate in zip(ends, of.rates(shares), strict=True)
    ]
