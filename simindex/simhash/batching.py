"""From what the kernels made of some texts to their batch: which got no fingerprint, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from simindex.errors import InvalidBatch
from simindex.records.batch import Batch, Skipped, as_keys
from simindex.simhash.reader import Simhashes


def batched(made: Simhashes, recipe: Any, ids: Any, keys: Any) -> Batch:
    """The batch of a recipe's fingerprints, without texts of fewer than its `min_features`.

    Raises InvalidBatch where ids or keys are not one for each text.
    """
    features, least = made.features, recipe.min_features
    _check_length("ids", ids, len(features))
    _check_length("keys", keys, len(features))
    batch = Batch(
        made.fingerprints,
        ids=ids,
        keys=None if keys is None else as_keys(keys, None),
        weights=made.weights,
        recipe=recipe,
    )
    kept = features >= least
    if kept.all():
        return batch
    skipped = tuple(
        Skipped(position, _name(batch, position), _reason(int(features[position]), least))
        for position in np.flatnonzero(~kept).tolist()
    )
    batch = batch.take(np.flatnonzero(kept))
    batch.skipped = skipped
    return batch


def _reason(features: int, least: int) -> str:
    return f"too few features: {features} < {least}" if features else "empty"


def _check_length(name: str, values: Any, n: int) -> None:
    if values is not None and hasattr(values, "__len__") and len(values) != n:
        raise InvalidBatch(
            f"{n} texts but {len(values)} {name}: give one for each text",
            found=len(values), expected=n,
        )


def _name(batch: Batch, position: int) -> Any:
    if batch.keys is not None:
        return batch.keys[position]
    return None if batch.ids is None else int(batch.ids[position])
