"""Pages that share a template: how many pairs of one site come near each other by it alone.

Made up of real news (see `lengths`): SITES sites of PAGES pages of WORDS words. A share of a page
is the site's template, the same on each of its pages; the rest is text that occurs nowhere else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproduce import lengths
from simindex import Recipe

SITES, PAGES, WORDS = 20, 50, 600
SHARES = (0.5, 0.8, 0.95)
RADII = (3, 6, 7, 8, 10)

RECIPES: dict[str, Recipe] = {
    "default": Recipe(ngram=1, weighting="balanced-tfidf"),
    "`Recipe()`": Recipe(),
    "words, idf": Recipe(ngram=1, weighting="idf"),
    "before": Recipe(ngram=3, weighting="tf"),
}


def pages(share: float, stream: list[str]) -> list[str]:
    """The pages of all sites, site by site; template first."""
    words = iter(stream)

    def taken(number: int) -> list[str]:
        return [next(words) for _ in range(number)]

    fixed = round(share * WORDS)
    made = []
    for _ in range(SITES):
        template = taken(fixed)
        made += [" ".join(template + taken(WORDS - fixed)) for _ in range(PAGES)]
    return made


def near(recipe: Recipe, texts: list[str]) -> dict[int, float]:
    """Share of the pairs of one site within each radius."""
    rows = recipe.batch(texts).rows.reshape(SITES, PAGES)
    first, second = np.triu_indices(PAGES, 1)
    apart = np.bitwise_count(rows[:, first] ^ rows[:, second])
    return {h: float((apart <= h).mean()) for h in RADII}


def table(data: Path) -> str:
    """Shares by template and recipe, in Markdown."""
    lines = [
        "Share of the pairs of one site within h, by how much of a page is template", "",
        "| template | recipe | " + " | ".join(f"h = {h}" for h in RADII) + " |",
        "|---|---|" + "---:|" * len(RADII),
    ]
    stream = lengths.news(data)
    for share in SHARES:
        texts = pages(share, stream)
        for name, recipe in RECIPES.items():
            found = near(recipe if recipe.fitted else recipe.fit(texts), texts)
            cells = " | ".join(f"{one:.4f}".rstrip("0").rstrip(".") for one in found.values())
            lines.append(f"| {share:.0%} | {name} | {cells} |")
    return "\n".join(lines)
