"""Datasets of Ray as batches, and answers as Datasets.

    a block     fingerprint   uint64, or lists of W of them
                id or key     integers, or texts or bytes; neither if rows are numbered
                sketch, size  lists of uint64, and how many features a document has, if known
    an answer   the columns that the result has for Arrow
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import ray

from simindex.distributed.ray.cluster import too_little
from simindex.errors import InvalidBatch
from simindex.records.arguments import as_fingerprints
from simindex.records.batch import Batch

ROWS = 1 << 16
"""Of a batch that a Dataset, or a larger batch, is cut into."""

FINGERPRINT = "fingerprint"

COLUMNS = {"id": "ids", "key": "keys", "sketch": "sketch", "size": "features"}
"""Other columns of a block, by the arguments of `Batch`."""


def is_dataset(given: object) -> bool:
    """Whether it is a Dataset of Ray, whose import takes a second."""
    kind = type(given)
    return kind.__module__.startswith("ray.data") and hasattr(given, "iter_batches")


def batches_of(given: Any) -> Iterator[Batch]:
    """The batches of a Dataset, of one batch, or of several."""
    if is_dataset(given):
        require_a_processor(given)
        for table in given.iter_batches(batch_size=ROWS, batch_format="pyarrow"):
            if len(table):
                yield batch_of(table)
    elif isinstance(given, Batch | np.ndarray) or not isinstance(given, Iterable):
        batch = given if isinstance(given, Batch) else Batch(given)
        for start in range(0, len(batch), ROWS):
            yield batch.take(np.arange(start, min(start + ROWS, len(batch))))
    else:
        for some in given:
            yield some if isinstance(some, Batch) else Batch(as_fingerprints(some))


def batch_of(table: Any) -> Batch:
    """The batch of a block, in Arrow or pandas, that has rows: others do not tell their width.

    Other columns are left out. Raises InvalidBatch if there is no column of fingerprints.
    """
    names = list(getattr(table, "column_names", getattr(table, "columns", ())))
    if FINGERPRINT not in names:
        raise InvalidBatch(
            f"a block has no column {FINGERPRINT!r}, but {', '.join(map(repr, names)) or 'none'}",
            remedy="rename the column with uint64 numbers, or lists of them", found=names,
            expected=FINGERPRINT,
        )
    given = {
        argument: table[name] for name, argument in COLUMNS.items()
        if name in names and (name != "size" or "sketch" in names)
    }
    return Batch(table[FINGERPRINT], **given)


def dataset(parts: Iterable[Any]) -> Any:
    """A Dataset of Ray of some results: a block for each, with the columns that it has for Arrow.

    Results are taken one at a time, and each goes into the object store, so that an answer larger
    than memory is spilled to the disk by Ray.
    """
    import pyarrow as pa
    from ray import data

    blocks = [ray.put(pa.table(part)) for part in parts]
    return data.from_arrow_refs(blocks)


def require_a_processor(given: Any) -> None:
    """Raises ClusterFailed if a Dataset would wait for ever: its reading takes a processor."""
    from ray.data.dataset import MaterializedDataset

    free = float(ray.available_resources().get("CPU", 0.0))
    if free < 1 and not isinstance(given, MaterializedDataset):
        raise too_little(1, 1.0, "reading of a Dataset")
