"""The truth the tests compare with: numpy brute force that imports nothing of the package.

    matches          every (query, row, distance) within h, by exclusive or and popcount
    Model            an index as a list of rows and a list of buffered steps
    uniform, skewed  fingerprints; near_duplicates: weights rewritten as real documents are

A row of the model lives from the commit after the call that appended it until the commit after a
later call that deletes its name. Calls act in their order, so a deletion reaches no row that comes
after it: that is what a replacement is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

# Cells of one distance block: 4 M words are 32 MB.
_BLOCK_CELLS = 1 << 22

SCALE_LOG_MEAN = float(np.log(0.09))
SCALE_LOG_DEVIATION = 1.3


def as_words(fingerprints: Any) -> U64:
    """Fingerprints as uint64 (n, W), from (n,) or (n, W)."""
    words = np.asarray(fingerprints, dtype=np.uint64)
    return words[:, None] if words.ndim == 1 else words


def distances(stored: Any, queries: Any) -> I64:
    """Hamming distances, int64 (m, n): every query against every stored row."""
    stored, queries = as_words(stored), as_words(queries)
    total = np.zeros((len(queries), len(stored)), dtype=np.int64)
    for word in range(stored.shape[1]):
        total += np.bitwise_count(queries[:, None, word] ^ stored[None, :, word])
    return total


def matches(stored: Any, queries: Any, h: int) -> I64:
    """All (query, row, distance) with distance <= h, int64 (r, 3), sorted by (query, row)."""
    stored, queries = as_words(stored), as_words(queries)
    found = [np.empty((0, 3), dtype=np.int64)]
    step = max(1, _BLOCK_CELLS // max(1, len(stored)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        near = np.zeros((len(block), len(stored)), dtype=np.uint16)
        for word in range(stored.shape[1]):
            near += np.bitwise_count(block[:, None, word] ^ stored[None, :, word])
        query, row = np.nonzero(near <= h)
        found.append(np.column_stack([query + start, row, near[query, row]]).astype(np.int64))
    return np.concatenate(found)


def answers(stored: Any, ids: Any, queries: Any, h: int) -> list[tuple[int, int, int]]:
    """All (query, distance, id) with distance <= h, unique and sorted, as the package answers."""
    named = [int(name) for name in ids]
    found = matches(stored, queries, h).tolist()
    return sorted({(query, distance, named[row]) for query, row, distance in found})


@dataclass(frozen=True, slots=True)
class Row:
    """A stored row: its words, its name (an id or a key), the commit that brought it, and when it
    came."""

    words: tuple[int, ...]
    name: Any
    commit: int
    came: int = 0


@dataclass
class Model:
    """What an index holds, told as two lists. `names` are ids or keys, one kind per model."""

    rows: list[Row] = field(default_factory=list)
    commits: int = 0
    appended: list[Row] = field(default_factory=list)
    deleted: list[Any] = field(default_factory=list)
    expired: int = 0

    def append(self, fingerprints: Any, names: Iterable[Any], came: int = 0) -> None:
        """Buffer rows; they are seen from the next commit on."""
        rows = [tuple(int(word) for word in words) for words in as_words(fingerprints)]
        self.appended += [
            Row(words, name, 0, came) for words, name in zip(rows, names, strict=True)
        ]

    def delete(self, names: Iterable[Any]) -> None:
        """Buffer a deletion of every row of these names that is here by now."""
        names = set(names)
        self.deleted += names
        self.appended = [row for row in self.appended if row.name not in names]

    def expire(self, before: int) -> int:
        """Buffer a deletion of every row that came before; how many there were."""
        dead = set(self.deleted)
        left = [
            row for row in self.rows if row.name not in dead and row.came >= self.expired
        ] + self.appended
        count = sum(row.came < before for row in left)
        if count:
            self.appended = [row for row in self.appended if row.came >= before]
            self.expired = before
        return count

    def document(self, name: Any) -> list[tuple[int, ...]]:
        """The rows of a name that a commit would leave, sorted."""
        rows = [row.words for row in self.appended if row.name == name]
        if name not in self.deleted:
            rows += [
                row.words for row in self.rows if row.name == name and row.came >= self.expired
            ]
        return sorted(rows)

    def replace(self, fingerprints: Any, names: Iterable[Any], came: int = 0) -> None:
        """Delete the names, append the rows; one commit."""
        names = list(names)
        self.delete(names)
        self.append(fingerprints, names, came)

    def commit(self) -> None:
        """Make the buffered steps take effect, all at once."""
        self.commits += 1
        dead = set(self.deleted)
        self.rows = [
            row for row in self.rows if row.name not in dead and row.came >= self.expired
        ]
        self.rows += [replace(row, commit=self.commits) for row in self.appended]
        self.discard()

    def discard(self) -> None:
        """Forget the buffered steps."""
        self.appended, self.deleted, self.expired = [], [], 0

    def copy(self) -> Model:
        """An independent model of the committed state."""
        return Model(list(self.rows), self.commits)

    def query(self, queries: Any, h: int) -> list[tuple[int, int, Any]]:
        """All (query, distance, name) with distance <= h among committed rows, unique, sorted."""
        queries = as_words(queries)
        if not self.rows or not len(queries):
            return []
        stored = np.array([row.words for row in self.rows], dtype=np.uint64)
        return sorted(
            {
                (query, distance, self.rows[row].name)
                for query, row, distance in matches(stored, queries, h).tolist()
            }
        )

    def contents(self) -> list[tuple[tuple[int, ...], Any]]:
        """Every live row as (words, name), sorted."""
        return sorted((row.words, row.name) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def signs(weights: F32) -> U64:
    """Fingerprints of weights (n, b): bit 63 of word 0 is column 0; zero and above is a one."""
    packed = np.packbits(weights >= 0, axis=1)
    return np.ascontiguousarray(packed).view(">u8").astype(np.uint64)


def normal_weights(rng: np.random.Generator, rows: int, bits: int = 64) -> F32:
    """Weights of documents with nothing in common: float32 (rows, bits), standard normal."""
    return rng.standard_normal((rows, bits), dtype=np.float32)


def uniform(rng: np.random.Generator, rows: int, words: int = 1) -> U64:
    """Independent, uniformly random fingerprints, (rows, words)."""
    return rng.integers(0, 1 << 64, (rows, words), dtype=np.uint64)


def flip(rng: np.random.Generator, fingerprints: U64, flips: Any) -> U64:
    """The fingerprints with exactly `flips` (a number, or one per row) distinct bits inverted."""
    words = as_words(fingerprints)
    rows, bits = len(words), words.shape[1] * 64
    flips = np.broadcast_to(np.asarray(flips), (rows,))
    rank = np.argsort(rng.random((rows, bits)), axis=1).argsort(axis=1)
    return words ^ signs(np.where(rank < flips[:, None], 1, -1).astype(np.float32))


def skewed(
    rng: np.random.Generator, rows: int, words: int = 1, templates: int = 2000, flips: int = 12
) -> U64:
    """Fingerprints in families: a template each, with 0 to `flips` of its bits inverted.

    Families differ in size as a power law, so that some headers carry far more rows than others.
    """
    centres = uniform(rng, templates, words)
    popularity = 1 / np.arange(1, templates + 1)
    family = rng.choice(templates, rows, p=popularity / popularity.sum())
    return flip(rng, centres[family], rng.integers(0, flips + 1, rows))


def near_duplicates(rng: np.random.Generator, weights: F32, h: int) -> tuple[F32, I64]:
    """Rewrites of documents whose fingerprints differ from theirs in at most h bits.

    A rewrite adds Laplace noise times a scale of the document's own, exp(N(ln 0.09, 1.3)) in units
    of the standard deviation of a weight: flips then follow |W| as on revisions of real pages.
    Documents that no draw keeps within h are tried again, up to 64 times.

    Returns
    -------
    float32 (r, b), int64 (r,)
        The rewrites' weights and the row of `weights` each was made of, in rising order.
    """
    rewritten = np.empty_like(weights)
    pending = np.arange(len(weights))
    originals = signs(weights)
    for _ in range(64):
        scale = np.exp(rng.normal(SCALE_LOG_MEAN, SCALE_LOG_DEVIATION, (len(pending), 1)))
        noise = rng.laplace(size=(len(pending), weights.shape[1])) * scale
        trial = (weights[pending] + noise).astype(np.float32)
        apart = np.bitwise_count(signs(trial) ^ originals[pending]).sum(axis=1)
        kept = apart <= h
        rewritten[pending[kept]] = trial[kept]
        pending = pending[~kept]
        if not len(pending):
            break
    rows = np.setdiff1d(np.arange(len(weights)), pending)
    return rewritten[rows], rows


def _gaussian(rng: np.random.Generator, weights: F32) -> F32:
    return weights + 0.08 * rng.standard_normal(weights.shape, np.float32)


def _laplace(rng: np.random.Generator, weights: F32) -> F32:
    return weights + 0.06 * rng.laplace(size=weights.shape).astype(np.float32)


def _rare_and_large(rng: np.random.Generator, weights: F32) -> F32:
    """One weight in ten changes, by noise of twice the deviation of a weight."""
    changed = rng.random(weights.shape) < 0.1
    return weights + 2.0 * changed * rng.standard_normal(weights.shape, np.float32)


def _independent(rng: np.random.Generator, weights: F32) -> F32:
    """Three bits flip, whatever their weights."""
    places = np.argpartition(rng.random(weights.shape), 3, axis=1)[:, :3]
    changed = weights.copy()
    np.put_along_axis(changed, places, -np.take_along_axis(weights, places, 1), 1)
    return changed


KINDS = {
    "Gaussian": _gaussian, "Laplace": _laplace, "rare large changes": _rare_and_large,
    "independent of weights": _independent,
}
"""How rewrites change weights. The flips of the first two follow |W|; of the last two they do not.
"""


def rewritten(rng: np.random.Generator, kind: str, weights: F32, h: int) -> tuple[F32, I64]:
    """Rewrites of a kind at distance 1 to h, and the row that each was made of, in rising order."""
    found = KINDS[kind](rng, weights)
    apart = np.bitwise_count(signs(found) ^ signs(weights)).sum(axis=1)
    near = np.flatnonzero((apart >= 1) & (apart <= h))
    return found[near], near
