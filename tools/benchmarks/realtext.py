"""Revisions of real pages: is the asked recall reached where flips are what they are?

Each source is an index of all its documents, made of tf-idf words learned from them. Every document
is then a query. A pair is two consecutive revisions of one page within h of each other, asked for
from both sides; the document itself does not count.
"""

from __future__ import annotations

import io
import json
import shutil
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from benchmarks.corpora import H
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch, IndexOptions

RECALL = 0.95
BATCH_TEXTS = 2_000

Pairs = set[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one source's pairs."""

    pairs: int
    found: int
    every_pair: int
    every_found: int
    documents: int


def real_text(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Every `*.jsonl.zst` of the data directory, and all together."""
    if options.data is None:
        raise SystemExit("real-text needs --data DIR with *.jsonl.zst: path, seq and text")
    files = sorted(Path(options.data).glob("*.jsonl.zst"))
    if not files:
        raise SystemExit(f"no *.jsonl.zst in {options.data}")
    measured, results = [], []
    for file in files:
        measurement, result = one_source(file, directory, watch)
        measured.append(measurement)
        results.append(result)
        say(f"  {measurement.engine}: recall {measurement.recall}, {measurement.notes}")
    pairs, found = sum(r.pairs for r in results), sum(r.found for r in results)
    every, every_found = sum(r.every_pair for r in results), sum(r.every_found for r in results)
    measured.append(
        Measurement(
            "real-text", "simindex, all sources", sum(r.documents for r in results),
            tuple(float(np.median(one.rates)) for one in measured), "queries/s",
            recall=found / pairs,
            notes=f"{found:,} of {pairs:,} revision pairs; {every_found / every:.4f} of all "
            f"{every:,} pairs",
        )
    )
    return measured


def documents(file: Path) -> tuple[list[str], Pairs]:
    """The texts of a file, and (newer, older) of consecutive revisions, as places in it."""
    import zstandard

    texts: list[str] = []
    pairs: Pairs = set()
    last: tuple[Any, Any] = (None, None)
    with file.open("rb") as raw:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw)
        for line in io.TextIOWrapper(reader, encoding="utf-8"):
            record = json.loads(line)
            if (record["path"], record["seq"] - 1) == last:
                pairs.add((len(texts), len(texts) - 1))
            last = (record["path"], record["seq"])
            texts.append(record["text"])
    return texts, pairs


def one_source(
    file: Path, directory: Path, watch: Stopwatch
) -> tuple[Measurement, Found]:
    """Index, query and compare with the scan."""
    name = file.name.removesuffix(".jsonl.zst")
    texts, revisions = documents(file)
    start = time.perf_counter()
    recipe = simindex.Recipe(unit="word", ngram=1, weighting="tfidf").fit(texts)
    fitted = time.perf_counter() - start
    path = directory / f"real-{name}.sim"
    if path.exists():
        shutil.rmtree(path)
    parts, seconds = [], 0.0
    options = IndexOptions(structures=("psm",), recipe=recipe)
    with simindex.open(path, "n", options=options) as index:
        for first in range(0, len(texts), BATCH_TEXTS):
            some = texts[first : first + BATCH_TEXTS]
            start = time.perf_counter()
            part = recipe.batch(some, ids=np.arange(first, first + len(some)))
            seconds += time.perf_counter() - start
            index.append(part)
            parts.append(part)
        index.commit()
        index.compact(full=True)
        index.tune(h=H)
    ids = np.concatenate([part.ids for part in parts if part.ids is not None])
    batch = Batch(
        np.concatenate([part.rows for part in parts]),
        weights=np.concatenate([part.weights for part in parts if part.weights is not None]),
    )
    with simindex.open(path) as index:
        rates, found = watch.rates(
            len(batch),
            lambda: index.query(batch, h=H, recall=RECALL, method="psm", threads=1),
        )
        scanned = index.query(batch, h=H, recall=1.0, method="scan", threads=1)
    truth, got = named(scanned, ids), named(found, ids)
    if not got <= truth:
        raise SystemExit(f"{name}: a match is none: precision is below 1")
    both = revisions | {(older, newer) for newer, older in revisions}
    result = Found(
        len(truth & both), len(got & both), len(truth), len(got), len(batch)
    )
    return (
        Measurement(
            "real-text", f"simindex {found.stats.method}, {name}", len(batch), rates, "queries/s",
            bytes_per_row=disk_bytes(path) / len(batch),
            recall=result.found / result.pairs if result.pairs else None,
            notes=f"{result.found:,} of {result.pairs:,} revision pairs within {H}; "
            f"{len(got) / max(1, len(truth)):.4f} of all {len(truth):,} pairs; "
            f"k = {found.stats.flips}; fit {fitted:.1f} s, fingerprints "
            f"{len(texts) / seconds:,.0f} documents/s",
        ),
        result,
    )


def named(found: simindex.Matches, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> Pairs:
    """(document, document) of the matches, without a document's match with itself."""
    query = ids[found.query]
    other = query != found.id
    return set(zip(query[other].tolist(), found.id[other].tolist(), strict=True))
