"""The index of a corpus and its questions, made once and kept in the benchmark's directory.

    corpus-….sim               the index, every row appended with its weights, compacted
    corpus-….fingerprints.npy  uint64 (n,), for peers and for the oracle
    corpus-….weights.npy       float32 (m, 64), of the questions
    corpus-….partner.npy       int64 (m,), the id a question was made of, or -1; written last
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import F32, I64, U64, Corpus, oracle
from benchmarks.stopwatch import say
from simindex import IndexOptions

PSM = IndexOptions(structures=("psm",))
"""Permuted tables are added by those who measure them."""

@dataclass(frozen=True, slots=True)
class Stored:
    """What the online workloads share."""

    path: Path
    fingerprints: U64
    weights: F32
    queries: U64
    partner: I64


def prepare(corpus: Corpus, directory: Path) -> Stored:
    """Builds what is not there yet, and opens it."""
    place = {
        part: directory / f"{corpus.name}.{part}"
        for part in ("sim", "fingerprints.npy", "weights.npy", "partner.npy")
    }
    if not place["partner.npy"].exists():
        _build(corpus, place)
    weights = np.load(place["weights.npy"])
    return Stored(
        place["sim"],
        np.load(place["fingerprints.npy"], mmap_mode="r"),
        weights,
        oracle.signs(weights)[:, 0],
        np.load(place["partner.npy"]),
    )


def _build(corpus: Corpus, place: dict[str, Path]) -> None:
    if place["sim"].exists():
        shutil.rmtree(place["sim"])
    fingerprints = np.lib.format.open_memmap(
        place["fingerprints.npy"], mode="w+", dtype=np.uint64, shape=(corpus.rows,)
    )
    rewritten, partner, seconds = [], [], 0.0
    with simindex.open(place["sim"], "n", options=PSM) as index:
        for first, weights in corpus.slices():
            words = oracle.signs(weights)[:, 0]
            ids = np.arange(first, first + len(words), dtype=np.uint64)
            start = time.perf_counter()
            index.append(words, ids=ids, weights=weights)
            index.commit()
            seconds += time.perf_counter() - start
            fingerprints[first : first + len(words)] = words
            question, of = corpus.questions_about(first, weights)
            rewritten.append(question)
            partner.append(of)
            done = first + len(words)
            say(f"  {done:,} of {corpus.rows:,} rows stored, {seconds:.1f} s in simindex")
        index.compact(full=True)
        index.tune()
    fingerprints.flush()
    questions, partners = corpus.mixed(np.concatenate(rewritten), np.concatenate(partner))
    np.save(place["weights.npy"], questions)
    np.save(place["partner.npy"], partners)
