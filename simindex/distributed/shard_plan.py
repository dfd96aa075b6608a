"""Which shard each row goes to, decided before any shard is built.

    by="rows"      row   0 ........ 333 | 334 ........ 666 | 667 ........ 999
                   shard       0        |        1         |        2
    by="prefix"    bits  00...          | 01...            | 1...
                   shard       0        |        1         |        2
    by="ones"      ones  0 ......... 30 | 31 ......... 33  | 34 .......... 64
                   shard       0        |        1         |        2

A plan is a small value. Tasks on other machines get it with their part of the rows, and each picks
the rows of its shard. With shards by rows every query asks every shard. Else a query asks only
those with a region within h: leading bits that differ from its own in at most h bits, or a number
of ones that differs from its own by at most h. `ShardPlan.asked` says how many.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from simindex.arrays import I64, U64
from simindex.checks import require, require_whole
from simindex.distributed import regions
from simindex.errors import InvalidBatch
from simindex.options import SECRET_BYTES, IndexOptions
from simindex.records.arguments import as_fingerprints
from simindex.records.batch import Batch
from simindex.values import dataclass

MOST_SHARDS = 10_000

By = Literal["rows", "prefix", "ones"]


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """How many shards there are, and the rows of each. `plan_shards` makes it."""

    options: IndexOptions
    """Of every shard. They name the kind of keys, and the secret of their ids."""
    regions: tuple[str, ...]
    """What rows each shard may have, see `regions`; all "" for shards by rows."""
    starts: tuple[int, ...] | None
    """The first row of each shard; None for others than shards by rows."""

    def __len__(self) -> int:
        return len(self.regions)

    def shards_of(self, batch: Batch, first_row: int = 0) -> I64:
        """The shard of each row of a batch, int64 (n,). `first_row` is its place in the input."""
        as_fingerprints(batch.rows, bits=self.options.bits)
        if self.starts is not None:
            numbers = np.arange(first_row, first_row + len(batch))
            return np.searchsorted(np.array(self.starts), numbers, side="right") - 1
        return regions.places_in(batch.rows, self.regions)

    def part(self, number: int, batch: Batch, first_row: int = 0) -> Batch:
        """The rows of a batch that belong to a shard, each with its id or key.

        Rows without a name get numbers: their places in the input, as if one index was built of
        all. Raises InvalidBatch if the batch has names of another kind than the plan.
        """
        named = self.named(batch, first_row)
        return named.take(np.flatnonzero(self.shards_of(batch, first_row) == number))

    def named(self, batch: Batch, first_row: int) -> Batch:
        """The same batch, its rows numbered if they have no names."""
        keyed = bool(self.options.keyed)
        if keyed is not (batch.keys is not None):
            has, wants = ("keys", "none") if not keyed else ("no keys", "keys")
            raise InvalidBatch(
                f"the batch has {has}, and the shards have {wants}",
                remedy="give the plan IndexOptions(keys=True) for rows with keys, and each batch "
                "names of that kind",
            )
        if keyed or batch.ids is not None:
            return batch
        if first_row + len(batch) > 1 << 64:
            raise InvalidBatch(
                f"there are no numbers for {len(batch):,} rows beyond the largest id",
                remedy="give ids", found=first_row,
            )
        ids = np.arange(len(batch), dtype=np.uint64)
        if len(batch):
            ids += np.uint64(first_row)
        return Batch(
            batch.rows, ids=ids, weights=batch.weights, recipe=batch.recipe, sketch=batch.sketches
        )

    def asked(self, h: int) -> float:
        """How many shards a query within h asks, on average over random fingerprints."""
        return sum(regions.asked_share(region, self.options.bits, h) for region in self.regions)


def plan_shards(
    rows: int | U64,
    shards: int,
    *,
    by: By = "rows",
    options: IndexOptions | None = None,
) -> ShardPlan:
    """Decides how rows are divided among shards.

    Parameters
    ----------
    rows : int, or uint64 (n,) or (n, W)
        How many rows there will be, or their fingerprints, or a sample of them: the fullest
        prefixes are split first, and ranges of ones have about as many rows each.
    by : str
        ``"rows"``: equal runs of the input. ``"prefix"``: by leading bits. ``"ones"``: by how many
        bits are ones.
    options : IndexOptions, optional
        Of every shard, with the recipe. Default: rows of ids or of numbers, 64 bits. With ``keys``
        the plan draws the secret that gives equal keys equal ids in all shards.

    Raises
    ------
    InvalidOption
        If an option is out of range.
    """
    options = IndexOptions() if options is None else options
    require(isinstance(options, IndexOptions), "options", options, "a simindex.IndexOptions")
    require_whole(shards, "shards", 1, MOST_SHARDS)
    require(by in ("rows", "prefix", "ones"), "by", by, '"rows", "prefix" or "ones"')
    if options.keys is None:
        options = replace(options, keys=False)
    if options.keyed and options.key_secret is None:
        options = replace(options, key_secret=secrets.token_bytes(SECRET_BYTES))
    if by == "prefix":
        sample = _sample(rows, options)
        words = np.empty(0, np.uint64) if sample is None else sample[:, 0]
        return ShardPlan(options, regions.balanced(shards, words), None)
    if by == "ones":
        found = regions.ranges(shards, options.bits, _sample(rows, options))
        return ShardPlan(options, found, None)
    total = _count(rows, options)
    starts = tuple(number * total // shards for number in range(shards))
    return ShardPlan(options, ("",) * shards, starts)


def _count(rows: Any, options: IndexOptions) -> int:
    if isinstance(rows, (int, np.integer)):
        return require_whole(rows, "rows", 0)
    return len(as_fingerprints(rows, bits=options.bits))


def _sample(rows: Any, options: IndexOptions) -> U64 | None:
    if isinstance(rows, (int, np.integer)):
        require_whole(rows, "rows", 0)
        return None
    return as_fingerprints(rows, bits=options.bits)
