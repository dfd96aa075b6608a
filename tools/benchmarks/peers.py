"""FAISS, the engine a Python user would take instead; one thread.

A radius of FAISS is exclusive: rows within h are those of `range_search(…, h + 1)`.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.corpora import U64, H
from benchmarks.machine import resident_bytes

LARGEST_MULTIHASH = 20_000_000
"""Rows; beyond it a MultiHash takes minutes and more than 187 bytes a row to build."""

MULTIHASHES = {
    "multihash": (2, 32, 1, 100_000),
    "multihash4": (4, 16, 0, 20_000),
    "multihash4-1": (4, 16, 1, 1_000),
    "multihash3-2": (3, 21, 2, 1_000),
    "multihash2-3": (2, 32, 3, 200),
}
"""Kind -> parts, bits of each, bits flipped in each, queries that are enough to time it. Exact up
to `exact_for`: h = 3, 3, 7, 8 and 7."""

WITHIN_6_BITS = ("multihash4-1", "multihash3-2", "multihash2-3")
"""Kinds that are exact at h = 6: a part of 4 has at most one flip, of 3 two, of 2 three. With 5
parts and more, of 12 bits or fewer, a million rows make buckets of hundreds."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A built FAISS index, what it took, and how many queries are enough to time it."""

    name: str
    index: Any
    queries: int
    build_seconds: float
    bytes_per_row: float
    """Growth of resident memory while it was built."""

    def query(self, queries: U64, h: int = H) -> tuple[Any, Any]:
        """(limits, rows) of all rows within h of each query."""
        limits, _, rows = self.index.range_search(as_bytes(queries), h + 1)
        return limits, rows


def exact_for(kind: str) -> int:
    """Largest h at which one of a MultiHash's parts has no more flips than it tries."""
    parts, _, flips, _ = MULTIHASHES[kind]
    return parts * (flips + 1) - 1


def faiss() -> Any:
    """The module, held to one thread; SystemExit says how to get it."""
    try:
        import faiss as module
    except ImportError as error:
        raise SystemExit(
            "the peer is FAISS: pip install 'simindex[bench]', or give --no-peer"
        ) from error
    module.omp_set_num_threads(1)
    return module


def as_bytes(fingerprints: U64) -> Any:
    """uint8 (n, 8), as FAISS takes binary vectors."""
    return np.ascontiguousarray(fingerprints).view(np.uint8).reshape(-1, 8)


def chosen(name: str, rows: int) -> str:
    """The kind of index that `auto` stands for at a size."""
    if name == "auto":
        return "multihash" if rows <= LARGEST_MULTIHASH else "flat"
    return name


def empty(kind: str) -> tuple[str, Any, int]:
    """(name, index, queries that are enough to time it) of a kind."""
    module = faiss()
    if kind in MULTIHASHES:
        parts, width, flips, queries = MULTIHASHES[kind]
        index = module.IndexBinaryMultiHash(64, parts, width)
        index.nflip = flips
        return f"FAISS MultiHash({parts},{width}) nflip {flips}", index, queries
    if kind == "flat":
        return "FAISS BinaryFlat", module.IndexBinaryFlat(64), 200
    if kind == "ivf":
        quantizer = module.IndexBinaryFlat(64)
        index = module.IndexBinaryIVF(quantizer, 64, 4096)
        index.own_fields = True
        quantizer.this.disown()
        index.nprobe = 16
        return "FAISS BinaryIVF 4096, nprobe 16", index, 20_000
    raise SystemExit(f"no such peer: {kind}")


def build(kind: str, fingerprints: U64, batch_rows: int = 1_000_000) -> Peer:
    """An index of a kind over all rows, added in batches."""
    name, index, queries = empty(kind)
    # Memory that was freed before would be taken again, and not be counted.
    ctypes.CDLL(None).malloc_trim(0)
    before = resident_bytes()
    seconds = 0.0
    if not index.is_trained:
        start = time.perf_counter()
        index.train(as_bytes(np.array(fingerprints[:200_000])))
        seconds += time.perf_counter() - start
    for first in range(0, len(fingerprints), batch_rows):
        batch = as_bytes(np.array(fingerprints[first : first + batch_rows]))
        start = time.perf_counter()
        index.add(batch)
        seconds += time.perf_counter() - start
    grown = resident_bytes() - before
    return Peer(name, index, queries, seconds, grown / max(1, len(fingerprints)))
