"""Texts in memory to fingerprints and weights: documents of 300 words, and whole collections.

The peer is gaoya, which splits at white space, hashes n-grams and adds them up in Rust, to 64 bits
without weights. It is asked for the signature of a document alone, nothing is put into its index.
"""

from __future__ import annotations

import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.recipes import RECIPES, check
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, in_fresh_process, say
from benchmarks.texts import Documents, documents, records, saved, sources
from simindex import Batch, Recipe, _kernels

FIRST = "tf, words 1-3"
COLLECTION = ("tf, words 1-3", "tf-idf, words")
COLLECTION_SECONDS = 12


def text(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Recipes and peer in turn on one thread, then more threads, then other instruction sets."""
    found = documents(options.data, options.rows, options.seed)
    texts = found.texts
    say(f"  {len(texts):,} documents, {found.origin}, {found.utf8_bytes / 1e6:.1f} MB")
    recipes = {name: one.fitted(texts) for name, one in RECIPES.items()}
    parts = {name: texts[: max(1, int(one.part * len(texts)))] for name, one in RECIPES.items()}
    calls: dict[str, Any] = {
        name: partial(recipe.batch, parts[name], threads=1) for name, recipe in recipes.items()
    }
    rivals = {} if options.peer == "none" else gaoya_calls(texts)
    times = watch.in_turn({**rivals, **calls})
    kept = saved(texts, directory / "texts.jsonl")
    measured = []
    for name, recipe in recipes.items():
        if name == FIRST:
            measured += [
                of_documents(name, rival, Documents(texts, found.origin), times[rival])
                for rival in rivals
            ]
        part = Documents(parts[name], found.origin)
        notes = [check(name, texts, recipe.batch(part.texts, threads=1))]
        if RECIPES[name].asked is not None:
            notes.append(beside_texts(kept, name))
        measured.append(of_documents(name, "simindex", part, times[name], recipe, notes))
        say(f"  {name}: {measured[-1].median:,.0f} documents/s; {notes[0]}")
    kept_names = [name for name, one in RECIPES.items() if one.asked is not None]
    if 1 < options.threads <= len(machine.CORES):
        measured += more_threads(options.threads, texts, found, watch)
    for level in _kernels.LEVELS:
        runs = in_fresh_process(
            "fingerprint", environment={"SIMINDEX_SIMD": level}, texts=str(kept),
            recipes=kept_names, repeat=watch.repeat, clock=watch.clock,
        )
        measured += [
            of_documents(name, f"simindex, {level}", found, run["seconds"])
            for name, run in runs.items()
        ]
    return measured


def gaoya_calls(texts: list[str]) -> dict[str, Any]:
    """Signatures of the texts' words, pairs and triples by gaoya, with small letters and as is."""
    try:
        import gaoya
    except ImportError as error:
        raise SystemExit(
            "the peer is gaoya: pip install 'simindex[bench]', or give --no-peer"
        ) from error

    def signatures(lowercase: bool) -> None:
        index = gaoya.simhash.SimHashStringIndex(
            hash_size=64, num_blocks=4, hamming_distance=3, analyzer="word", lowercase=lowercase,
            ngram_range=(1, 3),
        )
        signature = index.index.doc2signature
        for text in texts:
            signature(text)

    return {
        "gaoya, lowercase": partial(signatures, True), "gaoya, as is": partial(signatures, False)
    }


def of_documents(
    name: str, engine: str, found: Documents, seconds: list[float], recipe: Recipe | None = None,
    notes: list[str] | None = None,
) -> Measurement:
    """Documents a second, and in the notes bytes and features a second of the middle run."""
    n = len(found.texts)
    middle = sorted(seconds)[len(seconds) // 2]
    said = [f"{found.utf8_bytes / middle / 1e6:.0f} MB/s"]
    if recipe is not None:
        counted = sum(
            sum(one.count for one in recipe.features(text)) for text in found.texts[:100]
        ) / min(n, 100)
        said.append(f"{n * counted / middle / 1e6:.1f} M features/s")
    asked = RECIPES[name].asked
    if asked is not None and engine == "simindex":
        said.append(f"{n / middle / asked:.1f} times the {asked:,} asked for")
    return Measurement(
        f"text: {name}", engine, n, tuple(n / one for one in seconds), "documents/s",
        notes="; ".join(said + (notes or [])),
    )


def beside_texts(kept: Path, name: str) -> str:
    """Peak memory of a fresh process without its texts, and how much of it is the result."""
    # A process for each recipe: memory that another one freed would be taken again.
    runs = in_fresh_process("fingerprint", texts=str(kept), recipes=[name], repeat=1, clock="wall")
    run = runs[name]
    return (
        f"peak memory {run['peak_bytes'] / 2**20:.1f} MiB without the texts, "
        f"{run['result_bytes'] / 2**20:.1f} MiB of it the result"
    )


def more_threads(
    threads: int, texts: list[str], found: Documents, watch: Stopwatch
) -> list[Measurement]:
    """One thread and several in turn, on every core, by the wall clock."""
    recipe = RECIPES[FIRST].fitted(texts)
    calls = {str(n): partial(recipe.batch, texts, threads=n) for n in (1, threads)}
    with machine.on_every_core():
        times = Stopwatch(max(5, watch.repeat), "wall").in_turn(calls)
        used = Stopwatch(watch.repeat, "cpu").in_turn(calls)
    one, several = times["1"], times[str(threads)]
    ratios = sorted(a / b for a, b in zip(one, several, strict=True))
    made = of_documents(FIRST, f"simindex, {threads} threads", found, several, notes=[
        f"{ratios[len(ratios) // 2]:.2f} times one thread in the middle round",
        f"{min(one) / min(several):.2f} times by the best round of each",
        f"{min(used[str(threads)]) / min(used['1']):.2f} times its processor time", "wall clock",
    ])
    return [of_documents(FIRST, "simindex, 1 thread", found, one, notes=["wall clock"]), made]


def text_corpus(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Every document of the data directory, read and parsed before the clock starts."""
    texts = [record["text"] for file in sources(options.data) for record in records(file)]
    size = Documents(texts, "").utf8_bytes
    say(f"  {len(texts):,} documents, {size / 1e6:,.0f} MB")
    measured = []
    for name in COLLECTION:
        start = time.perf_counter()
        recipe = RECIPES[name].fitted(texts)
        fit = time.perf_counter() - start
        seconds, batch = watch.seconds(partial(recipe.batch, texts, threads=1))
        middle = sorted(seconds)[len(seconds) // 2]
        notes = [
            f"{size / middle / 1e6:.0f} MB/s", f"{len(texts) / middle:,.0f} documents/s",
            f"asked: below {COLLECTION_SECONDS} s",
        ]
        if recipe.idf is not None:
            notes.append(f"idf of {len(recipe.idf):,} features learned before, in {fit:.1f} s")
        else:
            notes.append(check(name, texts, whole(batch, len(texts))))
        measured.append(
            Measurement(
                f"text-corpus: {name}", "simindex", len(texts), tuple(seconds), "s",
                notes="; ".join(notes),
            )
        )
        say(f"  {name}: {seconds}")
    return measured


def whole(batch: Batch, texts: int) -> Batch:
    """The batch, if no text was left out of it."""
    if len(batch) != texts:
        raise SystemExit(f"{len(batch.skipped)} documents got no fingerprint")
    return batch
