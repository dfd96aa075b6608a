"""FAISS indexes of wide signatures, one thread, ids are row numbers.

HNSW and IVF answer from a part of the rows they cannot vouch for; MultiHash with 64 parts of 16
bits is the layout of slice lists, with the lists within `nflip` bits of each part.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.corpora import U64
from benchmarks.machine import resident_bytes
from benchmarks.peers import faiss
from benchmarks.signatures import BITS, WORDS
from benchmarks.stopwatch import say

TRAINED_ROWS = 200_000
LINKS, EFFORT = 16, 40
"""M and efConstruction of HNSW."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a built index is asked: its name, what sets it, the share of queries that time it."""

    name: str
    set: Callable[[], None]
    share: float


@dataclass(frozen=True, slots=True)
class TopPeer:
    """A built FAISS index, what it took, and the settings it is asked with."""

    name: str
    index: Any
    settings: tuple[Setting, ...]
    build_seconds: float
    bytes_per_row: float
    """Growth of resident memory while it was built."""

    def top(self, queries: U64, k: int) -> U64:
        """Ids (m, k); missing ones are 2^64 - 1."""
        _, ids = self.index.search(as_bytes(queries), k)
        found: U64 = ids.view(np.uint64)
        return found


def as_bytes(signatures: U64) -> Any:
    """uint8 (n, 128), as FAISS takes binary vectors."""
    return np.ascontiguousarray(signatures).view(np.uint8).reshape(-1, BITS // 8)


def build(kind: str, rows: U64, nlist: int) -> TopPeer:
    """An index of a kind over all rows: "flat", "ivf", "multihash" or "hnsw"."""
    name, index, asked = empty(kind, nlist)
    say(f"  building {name}")
    ctypes.CDLL(None).malloc_trim(0)
    before = resident_bytes()
    start = time.perf_counter()
    if not index.is_trained:
        index.train(as_bytes(rows[:TRAINED_ROWS]))
    index.add(as_bytes(rows))
    seconds = time.perf_counter() - start
    grown = resident_bytes() - before
    say(f"    {seconds:.1f} s")
    settings = tuple(
        Setting(f"{name}{how}", _setter(index, option, value), share)
        for how, option, value, share in asked
    )
    return TopPeer(name, index, settings, seconds, grown / max(1, len(rows)))


Asked = Sequence[tuple[str, str, int, float]]
"""Suffix of the name, option, value, share of the queries that is enough."""


def empty(kind: str, nlist: int) -> tuple[str, Any, Asked]:
    """(name, index, settings) of a kind."""
    module = faiss()
    if kind == "flat":
        return "FAISS BinaryFlat", module.IndexBinaryFlat(BITS), [("", "", 0, 0.2)]
    if kind == "ivf":
        quantizer = module.IndexBinaryFlat(BITS)
        index = module.IndexBinaryIVF(quantizer, BITS, nlist)
        index.own_fields = True
        quantizer.this.disown()
        return f"FAISS BinaryIVF {nlist}", index, [
            (f", nprobe {nprobe}", "nprobe", nprobe, 1.0) for nprobe in (16, 64)
        ]
    if kind == "multihash":
        parts = BITS // 16
        index = module.IndexBinaryMultiHash(BITS, parts, 16)
        return f"FAISS MultiHash({parts},16)", index, [
            (f", nflip {flips}", "nflip", flips, share) for flips, share in ((0, 0.5), (1, 0.05))
        ]
    if kind == "hnsw":
        index = module.IndexBinaryHNSW(BITS, LINKS)
        index.hnsw.efConstruction = EFFORT
        return f"FAISS BinaryHNSW {LINKS}", index, [
            (f", ef {effort}", "efSearch", effort, 0.5) for effort in (64, 16, 256)
        ]
    raise SystemExit(f"no such peer: {kind}")


def _setter(index: Any, option: str, value: int) -> Callable[[], None]:
    def set_() -> None:
        if option:
            setattr(index.hnsw if option == "efSearch" else index, option, value)

    return set_


assert WORDS * 64 == BITS
