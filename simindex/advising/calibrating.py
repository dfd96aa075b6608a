"""A recommendation by a sample of one's own documents: what a radius misses, and what it takes in.

    sample -> fingerprints, sketches, weights of features     of each recipe
           -> pairs that stand in it, edited copies           exact cosine, distances
           -> misses and strangers over h, width, cosine      -> the cheapest that reaches both
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from simindex.advising.asked import MOST_SAMPLE, PRECISION, RECALL, SAMPLE, SIMILARITY
from simindex.advising.edits import EDITS, count_words
from simindex.advising.intervals import Shares, rates, wilson
from simindex.advising.standing import Standing, between, standing
from simindex.advising.vectors import vectors_of
from simindex.bits.similarity import candidate_radius, share_within, threshold
from simindex.checks import is_int, require, require_share
from simindex.errors import InvalidBatch
from simindex.records.advice import (
    Advice,
    CalibrationReport,
    EditRates,
    PairRates,
    Rate,
    SimilarityRates,
)
from simindex.simhash.alignment import WORD
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import WEIGHTINGS

if TYPE_CHECKING:
    from simindex.arrays import F32, U16, Bools
    from simindex.records.batch import Batch

WIDTHS = (0, 512, 1024)
"""Of sketches that are compared."""

WIDEST = 1024

EDITED = 400
"""Documents of which each edit makes a copy."""

EQUAL = 1 - 1e-9
"""From this cosine on two texts have the same features: they say nothing of misses."""

LENGTHS: tuple[tuple[int, int | None], ...] = ((1, 50), (50, 200), (200, 1000), (1000, None))
"""Classes of documents by their words."""

STEPS = (0.0, -0.01, -0.02, -0.03, -0.04, -0.06, 0.01, 0.02)
"""Similarities that are asked for in place of the one that is meant: just below it fewer are
missed."""

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
        Tables of rates, and `advice`.

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
    require(is_int(sample) and 2 <= sample <= MOST_SAMPLE, "sample", sample, "2 to 100,000")
    require(is_int(seed) and 0 <= seed < 1 << 32, "seed", seed, "0 to 2**32 - 1")
    given = sampled(documents, sample, seed)
    recipes = _recipes(Recipe() if recipe is None else recipe, others, given)
    asked = _Asked(similarity, recall, precision, seed, threads)
    texts, skipped = _with_fingerprint(recipes[0], given, threads)
    copies = list(_copies(texts, seed))
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
    if isinstance(documents, (str, bytes)):
        raise InvalidBatch(
            "one text is given, and a sample has several", remedy="give an iterable of texts",
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


@dataclass(frozen=True, slots=True)
class _Asked:
    similarity: float
    recall: float
    precision: float
    seed: int
    threads: int | None


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
            f"{len(kept)} of {len(texts)} documents has a fingerprint, and it takes two to compare",
            remedy="give more documents with words", found=len(kept), expected=2,
        )
    return kept, len(skipped)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A document and an edited copy of it."""

    place: int
    text: str
    edit: str
    strength: float
    words: int


def _copies(texts: list[str], seed: int) -> Iterator[_Copy]:
    random = Random(seed)
    chosen = random.sample(range(len(texts)), min(EDITED, len(texts)))
    lengths = {place: count_words(texts[place]) for place in chosen}
    lenders = random.sample(range(len(texts)), min(200, len(texts)))
    words = [found.group() for place in lenders for found in WORD.finditer(texts[place][:20_000])]
    for name, (edit, strengths) in EDITS.items():
        for strength in strengths:
            for place, length in lengths.items():
                copy = edit(texts[place], strength, words, random)
                yield _Copy(place, copy, name, strength, length)


@dataclass(frozen=True, slots=True)
class _Tables:
    pairs: list[PairRates]
    by_similarity: list[SimilarityRates]
    edits: list[EditRates]
    advice: Advice | None
    own: Advice | None


@dataclass(frozen=True, slots=True)
class _Choice:
    """A threshold: a radius, and with a sketch a similarity that is asked for."""

    sketch_bits: int
    h: int
    asked: float

    def kept(self, sketched: Mapping[int, U16]) -> Bools | None:
        """Which candidates their sketches keep; None if no sketch decides."""
        if not self.sketch_bits:
            return None
        kept: Bools = sketched[self.sketch_bits] <= threshold(self.asked, self.sketch_bits)
        return kept


class _Sample:
    """The pairs of a sample by one recipe."""

    def __init__(self, pairs: Standing, documents: int, asked: _Asked) -> None:
        self.pairs, self._documents, self._asked = pairs, documents, asked
        self.similar = pairs.cosine >= asked.similarity
        self.judged = self.similar & (pairs.cosine < EQUAL)
        self._within: tuple[tuple[int, int], F32] | None = None

    def found(self, choice: _Choice) -> F32:
        """In which share of fingerprints a choice finds each pair.

        The fingerprint and the parts of the wide sketch that the choice does not compare are drawn
        alike, so their mean tells with less chance what happens to other documents.
        """
        kept = choice.kept(self.pairs.sketched)
        within = self._candidates(choice)
        return within if kept is None else within * kept

    def _candidates(self, choice: _Choice) -> F32:
        """In which share of fingerprints each pair is within the radius; the last is kept."""
        of = choice.sketch_bits, choice.h
        if self._within is None or self._within[0] != of:
            distances = [self.pairs.distance]
            distances += [some for at, some in self.pairs.parts if at >= choice.sketch_bits]
            found = np.zeros(len(self.pairs.a), np.float32)
            for distance in distances:
                found += distance <= choice.h
            self._within = of, found / np.float32(len(distances))
        return self._within[1]

    def shares(self, choice: _Choice) -> Shares:
        """Of misses and of strangers."""
        found = self.found(choice)
        far = 0 if choice.sketch_bits else int(self.pairs.others[: choice.h + 1].sum())
        return [(1 - found, self.judged, 0.0), (~self.similar, found, float(far))]

    def quickly(self, choice: _Choice) -> tuple[float, float]:
        """Misses and strangers without intervals."""
        values = []
        for hits, among, more in self.shares(choice):
            counted = self.pairs.weight * among
            total = float(counted.sum()) + more
            hit = float((counted * hits).sum()) + more
            values.append(hit / total if total else 0.0)
        return values[0], values[1]

    def rates(self, shares: Shares) -> list[Rate]:
        """With intervals."""
        pairs = self.pairs
        return rates(
            shares, pairs.a, pairs.b, pairs.weight, documents=self._documents,
            seed=self._asked.seed,
        )


def features_of(recipe: Recipe) -> str:
    """What texts are compared by, and of how many bits a fingerprint is."""
    sizes = "+".join(map(str, recipe.sizes))
    return f"{recipe.bits} bits of {recipe.unit} {sizes}, {recipe.weighting}"


def _tables(
    recipe: Recipe, texts: list[str], copies: list[_Copy], asked: _Asked, told: Told
) -> _Tables:
    wide = replace(recipe, sketch_bits=max(WIDEST, recipe.sketch_bits), min_features=1)
    batch = wide.batch(texts, threads=asked.threads)
    kept = np.delete(np.arange(len(texts)), [skip.position for skip in batch.skipped])
    texts = [texts[place] for place in kept.tolist()]
    row_of = {place: row for row, place in enumerate(kept.tolist())}
    copies = [replace(copy, place=row_of[copy.place]) for copy in copies if copy.place in row_of]
    widths = tuple(sorted({*WIDTHS, recipe.sketch_bits} - {0}))
    rows, sketch = _columns(batch)
    found = standing(rows, sketch, vectors_of(wide, texts), widths, asked.seed, told)
    of = _Sample(found, len(texts), asked)
    advice, own = _advice(recipe, of, asked, (0, *widths), len(texts))
    name = features_of(recipe)
    most = candidate_radius(asked.similarity, 0.99, recipe.bits)
    choices = [
        _Choice(width, h, asked.similarity) for width in (0, *widths)
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
    choice = _Choice(0, recipe.h, asked.similarity)
    if best is not None:
        choice = _Choice(best.sketch_bits, best.h, best.ask_similarity or asked.similarity)
    return _Tables(
        pairs, _by_similarity(name, of, choice), _edits(name, wide, texts, batch, copies, choice),
        advice, own,
    )


def _columns(batch: Batch) -> tuple[Any, Any]:
    assert batch.sketch is not None
    return batch.rows.reshape(len(batch), -1), batch.sketch


def _f1(misses: Rate, strangers: Rate) -> float | None:
    if misses.value is None or strangers.value is None:
        return None
    recall, precision = 1 - misses.value, 1 - strangers.value
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def _advice(
    recipe: Recipe, of: _Sample, asked: _Asked, widths: Sequence[int], documents: int
) -> tuple[Advice | None, Advice | None]:
    """The best of all widths, and the best of the recipe's own."""
    if not of.judged.any():
        return None, None
    best = {width: _best(recipe, of, asked, width) for width in widths}
    reaching = [width for width in widths if best[width][0]]
    width = reaching[0] if reaching else max(widths, key=lambda one: best[one][1])
    made = {}
    for one in {width, recipe.sketch_bits}:
        reached, _, choice = best[one]
        misses, strangers = of.rates(of.shares(choice))
        share = share_within(choice.h, choice.asked, recipe.bits)
        made[one] = Advice(
            asked.similarity, asked.recall, asked.precision, features_of(recipe), one, choice.h,
            choice.asked if one else None, floor(1000 * share) / 1000 if one else None,
            misses.value or 0.0, misses.low, misses.high, strangers.value or 0.0, strangers.low,
            strangers.high, reached, documents, int(of.judged.sum()),
            replace(recipe, sketch_bits=one).identity,
        )
    return made[width], made[recipe.sketch_bits]


def _best(
    recipe: Recipe, of: _Sample, asked: _Asked, width: int
) -> tuple[bool, float, _Choice]:
    """Of one width: whether recall and precision are reached, F1, and by what.

    Where both are reached, the least radius does; else that of the best F1.
    """
    best: tuple[bool, float, _Choice] | None = None
    for h in range(recipe.bits // 3 + 1):
        for step in STEPS if width else (0.0,):
            at = min(1.0, round(asked.similarity + step, 6))
            choice = _Choice(width, h, at)
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


def _by_similarity(name: str, of: _Sample, choice: _Choice) -> list[SimilarityRates]:
    cosine, found = of.pairs.cosine, of.found(choice)
    ends = list(pairwise(COSINES))
    shares: Shares = [(found, (cosine >= low) & (cosine < high), 0.0) for low, high in ends]
    return [
        SimilarityRates(name, choice.sketch_bits, choice.h, low, min(high, 1.0), rate)
        for (low, high), rate in zip(ends, of.rates(shares), strict=True)
    ]


def _edits(
    name: str, recipe: Recipe, texts: list[str], batch: Batch, copies: list[_Copy],
    choice: _Choice,
) -> list[EditRates]:
    edited = recipe.batch([copy.text for copy in copies])
    gone = {skip.position for skip in edited.skipped}
    copies = [copy for place, copy in enumerate(copies) if place not in gone]
    if not copies:
        return []
    places = np.array([copy.place for copy in copies])
    rows, sketch = _columns(batch)
    new_rows, new_sketch = _columns(edited)
    width = choice.sketch_bits // 64
    sketched = {
        choice.sketch_bits: between(sketch[places, :width], new_sketch[:, :width])
    }
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
