"""Collections of several languages: does an idf of mostly other pages hurt the few of a language?

    scripts    five scripts and German in mostly English pages: idf of all of them together
    one script a minority and a majority that are written in the same letters, both ways

idf is learned from the minority and the majority together, at several shares: documents of the
majority are counted several times, as if there were more like them. Then the minority is measured
alone: F1 over all of its pairs, and pairs of a low cosine within the radius.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from reproduce import pages, truth
from simindex import Recipe, find_all

ENGLISH = "peps"
ONE_SCRIPT = (("gesetze", "peps"), ("peps", "gesetze"), ("rust-book", "gesetze"))
"""Minority and majority: German in English, English in German."""

MAJORITY_DOCUMENTS, MINORITY_DOCUMENTS, OF_A_PATH = 1500, 450, 6
SHARES = (0.50, 0.70, 0.90, 0.97)
"""Of the documents of the majority; where there are several minorities, they share the rest."""

RADIUS_BEYOND = 2
"""Strangers are counted within the radius, and within so many bits more."""

WEIGHTINGS = ("balanced-tfidf", "tfidf", "sublinear-tfidf")


def fitted(weighting: str, majority: list[str], others: list[str], share: float) -> Recipe:
    """Single words, with the idf of `others` and of so many documents of the majority."""
    recipe = Recipe(ngram=1, weighting=weighting)  # type: ignore[arg-type]
    counted = recipe.document_frequencies(others)
    if share:
        most = recipe.document_frequencies(majority)
        times = share / (1 - share) * len(others) / len(majority)
        counts = np.maximum(1, np.round(most.counts * times))
        documents = max(round(times * most.documents), int(counts.max()))
        counted.add(most.hashes, counts.astype(np.uint32), documents)
    return recipe.fit(counted)


def table(data: Path, seed: int) -> str:
    """F1 and strangers of each minority by the share of the majority, in Markdown."""
    scripts = pages.sources(data / "scripts")

    @cache
    def sample(source: str, most: int) -> list[str]:
        found = list(pages.documents(data / "scripts" if source in scripts else data, source))
        return [one.text for one in pages.sampled(found, most, OF_A_PATH, seed)]

    @cache
    def cosines(source: str) -> truth.Cosines:
        return truth.cosines(sample(source, MINORITY_DOCUMENTS))

    together = [text for source in scripts for text in sample(source, MINORITY_DOCUMENTS)]
    lines: list[str] = []
    for weighting in WEIGHTINGS:
        lines += [
            f"single words, {weighting}: F1 (strangers in a million within h, within h + "
            f"{RADIUS_BEYOND})", "",
            "| minority | majority | alone | "
            + " | ".join(f"{share:.0%}" for share in SHARES) + " |",
            "|---|---|" + "---:|" * (1 + len(SHARES)),
        ]
        mixes: list[tuple[Sequence[str], str, list[str]]] = [(scripts, ENGLISH, together)]
        mixes += [([one], other, sample(one, MINORITY_DOCUMENTS)) for one, other in ONE_SCRIPT]
        for minorities, majority, others in mixes:
            most = sample(majority, MAJORITY_DOCUMENTS)
            mixed = [fitted(weighting, most, others, share) for share in SHARES]
            for source in minorities:
                texts = sample(source, MINORITY_DOCUMENTS)
                recipes = [fitted(weighting, [], texts, 0), *mixed]
                cells = [_cell(recipe, texts, cosines(source)) for recipe in recipes]
                lines.append(f"| {source} | {majority} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(recipe: Recipe, texts: list[str], cosines: truth.Cosines) -> str:
    rows, h = recipe.batch(texts).rows, recipe.h
    found = find_all(rows, h=h)
    right = float((cosines[found.a, found.b] >= 0.9).sum())
    due = float(np.triu(cosines >= 0.9, 1).sum())
    far = float(np.triu(cosines < 0.6, 1).sum())
    more = find_all(rows, h=h + RADIUS_BEYOND)
    strangers = [1e6 * float((cosines[one.a, one.b] < 0.6).sum()) / far for one in (found, more)]
    return f"{2 * right / (len(found.a) + due):.2f} ({strangers[0]:.0f}, {strangers[1]:.0f})"
