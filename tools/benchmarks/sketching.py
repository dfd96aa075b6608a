"""What a sketch costs: texts to fingerprints, and `simindex dedup`, with 512 bits and without.

    text      documents of 300 words on one thread, by several recipes
    dedup     the documents of `ingest`, with their near-duplicates marked: by the default distance
              without a sketch and with one, and by `--similarity 0.9`, which makes one
    pages     the same, with a file of --data DIR as it is, all revisions of its pages

Ways take turns. A ratio is that of the middle repetitions.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import machine
from benchmarks.ingesting import COPIES, EDITS, dedup, written
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.texts import documents, sources
from simindex import Recipe

SKETCH_BITS, SIMILARITY = 512, 0.9
RECIPES = {
    "balanced tf-idf, words": Recipe(ngram=1, weighting="balanced-tfidf"),
    "tf, words 1-3": Recipe(ngram=(1, 2, 3), weighting="tf"),
    "binary, 3 words": Recipe(ngram=3, weighting="binary"),
}
"""The first is the shell's own."""
TEXT_ASKED, DEDUP_ASKED = 0.5, 0.8
"""Of the speed without a sketch."""
PAGES = "peps"

PLAIN, SKETCHED = "simindex, no sketch", f"simindex, sketch of {SKETCH_BITS} bits"
SIMILAR = f"simindex, by similarity {SIMILARITY}, sketch of {SKETCH_BITS} bits"
WAYS: dict[str, list[str]] = {
    PLAIN: [], SKETCHED: ["--sketch-bits", str(SKETCH_BITS)],
    SIMILAR: ["--similarity", str(SIMILARITY), "--sketch-bits", str(SKETCH_BITS)],
}


def sketch_cost(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Fingerprints on one core, `dedup` on all of them."""
    originals = round((1 - COPIES - EDITS) * options.rows)
    found = documents(options.data, originals, options.seed)
    say(f"  {len(found.texts):,} documents, {found.origin}")
    measured = []
    for name, recipe in RECIPES.items():
        fitted = recipe if recipe.fitted else recipe.fit(found.texts)
        calls = {
            way: partial(replace(fitted, sketch_bits=bits).batch, found.texts, threads=1)
            for way, bits in ((PLAIN, 0), (SKETCHED, SKETCH_BITS))
        }
        taken = watch.in_turn(calls)
        measured += beside(f"text: {name}", len(found.texts), taken, TEXT_ASKED, found.origin)
    source = directory / "documents.jsonl"
    written(found.texts, source, options.seed)
    inputs = {"dedup": source}
    if options.data is not None:
        pages = [one for one in sources(options.data) if one.name.startswith(PAGES)]
        inputs |= {f"dedup: {PAGES}, all revisions": one for one in pages}
    for name, path in inputs.items():
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for repetition in range(watch.repeat + 1):
            for way, arguments in WAYS.items():
                ended = dedup(
                    path, directory / "dedup.sim", directory / "marked.jsonl", len(machine.CORES),
                    *arguments,
                )
                if repetition:
                    seconds[way].append(ended.seconds)
        with (directory / "marked.jsonl").open("rb") as lines:
            rows = sum(1 for _ in lines)
        size = f"{path.stat().st_size / 1e6:.0f} MB in"
        measured += beside(name, rows, seconds, DEDUP_ASKED, size)
    return measured


def beside(
    workload: str, rows: int, seconds: Mapping[str, list[float]], asked: float, of: str
) -> list[Measurement]:
    """Documents a second of each way, and what they are of those of PLAIN."""
    measured = []
    for way, times in seconds.items():
        note = of
        if way != PLAIN:
            ratio = statistics.median(seconds[PLAIN]) / statistics.median(times)
            note = f"{ratio:.2f} times the speed without; asked: {asked}"
            say(f"  {workload}, {way}: {ratio:.2f}")
        rates = tuple(rows / one for one in times)
        measured.append(Measurement(workload, way, rows, rates, "documents/s", notes=note))
    return measured
