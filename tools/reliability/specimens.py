"""Small indexes of every kind of file, and the truth of what they answer, by brute force.

    specimen   an index on disk, an earlier state of it, another index of the same options
    rows       what it holds: fingerprints and names in plain arrays
    judgement  a way to read, that says whether its answer is right
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simindex
from simindex import Batch, IndexOptions
from simindex.storage.tables import times

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

Judgement = tuple[str, Callable[[], bool]]


@dataclass
class Rows:
    """What an index holds: fingerprints (n, W) and names, ids or keys, one a row."""

    words: U64
    names: list[Any]

    def plus(self, other: Rows) -> Rows:
        return Rows(np.concatenate([self.words, other.words]), self.names + other.names)

    def without(self, doomed: set[Any]) -> Rows:
        kept = [i for i, name in enumerate(self.names) if name not in doomed]
        return Rows(self.words[kept], [self.names[i] for i in kept])

    @property
    def counted(self) -> Counter[tuple[bytes, Any]]:
        return Counter((row.tobytes(), name) for row, name in zip(self.words, self.names,
                                                                  strict=True))


@dataclass
class Specimen:
    """An index on disk, an earlier state of it, another index of the same options, their truths."""

    name: str
    path: Path
    older: Path
    other: Path
    rows: Rows
    older_rows: Rows
    queries: U64
    weights: NDArray[np.float32]
    keyed: bool
    structures: tuple[str, ...]
    strays: list[str] = field(default_factory=list)

    def by_name(self, names: list[Any]) -> dict[str, Any]:
        """What `Index.delete` takes for some names."""
        return {"keys" if self.keyed else "ids": names}

    def files(self, kind: str) -> list[str]:
        """Files of a kind, as names below the index."""
        if kind == "stray":
            return self.strays
        if kind in ("FORMAT", "LOCK"):
            return [kind]
        if kind.endswith(".mdb"):
            return [f"catalog/{kind}"]
        found = [f"segments/{p.name}" for p in (self.path / "segments").iterdir()]
        return sorted(f for f in found if f.endswith(kind) and f not in self.strays)


def named(kind: Any, first: int, count: int) -> list[Any]:
    if not kind:
        return list(range(first, first + count))
    texts = [f"page/{number}/é" * (1 + number % 3) for number in range(first, first + count)]
    return texts if kind == "str" else [text.encode() for text in texts]


def sketch_of(words: U64, sketch_bits: int) -> U64 | None:
    """A sketch that says whose it is; None of no bits."""
    if not sketch_bits:
        return None
    more = np.arange(1, sketch_bits // 64 + 1, dtype=np.uint64)
    mixed: U64 = (words[:, :1] ^ more) * np.uint64(0x9E3779B97F4A7C15)
    return mixed


def sizes_of(words: U64, sketch_bits: int) -> I64 | None:
    """A number of features that says whose it is, a power of two, which a byte has exactly."""
    return np.int64(1) << (words[:, 0] % np.uint64(21)).astype(np.int64) if sketch_bits else None


def batch(rng: np.random.Generator, rows: Rows, keyed: bool, sketch_bits: int) -> Batch:
    weights = np.abs(rng.standard_normal((len(rows.words), rows.words.shape[1] * 64)))
    bits = np.unpackbits(rows.words.astype(">u8").view(np.uint8), axis=1).astype(np.float32)
    signed = (weights * (2 * bits - 1)).astype(np.float32)
    further: dict[str, Any] = {
        "sketch": sketch_of(rows.words, sketch_bits),
        "features": sizes_of(rows.words, sketch_bits),
    }
    if keyed:
        return Batch(rows.words, weights=signed, keys=rows.names, **further)
    ids = np.array(rows.names, np.uint64)
    return Batch(rows.words, weights=signed, ids=ids, **further)


def _near(rng: np.random.Generator, words: U64, flips: int) -> U64:
    near = words.copy()
    for row in near:
        for bit in rng.integers(0, 64 * words.shape[1], flips):
            row[int(bit) // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    return near


SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"structures": ("psm", "bphs:G=2,g=1", "issl")},
    "keyed": {"keys": "str", "structures": ("psm", "bphs:G=3,g=1,r=1")},
    "wide": {"bits": 256, "structures": ("psm", "issl:w=8", "bphs:G=4,g=1")},
    "bytes": {"keys": "bytes", "bits": 128, "structures": ("psm",)},
    "aged": {"times": True, "structures": ("psm", "bphs:G=2,g=1")},
    "sketched": {"sketch_bits": 192, "keys": "str", "structures": ("psm", "bphs:G=2,g=1")},
    "many": {"structures": ("psm", "bphs:G=4,g=1", "issl")},
    "tiny": {"sketch_bits": 64, "structures": ("psm", "bphs:G=2,g=1", "issl")},
}

SIZES = {"many": (24, 3, 8), "tiny": (2, 8, 64)}
"""Appends, rows of each, and `batch_rows`; of other shapes (4, 60, 400). "many" has so many records
in its catalog that their tree has branches. Rows of the first append of "aged" have expired."""


@contextmanager
def at(seconds: int) -> Iterator[None]:
    """Lets rows come so long after the beginning of 1970."""
    changed: Any = times
    before, changed.clock = times.clock, lambda: seconds
    try:
        yield
    finally:
        changed.clock = before


def make(directory: Path, name: str, seed: int = 0) -> Specimen:
    """An index of one shape: several segments, pending rows, deletions, a sample of weights."""
    shape = SHAPES[name]
    steps, step_rows, batch_rows = SIZES.get(name, (4, 60, 400))
    options = IndexOptions(batch_rows=batch_rows, min_merge=0, reservoir_rows=8, **shape)
    keyed = options.keyed
    paths = [directory / name / part for part in ("index", "older", "other")]
    paths[0].parent.mkdir(parents=True)
    truths = []
    for path, number in ((paths[0], 0), (paths[2], 1)):
        rng = np.random.default_rng([seed, number, len(name)])
        rows = Rows(np.empty((0, options.words), np.uint64), [])
        older = rows
        with simindex.open(path, "n", options=options) as index:
            for step in range(steps):
                count = step_rows
                if step == 0 and number == 1:
                    count = 2  # pending rows only, so that its catalog needs no other file
                words = rng.integers(0, 1 << 64, (count, options.words), dtype=np.uint64)
                if len(rows.words):  # near-duplicates and equal rows among others
                    words[:2] = _near(rng, rows.words[-2:], step % 3)
                added = Rows(words, named(options.keys, 1000 * step, count))
                with at(1000 * (step + 1)):
                    index.append(batch(rng, added, keyed, options.sketch_bits))
                index.commit()
                rows = rows.plus(added)
                if step == 1:
                    doomed = rows.names[1:3]
                    absent = named(options.keys, 10**7, options.seal_rows)  # so many are a file
                    gone = doomed + absent
                    index.delete(keys=gone if keyed else None, ids=None if keyed else gone)
                    index.commit()
                    rows = rows.without(set(doomed))
                    older = rows
                    if number == 0:
                        shutil.copytree(path, paths[1])
                if number == 1:
                    break
            if number == 0:
                tail = Rows(
                    rng.integers(0, 1 << 64, (5, options.words), dtype=np.uint64),
                    named(options.keys, 10**6, 5),
                )
                if name != "many":
                    index.append(batch(rng, tail, keyed, options.sketch_bits))
                    index.commit()
                    rows = rows.plus(tail)
                doomed = rows.names[5:7]
                index.delete(keys=doomed if keyed else None, ids=None if keyed else doomed)
                index.commit()
                rows = rows.without(set(doomed))
                if options.times:
                    index.expire(older_than=datetime.fromtimestamp(1500, UTC))
                    index.commit()
                    rows = rows.without(set(named(options.keys, 0, step_rows)))
        truths.append((rows, older))
    rows, older = truths[0]
    rng = np.random.default_rng(seed + 7)
    queries = np.concatenate([
        rows.words[::40][:6], _near(rng, rows.words[3::50][:4], 2),
        rng.integers(0, 1 << 64, (2, options.words), dtype=np.uint64),
    ])
    weights = rng.standard_normal((len(queries), options.bits)).astype(np.float32)
    bits = np.unpackbits(queries.astype(">u8").view(np.uint8), axis=1)
    weights = (np.abs(weights) * (2.0 * bits - 1)).astype(np.float32)
    specimen = Specimen(name, paths[0], paths[1], paths[2], rows, older, queries, weights, keyed,
                        options.structures)
    # Two strays: of an interrupted write, and of a commit that never came.
    live = specimen.files(".rows")[0]
    specimen.strays = ["segments/.tmp-0123456789abcdef", "segments/0000000000000001-0badcafe.rows"]
    for stray in specimen.strays:
        shutil.copy(specimen.path / live, specimen.path / stray)
    return specimen


RESEMBLANCE, NEARLY = 0.5, 0.03
"""That sets are asked for by, and within which of it they may be kept or not."""

CERTAIN_H = 10
"""Within which every row is a candidate for that."""


def apart(rows: Rows, queries: U64) -> NDArray[np.int64]:
    """Hamming distances (m, n), by brute force."""
    bits = np.bitwise_count(queries[:, None] ^ rows.words[None])
    total: NDArray[np.int64] = bits.sum(axis=2, dtype=np.int64)
    return total


def expected(rows: Rows, queries: U64, h: int) -> set[tuple[int, int, Any]]:
    """(query, distance, name) of all within h."""
    near = apart(rows, queries)
    return {
        (int(query), int(near[query, row]), rows.names[row])
        for query, row in zip(*np.nonzero(near <= h), strict=True)
    }


def _resemblances(given: Batch, rows: Rows, bits: int) -> NDArray[np.float64]:
    """Of the sets of some queries with those of all rows, (m, n), by sketches and sizes."""
    one: list[Any] = [given.sketch, given.sizes]
    other: list[Any] = [sketch_of(rows.words, bits), sizes_of(rows.words, bits)]
    differ = np.bitwise_count(one[0][:, None] ^ other[0][None]).sum(axis=2, dtype=np.int64)
    cosine = np.cos(np.pi * differ / bits)
    ratio = one[1][:, None] / other[1][None]
    ratio = np.minimum(ratio, 1 / ratio)
    found: NDArray[np.float64] = np.minimum(
        cosine / ((1 + ratio) / np.sqrt(ratio) - cosine), ratio
    )
    found[differ == 0] = 1
    return found


def _named(rows: Rows, chosen: NDArray[np.bool_]) -> set[tuple[int, Any]]:
    return {(int(query), rows.names[row]) for query, row in zip(*np.nonzero(chosen), strict=True)}


def matched(found: simindex.Matches) -> list[tuple[int, int, Any]]:
    """The same of an answer."""
    keys = found.keys()
    names: list[Any] = found.id.tolist() if keys is None else list(keys)
    return list(zip(found.query.tolist(), found.distance.tolist(), names, strict=True))


def judgements(
    index: simindex.Index, specimen: Specimen, rows: Rows, turn: int, *, few: bool = False
) -> Iterator[Judgement]:
    """(name, call) of every way to read: a call returns whether its answer is right.

    With `few`, only of those by which all rows are read.
    """
    queries, weighted = specimen.queries, Batch(specimen.queries, weights=specimen.weights)
    asked = queries[:, 0] if queries.shape[1] == 1 else queries
    many = np.concatenate([asked] * 6)

    def exact(h: int, given: Any = asked, **options: Any) -> bool:
        shape = np.asarray(given).reshape(len(given), -1) if given is not weighted else queries
        answer = matched(index.query(given, h=h, **options))
        return sorted(answer) == sorted(expected(rows, shape.astype(np.uint64), h))

    def some() -> bool:
        return set(matched(index.query(weighted, h=3, recall=0.9, method="psm"))) <= expected(
            rows, queries, 3
        )

    def first() -> bool:
        answer = matched(index.query(asked, h=3, first=True, method="scan"))
        truth = expected(rows, queries, 3)
        return set(answer) <= truth and sorted(a[0] for a in answer) == sorted(
            {a[0] for a in truth}
        )

    def nearest(**options: Any) -> bool:
        found = index.top(asked, k=3, **options)
        best: dict[Any, NDArray[np.int64]] = {}
        near = apart(rows, queries)
        for row, name in enumerate(rows.names):
            best[name] = np.minimum(best.get(name, near[:, row]), near[:, row])
        right = np.sort(np.array(list(best.values())).T, axis=1)[:, :3]
        return bool(np.array_equal(found.distance, right))

    def pairs() -> bool:
        got = Counter(
            (int(a), int(b), int(d))
            for part in index.pairs(h=2) for a, b, d in zip(part.a, part.b, part.distance,
                                                            strict=True)
        )
        near = np.triu(apart(rows, rows.words) <= 2, 1)
        truth = [rows.names[a] != rows.names[b] for a, b in zip(*np.nonzero(near), strict=True)]
        return bool(sum(got.values()) == sum(truth))

    def stored() -> bool:
        got: Counter[tuple[bytes, Any]] = Counter()
        for batch in index.rows(chunk_rows=64):
            names = list(batch.keys) if batch.keys is not None else np.array(batch.ids).tolist()
            words = batch.fingerprints.reshape(len(batch), -1)
            got.update((row.tobytes(), name) for row, name in zip(words, names, strict=True))
            sketches: list[Any] = [batch.sketch, sketch_of(words, index.options.sketch_bits)]
            sizes: list[Any] = [batch.sizes, sizes_of(words, index.options.sketch_bits)]
            if not (np.array_equal(*sketches) and np.array_equal(*sizes)):
                return False
        return got == rows.counted

    def by_sizes() -> bool:
        """Sketches three bits off, of sets of the same size, and of one that is eight times as
        large or small, whose resemblance can be 1/8 at most."""
        some, bits = rows.words[::40], index.options.sketch_bits
        sketches: Any = sketch_of(some, bits)
        sizes: Any = sizes_of(some, bits)
        other = np.arange(len(some)) % 2 == 1
        given = Batch(some, sketch=sketches ^ np.uint64(7 << 20), features=np.where(
            other, np.where(sizes < 1 << 10, 8 * sizes, sizes // 8), sizes
        ))
        found = index.query(given, similarity=RESEMBLANCE, measure="jaccard")
        told = [(query, name) for query, _, name in matched(found)]
        resemblance = _resemblances(given, rows, bits)
        near = apart(rows, some) <= CERTAIN_H
        must = _named(rows, (resemblance > RESEMBLANCE + NEARLY) & near)
        may = _named(rows, resemblance > RESEMBLANCE - NEARLY)
        return must <= set(told) <= may and len(told) == len(set(told))

    yield "rows", stored
    if index.options.sketch_bits:
        yield "sizes", by_sizes
    yield "scan", lambda: exact(3, method="scan")
    yield "check", lambda: index.check() is not None
    if few:
        return
    yield "len", lambda: len(index) == len(rows.names)
    yield "psm", lambda: exact(1, method="psm")
    if any(name.startswith("bphs") for name in specimen.structures):
        yield "bphs", lambda: exact(1 if "G=2" in str(specimen.structures) else 2, method="bphs")
    if any(name.startswith("issl") for name in specimen.structures):
        yield "issl", lambda: exact(3, method="issl")
        yield "top issl", lambda: index.top(asked, k=3, method="issl").id.shape == (len(asked), 3)
    yield "auto", lambda: exact(3)
    yield "first", first
    yield "top", lambda: nearest(method="scan")
    yield "stats", lambda: index.stats(skew=True).rows == len(rows.names)
    # What takes longer, in turn.
    slow: tuple[tuple[Judgement, ...], ...] = (
        (("recall", some),),
        (("limited", lambda: exact(1, many, method="bphs", memory_limit=64 << 20)),),
        (("batch", lambda: exact(3, many, threads=2)), ("pairs", pairs)),
    )
    yield from slow[turn % len(slow)]
