"""Whether rows may be added to a collection, and to which shard each goes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from simindex.arrays import I64, U64, Bools
from simindex.distributed import regions
from simindex.distributed.shardmap import ShardMap
from simindex.errors import InvalidBatch
from simindex.records.batch import Batch


def require_free(ids: U64, batch: Batch, known: Iterable[Bools], now: ShardMap) -> None:
    """Raises InvalidBatch if an id or key of a batch comes twice, or a shard has it.

    `ids` are those of its rows.
    """
    def said(row: int) -> str:
        return f"id {ids[row]}" if batch.keys is None else f"key {batch.keys[row]!r}"

    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    remedy = "an id names one row of all shards: leave out rows that are there already"
    if len(again):
        row = int(order[again[0] + 1])
        raise InvalidBatch(
            f"the {said(row)} of row {row} comes twice in the batch", remedy=remedy, row=row
        )
    for shard, there in zip(now.shards, known, strict=True):
        if there.any():
            row = int(np.argmax(there))
            raise InvalidBatch(
                f"{shard.said} has the {said(row)} of row {row} already", remedy=remedy, row=row,
                shard=shard.number,
            )


def places_of(now: ShardMap, batch: Batch) -> I64:
    """Place in the map of the shard that each row goes to, int64 (n,)."""
    places = np.full(len(batch), -1, np.int64)
    by_size = sorted(range(len(now.shards)), key=lambda place: (now.shards[place].rows, place))
    for place in by_size:
        takes = regions.inside(batch.rows, now.shards[place].region)
        places[(places < 0) & takes] = place
    if (places < 0).any():
        row = int(np.argmax(places < 0))
        raise InvalidBatch(
            f"no shard of {now.root} takes row {row}, whose first word is "
            f"{int(batch.rows[row, 0]):#018x}",
            remedy="build the collection again, with regions for all rows", row=row,
        )
    return places
