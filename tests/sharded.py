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
    options = simindex.IndexOptions(
        bits=batch.bits, recipe=batch.recipe,
        sketch_bits=0 if batch.recipe is not None else batch.sketch_bits,
    )
    with simindex.open(path, "n", options=options) as index:
        index.append(batch)
    return simindex.open(path)


def sketched(seed: int, rows: int, words: int = 4) -> simindex.Batch:
    """Rows as of `families` with sketches of which many are equal, or near, each for itself.

    Rows of one fingerprint have equal and other sketches, and rows of a sketch other fingerprints.
    Sizes are apart by up to a factor of two.
    """
    rng = np.random.default_rng(seed)
    fingerprints = families(seed, rows)
    family = rng.integers(0, rows // 6 + 1, rows)
    base = oracle.uniform(rng, rows // 6 + 1, words)[family]
    sketch = oracle.flip(rng, base, rng.integers(0, 3, rows) * 10)
    fingerprints[rows // 2 :] = oracle.flip(
        rng, fingerprints[: rows - rows // 2], rng.integers(0, 5, rows - rows // 2)
    )
    sketch[rows // 2 :] = oracle.flip(
        rng, sketch[: rows - rows // 2], rng.integers(0, 4, rows - rows // 2) * 8
    )
    twins = rng.integers(0, rows // 2, rows // 8)
    fingerprints[: len(twins)], sketch[: len(twins)] = fingerprints[twins], sketch[twins]
    order = rng.permutation(rows)
    fingerprints, sketch = fingerprints[order], np.ascontiguousarray(sketch[order])
    # Rows that are equal in all bits have equal sizes, a few steps from those of others.
    mixed = (fingerprints.reshape(rows, -1)[:, 0] ^ sketch[:, 0]) % np.uint64(7)
    return simindex.Batch(
        fingerprints, sketch=sketch, features=400 + 90 * mixed.astype(np.int64)
    )


def shortened(count: int) -> simindex.Batch:
    """Texts of which each lacks some first and last words of one, with weights and sketches."""
    recipe = simindex.Recipe(weighting="binary", sketch_bits=128)
    words = [f"word{number}" for number in range(60)]
    texts = [" ".join(words[number % 7 : 60 - number // 12]) for number in range(count)]
    batch = recipe.batch(texts, ids=np.arange(count, dtype=np.uint64))
    assert batch.weights is not None
    return batch


def similar_answers(held: simindex.Index | Shards, batch: simindex.Batch, near: Any) -> Any:
    """Questions that take a similarity, as bytes, and what they say of it."""
    found = held.query(batch, **near)
    pairs = merge_pairs(held.pairs(**near))
    stars, components = held.clusters(**near), held.clusters(**near, mode="components")
    collapsed = merge_pairs(held.pairs(**near, collapse_equal=True))
    return {
        "query": answer(found), "limited": answer(held.query(batch, limit=2, **near)),
        "pairs": answer(pairs), "stars": answer(stars), "components": answer(components),
        "large": answer(held.clusters(**near, singletons=False)),
        "said": [
            (one.similarity_bits, one.measure)
            for one in (found.stats, pairs, collapsed, stars, components)
        ],
    }


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
