"""Short texts: how many edits of one word a recipe finds, and from which length on it is enough.

    news -> slices of consecutive words -> the same with one word replaced by another
            idf learned from these slices

`labelled/articles_2500.jsonl.gz` has the news: real sentences, shuffled. Strangers are pairs of
slices.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reproduce import truth
from simindex import Recipe

SLICES = 2000
MOST_WORDS = 2000
"""Of a slice."""
STRANGERS = 1500
"""Slices of which all pairs are compared."""

WIDEST = 256
"""Bits that are made; the first 64 and 128 are the fingerprints of those widths."""
WIDTHS = (64, 128, 256)

WORDS = (6, 10, 15, 20, 30, 40, 60, 80, 100, 150)
SHOWN = ((64, 3), (64, 7), (64, 10), (64, 13), (128, 20), (128, 26), (256, 40), (256, 52))
"""Widths and radii of the table for people."""

FEATURES = (*range(10, 60, 5), *range(60, 120, 10), *range(120, 321, 20))
"""Distinct features at which the share of edits is measured."""
ENOUGH = 0.9
RADII = range(3, 17)
"""Of each 64 bits."""

Rows = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Kind:
    """A recipe without its width."""

    ngram: int | tuple[int, ...]
    weighting: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The n-gram sizes."""
        return self.ngram if isinstance(self.ngram, tuple) else (self.ngram,)

    def recipe(self, texts: list[str]) -> Recipe:
        """The recipe, with idf of the texts if it has any."""
        made = Recipe(bits=WIDEST, ngram=self.ngram, weighting=self.weighting)  # type: ignore[arg-type]
        return made if made.fitted else made.fit(texts)


DEFAULT, UNLEARNED, BEFORE = Kind(1, "balanced-tfidf"), Kind((1, 2), "sublinear"), Kind(3, "tf")
KINDS = (
    DEFAULT, Kind(1, "tfidf"), Kind(1, "idf"), Kind(1, "binary"), UNLEARNED, Kind(2, "tf"), BEFORE
)


def news(data: Path) -> list[str]:
    """The words of all articles, one after the other."""
    with gzip.open(data / "labelled/articles_2500.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [word for line in lines for word in truth.words(json.loads(line)["text"])]


def cut(stream: list[str], enough: Callable[[list[str]], int]) -> list[list[str]]:
    """SLICES slices at even steps, each as long as `enough` says of the words that follow."""
    step = (len(stream) - MOST_WORDS) // SLICES
    slices = []
    for start in range(0, step * SLICES, step):
        words = stream[start : start + MOST_WORDS]
        slices.append(words[: enough(words)])
    return slices


def exactly(number: int) -> Callable[[list[str]], int]:
    """So many words."""
    return lambda _words: number


def with_features(number: int, sizes: tuple[int, ...]) -> Callable[[list[str]], int]:
    """As few words as have so many different n-grams."""

    def enough(words: list[str]) -> int:
        seen: set[tuple[str, ...]] = set()
        for end in range(1, len(words) + 1):
            seen.update(tuple(words[end - n : end]) for n in sizes if end >= n)
            if len(seen) >= number:
                return end
        return len(words)

    return enough


def edited(
    slices: list[list[str]], vocabulary: list[str], rng: np.random.Generator
) -> list[str]:
    """The slices, one word of each replaced by another."""
    made = []
    for words in slices:
        place = int(rng.integers(0, len(words)))
        other = words[place]
        while other == words[place]:
            other = vocabulary[int(rng.integers(0, len(vocabulary)))]
        made.append(" ".join([*words[:place], other, *words[place + 1 :]]))
    return made


@dataclass(slots=True)
class Found:
    """Fingerprints of slices and of their edits, WIDEST bits."""

    before: Rows
    after: Rows

    def share(self, bits: int, h: int) -> float:
        """Share of the edits within h."""
        return float((distances(self.before, self.after, bits) <= h).mean())

    def strangers(self, bits: int, h: int) -> float:
        """Pairs of different slices within h, in a million."""
        first, second = np.triu_indices(min(STRANGERS, len(self.before)), 1)
        near = distances(self.before[first], self.before[second], bits) <= h
        return 1e6 * float(near.mean())


def distances(one: Rows, other: Rows, bits: int) -> NDArray[np.int64]:
    """Bits in which rows differ, of the first `bits`."""
    words = slice(0, bits // 64)
    apart = np.bitwise_count(one[:, words] ^ other[:, words])
    return np.asarray(apart.sum(axis=1), dtype=np.int64)


def compared(
    kind: Kind, slices: list[list[str]], vocabulary: list[str], rng: np.random.Generator
) -> Found:
    """The fingerprints of a recipe."""
    texts = [" ".join(words) for words in slices]
    recipe = kind.recipe(texts)
    return Found(recipe.batch(texts).rows, recipe.batch(edited(slices, vocabulary, rng)).rows)


def shortest(kind: Kind, stream: list[str], seed: int) -> dict[int, list[int]]:
    """Of each width the rows of `simhash.shortest_text`: features for radius 3, 4, 5 ... of 64.

    The features from which on the recipe finds ENOUGH of the edits; the most that were measured
    where these are too few. A row ends at the first radius that the fewest are enough for.
    """
    rng = np.random.default_rng(seed)
    found = {
        number: compared(kind, cut(stream, with_features(number, kind.sizes)), stream, rng)
        for number in FEATURES
    }
    made: dict[int, list[int]] = {}
    for bits in WIDTHS:
        row = made.setdefault(bits, [])
        for h in RADII:
            short = [
                number for number in FEATURES if found[number].share(bits, h * bits // 64) < ENOUGH
            ]
            longer = [number for number in FEATURES if number > max(short, default=0)]
            row.append(longer[0] if longer else FEATURES[-1])
            if row[-1] == FEATURES[0]:
                break
    return made


def tables(data: Path, seed: int) -> str:
    """Both tables in Markdown: shares by words, and the shortest texts as they are stored."""
    stream = news(data)
    heads = [f"{bits} bits, {h}" for bits, h in SHOWN]
    lines = []
    for name, kind in (("default", DEFAULT), ("`Recipe()`", UNLEARNED), ("before", BEFORE)):
        rng = np.random.default_rng(seed)
        lines += [
            f"{name}: share of one-word edits found (strangers in a million pairs)", "",
            "| words | " + " | ".join(heads) + " |", "|---:|" + "---:|" * len(heads),
        ]
        for number in WORDS:
            one = compared(kind, cut(stream, exactly(number)), stream, rng)
            cells = [
                f"{one.share(bits, h):.2f} ({one.strangers(bits, h):.0f})" for bits, h in SHOWN
            ]
            lines.append(f"| {number} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += ["Shortest text in distinct features, by width and radius", "", "```python"]
    for kind in KINDS:
        lines.append(f'    ("word", {kind.sizes}, "{kind.weighting}"): {{')
        for bits, row in shortest(kind, stream, seed).items():
            lines.append(f"        {bits}: {tuple(row)},")
        lines.append("    },")
    return "\n".join([*lines, "```"])
