"""A shard with more rows, and two shards of the rows of one; the old shard stays as it is.

    shard 1, region ""        0010…  0010…  0011…  0011…        all its rows begin with 001
    split_shard               1: 000,0010        5: 0011,01,1

Invariants
1. Nothing is published of a shard whose bytes are not those that it was published with.
2. The regions of two halves have no row in common, and all rows that the old region had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from simindex.arrays import U32, U64
from simindex.distributed import digest, regions
from simindex.distributed.publication import Known, build_of, name_of, published, require_fitting
from simindex.distributed.shard import CHUNK_ROWS, Shard, ids_of, named_rows, opened
from simindex.distributed.shard_contents import require_untouched
from simindex.errors import InvalidOption
from simindex.index.aged_rows import aged_rows, append_aged
from simindex.index.index import Index
from simindex.index.opening import open as open_index
from simindex.records.batch import Batch


def extend_shard(shard: Shard, batch: Batch, root: str | Path) -> Shard:
    """Publishes a shard with more rows; the shard itself stays as it is.

    Files of the old rows are hard links where the file system has them. Reads all of the shard
    first, so that damage is not published anew. Raises what `build_shard`, `opened` and
    `require_untouched` raise.
    """
    with opened(shard) as index:
        require_untouched(shard)
        require_fitting(batch, index.options, index.recipe)
        ids = ids_of(batch, index.options.key_secret)
        added = digest.rows_digest(ids, batch.rows, batch.sketches)
        total = digest.joined_digest((int(shard.rows_digest, 16), added))

        def write(path: Path) -> None:
            index.backup(path)
            with open_index(path, "w") as larger:
                larger.append(batch)

        options = replace(index.options, recipe=index.recipe)
        known = Known(
            name_of(shard.number, total), shard.number, shard.region, shard.facts, options
        )
        return published(Path(root), known, write)


def split_shard(shard: Shard, number: int, root: str | Path) -> tuple[Shard, Shard]:
    """Publishes two shards with the rows of one, by the first leading bit in which its rows differ,
    or by their number of ones if that is what its region is. Their regions cover that of the shard.

    The first one keeps the number, the second one gets `number`. The shard itself stays as it is.
    Rows keep the times when they came. Weights that the shard has sampled do not go along. Raises
    InvalidOption if the first 64 bits of all rows are equal, or their numbers of ones, and what
    `extend_shard` raises.
    """
    with opened(shard) as index:
        require_untouched(shard)
        halves = _halves(index, shard.region)
        if halves is None:
            what = "first 64 bits" if regions.ones_of(shard.region) is None else "number of ones"
            raise InvalidOption(
                f"{shard.said} cannot be split: its rows have the same {what}",
                remedy="leave it as it is", shard=shard.number, path=shard.path,
            )
        options = replace(index.options, recipe=index.recipe)
        first, second = (
            build_of(options, place, half, rows, root, fill=rows.fill)
            for half, place in zip(halves, (shard.number, number), strict=True)
            for rows in (_Rows(index, half),)
        )
    return first, second


class _Rows:
    """The rows of an index that are in a region, as often as they are asked for."""

    def __init__(self, index: Index, region: str) -> None:
        self._index, self._region = index, region

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch, _ in self._aged())

    def fill(self, index: Index) -> None:
        """Appends them to another index, with the times when they came."""
        for batch, came in self._aged():
            append_aged(index, batch, came)

    def _aged(self) -> Iterator[tuple[Batch, U32 | None]]:
        for batch, came in aged_rows(self._index, CHUNK_ROWS):
            chosen = regions.inside(batch.rows, self._region).nonzero()[0]
            if len(chosen) == len(batch):
                yield batch, came
            elif len(chosen):
                yield batch.take(chosen), None if came is None else came[chosen]


def _halves(index: Index, region: str) -> tuple[str, str] | None:
    """Two regions that tell rows of an index apart; None if they are alike."""
    if regions.ones_of(region) is None:
        bounds = _bounds(index)
        return None if bounds is None else regions.parted(bounds, region)
    held = np.zeros(index.options.bits, np.int64)
    for _, batch in named_rows(index):
        held += np.bincount(regions.counted(batch.rows), minlength=len(held))
    return regions.halved(held, region)


def _bounds(index: Index) -> tuple[int, int] | None:
    """The smallest and the largest first word of all rows, which come in this order."""
    least: int | None = None
    greatest = 0
    for _, batch in named_rows(index):
        words: U64 = batch.rows[:, 0]
        least = int(words[0]) if least is None else least
        greatest = int(words[-1])
    return None if least is None else (least, greatest)
