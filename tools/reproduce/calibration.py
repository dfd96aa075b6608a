"""Whether what `calibrate` predicts holds for documents that it did not see.

    python tools/reproduce/calibration.py DATA...

Each collection is a file of JSON lines, also .gz or .zst. Its documents are divided at random into
two halves: one is calibrated on, and an index of the other is asked, as the advice says, for each
of its documents. Prints the predicted miss rate with its interval and the measured one; also of
halves that have no page (field `path`) in common.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import simindex
from simindex.advising.judged_pairs import EQUAL
from simindex.advising.recommendation import calibrate
from simindex.advising.sample_pairs import between
from simindex.bits.cosine import threshold
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read
from simindex.simhash.vectors import vectors_of

WIDE, CERTAIN = 2048, 0.12
"""Pairs whose exact cosine is computed: those of the similarity less this, by a wide sketch."""


def documents_of(path: Path, most: int, seed: int) -> list[tuple[str, str]]:
    """Text and page of some documents, in any order."""
    found = [
        (one.text, str((one.fields or {}).get("path", one.key)))
        for one in read([str(path)], ReadOptions(all_fields=True))
    ]
    Random(seed).shuffle(found)
    return found[:most]


def halves(found: list[tuple[str, str]], by: str, seed: int) -> tuple[list[str], list[str]]:
    """Texts to calibrate on, and the others."""
    random = Random(seed + 1)
    side: dict[Any, bool] = {}
    parts: tuple[list[str], list[str]] = ([], [])
    for place, (text, page) in enumerate(found):
        first = side.setdefault(place if by == "document" else page, random.random() < 0.5)
        parts[0 if first else 1].append(text)
    return parts


def measured(texts: list[str], recipe: simindex.Recipe, advice: Any) -> tuple[float, float, int]:
    """Misses and strangers of an index, and how many similar pairs there are."""
    wide = replace(recipe, sketch_bits=WIDE)
    batch = wide.batch(texts)
    kept = np.delete(np.arange(len(texts)), [skip.position for skip in batch.skipped])
    texts = [texts[place] for place in kept.tolist()]
    similar: set[tuple[int, int]] = set()
    equal: set[tuple[int, int]] = set()
    found: set[tuple[int, int]] = set()
    vectors, sketch = vectors_of(recipe, texts), batch.sketch
    assert sketch is not None
    limit = threshold(advice.similarity - CERTAIN, WIDE)
    near = [
        np.flatnonzero(between(sketch[row], sketch[row + 1 :]) <= limit) + row + 1
        for row in range(len(texts) - 1)
    ]
    a, b = np.repeat(np.arange(len(near)), [len(some) for some in near]), np.concatenate(near)
    cosines = vectors.cosines(a, b)
    for pairs, least in ((similar, advice.similarity), (equal, EQUAL)):
        chosen = cosines >= least
        pairs.update(zip(a[chosen].tolist(), b[chosen].tolist(), strict=True))
    own = recipe.batch(texts, ids=np.arange(len(texts)))
    with tempfile.TemporaryDirectory() as folder:
        options = simindex.IndexOptions(recipe=recipe)
        with simindex.open(Path(folder) / "i.sim", "n", options=options) as index:
            index.append(own)
            index.commit()
            for part in index.query_stream(own, **advice.arguments):
                asked = zip(part.query.tolist(), part.id.tolist(), strict=True)
                found.update((one, other) for one, other in asked if one < other)
    judged = similar - equal
    misses = len(judged - found) / len(judged) if judged else 0.0
    strangers = len(found - similar) / len(found) if found else 0.0
    return misses, strangers, len(judged)


def rows(paths: list[Path], most: int, seed: int) -> Iterator[tuple[str, ...]]:
    """The table."""
    for path in paths:
        found = documents_of(path, most, seed)
        for by in ("document", "page"):
            seen, unseen = halves(found, by, seed)
            for sketch_bits in (0, 512):
                recipe = simindex.Recipe(sketch_bits=sketch_bits)
                report = calibrate(seen, recipe=recipe, others=[], seed=seed)
                own = report.own
                if own is None:
                    continue
                misses, strangers, pairs = measured(unseen, recipe, own)
                yield (
                    path.name.split(".")[0], by, str(report.documents), str(sketch_bits),
                    str(own.h), "-" if own.ask_similarity is None else f"{own.ask_similarity:g}",
                    f"{own.misses:.3f} ({own.misses_low:.3f}-{own.misses_high:.3f})",
                    f"{misses:.3f}", f"{misses - own.misses:+.3f}",
                    f"{own.strangers:.3f} ({own.strangers_low:.3f}-{own.strangers_high:.3f})",
                    f"{strangers:.3f}", f"{pairs:,}", f"{report.seconds:.0f} s",
                )


HEADER = (
    "collection", "halves by", "documents", "sketch", "h", "similarity asked", "misses predicted",
    "misses measured", "difference", "strangers predicted", "strangers measured", "similar pairs",
    "calibrate",
)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| " + " | ".join(HEADER) + " |")
    print("|" + "---|" * len(HEADER))
    for row in rows(given.data, given.documents, given.seed):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
