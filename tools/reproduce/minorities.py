"""Collections of several languages: does an idf of mostly English pages hurt the others?

idf is learned from English documents and those of every other language together, at several shares.
English documents are counted several times, as if there were more like them. Then each language is
measured alone: F1 over all of its pairs, and pairs of a low cosine within the radius.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproduce import pages, truth
from simindex import Recipe, find_all

ENGLISH = "peps"
OF_ITS_SCRIPT = {"de": "gesetze"}
"""Collections in other languages of the script of English."""

ENGLISH_DOCUMENTS, MINORITY_DOCUMENTS, OF_A_PATH = 1500, 450, 6
SHARES = (0.70, 0.97)
"""Of English documents; the scripts share the rest evenly."""

RADIUS_BEYOND = 2
"""Strangers are counted within the radius, and within so many bits more."""

WEIGHTINGS = ("tfidf", "sublinear-tfidf")


def fitted(weighting: str, english: list[str], others: list[str], share: float) -> Recipe:
    """Single words, with the idf of `others` and of so many English documents."""
    recipe = Recipe(ngram=1, weighting=weighting)  # type: ignore[arg-type]
    counted = recipe.document_frequencies(others)
    if share:
        most = recipe.document_frequencies(english)
        times = max(1, round(share / (1 - share) * len(others) / len(english)))
        counted.add(
            most.hashes, most.counts * np.uint32(times), times * most.documents
        )
    return recipe.fit(counted)


def table(data: Path, seed: int) -> str:
    """F1 and strangers of each script by the share of English, in Markdown."""

    def sample(directory: Path, source: str, most: int) -> list[str]:
        found = list(pages.documents(directory, source))
        return [one.text for one in pages.sampled(found, most, OF_A_PATH, seed)]

    english = sample(data, ENGLISH, ENGLISH_DOCUMENTS)
    scripts = {
        source: sample(data / "scripts", source, MINORITY_DOCUMENTS)
        for source in pages.sources(data / "scripts")
    }
    for language, source in OF_ITS_SCRIPT.items():
        scripts[language] = sample(data, source, MINORITY_DOCUMENTS)
    together = [text for texts in scripts.values() for text in texts]
    lines = []
    for weighting in WEIGHTINGS:
        mixed = {share: fitted(weighting, english, together, share) for share in SHARES}
        heads = ["alone", *(f"{share:.0%} English" for share in SHARES)]
        lines += [
            f"single words, {weighting}: F1 (strangers in a million within h, within h + "
            f"{RADIUS_BEYOND})", "", "| script | " + " | ".join(heads) + " |",
            "|---|" + "---:|" * len(heads),
        ]
        for source, texts in scripts.items():
            cosines = truth.cosines(texts)
            recipes = [fitted(weighting, english, texts, 0), *mixed.values()]
            cells = [_cell(recipe, texts, cosines) for recipe in recipes]
            lines.append(f"| {source} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(recipe: Recipe, texts: list[str], cosines: truth.Cosines) -> str:
    rows, h = recipe.batch(texts).rows, recipe.h
    assert h is not None
    found = find_all(rows, h=h)
    right = float((cosines[found.a, found.b] >= 0.9).sum())
    due = float(np.triu(cosines >= 0.9, 1).sum())
    far = float(np.triu(cosines < 0.6, 1).sum())
    more = find_all(rows, h=h + RADIUS_BEYOND)
    strangers = [1e6 * float((cosines[one.a, one.b] < 0.6).sum()) / far for one in (found, more)]
    return f"{2 * right / (len(found.a) + due):.2f} ({strangers[0]:.0f}, {strangers[1]:.0f})"
