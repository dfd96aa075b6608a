"""Collections of shards next to one index of the same rows, and their answers as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracle

import simindex
from simindex.arrays import U64
from simindex.distributed import Shards, merge_pairs

SHARDS = (1, 2, 3, 7)


def families(seed: int, rows: int, words: int = 1, h: int = 3) -> U64:
    """Fingerprints of which many are equal, or within h, in an order that mixes them.

    Some differ in leading bits alone, so that they are in different shards, and some are in chains.
    """
    rng = np.random.default_rng(seed)
    base = oracle.uniform(rng, rows // 4 + 1, words)
    near = oracle.flip(rng, base, rng.integers(0, h + 1, len(base)))
    chained = oracle.flip(rng, near, h)
    leading = base.copy()
    for row, bits in enumerate(rng.integers(0, h + 1, len(base)).tolist()):
        for bit in rng.choice(5, bits, replace=False).tolist():
            leading[row, 0] ^= np.uint64(1 << (63 - bit))
    found = np.concatenate([base, near, chained, leading, base[::3]])
    return np.ascontiguousarray(found[rng.permutation(len(found))][:rows])


def local_index(path: Path, batch: simindex.Batch) -> simindex.Index:
    """One index of all rows, open for reading."""
    options = simindex.IndexOptions(bits=batch.bits, recipe=batch.recipe)
    with simindex.open(path, "n", options=options) as index:
        index.append(batch)
    return simindex.open(path)


def same_secret(index: simindex.Index) -> simindex.IndexOptions:
    """Options that give keys the ids that they have in an index."""
    return simindex.IndexOptions(
        bits=index.options.bits, keys=index.options.keys, key_secret=index.options.key_secret,
        recipe=index.recipe,
    )


def answer(found: Any) -> dict[str, tuple[str, bytes] | list[Any]]:
    """The columns of a result with their dtypes, and its keys."""
    names = {
        "Matches": ("query", "id", "distance"),
        "TopMatches": ("query", "id", "distance"),
        "Pairs": ("a", "b", "distance"),
        "Clusters": ("id", "cluster", "representative", "distance", "size"),
    }[type(found).__name__]
    columns = {name: np.ascontiguousarray(getattr(found, name)) for name in names}
    told: dict[str, Any] = {
        name: (column.dtype.str, column.shape, column.tobytes()) for name, column in columns.items()
    }
    return {**told, "keys": found.keys()}


def answers(held: simindex.Index | Shards, queries: Any, h: int, k: int) -> dict[str, Any]:
    """All questions, as bytes: an index and its shards give the same."""
    return {
        "query": answer(held.query(queries, h=h)),
        "limited": answer(held.query(queries, h=h, limit=2)),
        "top": answer(held.top(queries, k=k)),
        "pairs": answer(merge_pairs(held.pairs(h=h))),
        "clusters": answer(held.clusters(h=h)),
        "components": answer(held.clusters(h=h, mode="components")),
        "large clusters": answer(held.clusters(h=h, singletons=False)),
    }
