"""F1 of all pairs by a similarity of 0.9, with sketches of some widths and without one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import simindex
from reproduce.radii import Kind
from simindex import IndexOptions, Recipe

WIDTHS = (0, 256, 512, 1024)
"""Bits of a sketch."""

SHARES = (0.7, 0.85, 0.95)
"""Of the pairs at the similarity that are to be candidates: within 11, 12 and 14 of 64 bits."""

SIMILARITY = 0.9


def pairs(texts: list[str], recipe: Recipe, share: float) -> NDArray[np.int64]:
    """The pairs that queries for all texts find in an index of them, (p, 2), a < b."""
    batch = recipe.batch(texts, ids=np.arange(len(texts)))
    options = IndexOptions(recipe=recipe)
    with tempfile.TemporaryDirectory(prefix="simindex-sketches-") as folder:
        with simindex.open(Path(folder) / "index.sim", "n", options=options) as index:
            index.append(batch)
            index.commit()
            found = index.query(batch, similarity=SIMILARITY, recall=share)
        assert batch.ids is not None
        asked, other = batch.ids[found.query].astype(np.int64), found.id.astype(np.int64)
    return np.unique(np.sort(np.stack([asked, other], axis=1)[asked != other], axis=1), axis=0)


def by_width(texts: list[str]) -> list[tuple[int, float, NDArray[np.int64]]]:
    """(width, share, pairs) of each sketch and share."""
    recipe = Kind.fit(texts)
    return [
        (width, share, pairs(texts, replace(recipe, sketch_bits=width), share))
        for width in WIDTHS for share in SHARES
    ]
