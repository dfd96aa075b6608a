"""A collection against an index: how long `simindex gate` takes, and which copies it finds.

    index        documents of 300 made-up words, with a sketch of 512 bits; the shell's own recipe
    collection   a tenth as many new documents; of them a tenth are copies of stored ones, in which
                 5 % of the words, drawn at random, are replaced by other words

A match is right if the document is a copy and the match is what it was copied from. `simindex gate`
runs in a process of its own, on all cores, with its defaults.
"""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simindex
from benchmarks import machine, shell
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.texts import WORDS, Making

SKETCH_BITS = 512
COPIES, REPLACED = 0.1, 0.05
LEARNED = 20_000
"""Documents that the recipe learns its idf from."""
PORTION = 20_000

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took, and found."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    reported: int
    """Pairs of a document and a match."""
    right: int


def gate(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """The command on all cores. `--keep` leaves the index and the collection for the next run."""
    index, collection = directory / "gate.sim", directory / "collection.jsonl"
    truth = directory / "copies.json"
    questions = max(1, options.rows // 10)
    if not truth.exists():
        made(options.rows, questions, options.seed, index, collection, truth)
    copies: dict[str, str] = json.loads(truth.read_text(encoding="ascii"))
    size = collection.stat().st_size
    say(f"  {questions:,} documents, {size / 1e6:.0f} MB of JSON lines, {len(copies):,} copies")
    runs = []
    for repetition in range(watch.repeat):
        runs.append(run(index, collection, directory / "report.jsonl", copies))
        say(f"  {repetition + 1}: {runs[-1]}")
    last = runs[-1]
    precision = last.right / max(1, last.reported)
    recall = last.right / max(1, len(copies))
    peak = max(one.peak_bytes for one in runs) / 2**20
    return [
        Measurement(
            "gate", f"simindex gate, {len(machine.CORES)} cores", options.rows,
            tuple(one.seconds for one in runs), "s",
            bytes_per_row=disk_bytes(index) / options.rows, recall=recall,
            notes=f"{questions:,} documents of {WORDS} words; {len(copies):,} copies with "
            f"{REPLACED:.0%} of the words replaced; precision {precision:.4f}; {last.cpu_s:.0f} s "
            f"of processor time; peak memory {peak:,.0f} MiB",
        )
    ]


def made(
    rows: int, questions: int, seed: int, index_path: Path, collection: Path, truth: Path
) -> None:
    """Makes the index, the collection, and the list of copies, in bounded memory."""
    making, rng = Making(seed), np.random.default_rng(seed + 1)
    copies = round(COPIES * questions)
    sources = set(rng.choice(rows, min(copies, rows), replace=False).tolist())
    kept: dict[int, str] = {}
    recipe = simindex.Recipe(
        ngram=1, weighting="balanced-tfidf", sketch_bits=SKETCH_BITS
    ).fit(making.documents(min(rows, LEARNED)))
    options = simindex.IndexOptions(keys="str", recipe=recipe)
    with machine.on_every_core(), simindex.open(index_path, "n", options=options) as index:
        for first in range(0, rows, PORTION):
            texts = making.documents(min(PORTION, rows - first))
            places = range(first, first + len(texts))
            kept |= {place: texts[place - first] for place in places if place in sources}
            index.append(recipe.batch(texts, keys=[f"known-{place}" for place in places]))
            say(f"  {first + len(texts):,} of {rows:,} documents made")
    where = set(rng.choice(questions, len(kept), replace=False).tolist())
    pairs = {}
    with collection.open("w", encoding="ascii") as file:
        waiting = iter(kept.items())
        for number, text in enumerate(_new(making, questions)):
            if number in where:
                source, original = next(waiting)
                pairs[f"document-{number}"] = f"known-{source}"
                text = edited(original, making, rng)
            file.write(json.dumps({"id": f"document-{number}", "text": text}) + "\n")
    truth.write_text(json.dumps(pairs), encoding="ascii")


def _new(making: Making, count: int) -> Iterator[str]:
    for first in range(0, count, PORTION):
        yield from making.documents(min(PORTION, count - first))


def edited(text: str, making: Making, rng: np.random.Generator) -> str:
    """The text with some of its words, drawn at random, replaced by other words."""
    spans = [match.span() for match in _WORD.finditer(text)]
    chosen = sorted(rng.choice(len(spans), round(REPLACED * len(spans)), replace=False).tolist())
    parts, last = [], 0
    for place in chosen:
        start, end = spans[place]
        old = text[start:end].lower()
        new = next(word for word in iter(lambda: making.words(1)[0], "") if word != old)
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])


def run(index: Path, collection: Path, report: Path, copies: dict[str, str]) -> Run:
    """One run of the command."""
    ended = shell.simindex(
        ["gate", "--against", str(index), str(collection), "--report", str(report), "--quiet"],
        expected=1 if copies else 0,
    )
    reported = right = 0
    with report.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["kind"] == "match":
                reported += len(record["matches"])
                right += sum(
                    copies.get(record["document"]) == match["key"] for match in record["matches"]
                )
    return Run(ended.seconds, ended.cpu_s, ended.peak_bytes, reported, right)
