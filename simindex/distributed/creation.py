"""A new collection of shards: what is so before the first map is written.

    require_new       the folder is not a collection yet
    listed            the rows, as batches
    options_for       options of all shards, of what the rows tell
    parts_of          the rows of each shard
    write_first_map   no id is in two shards: then the collection is there
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, ValuesView
from dataclasses import replace
from pathlib import Path
from typing import Any

from simindex.checks import is_whole
from simindex.distributed import shard_check
from simindex.distributed.publication import require_parent
from simindex.distributed.shard import Shard, opened, said_name
from simindex.distributed.shard_plan import ShardPlan
from simindex.distributed.shardmap import of_shards, write_map
from simindex.errors import IndexExists, InvalidOption
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.storage.files.published import MAP

Run = Callable[..., Iterable[Any]]
"""Runs tasks as `map` does: all of them, with results in their order."""


def require_new(root: str | os.PathLike[str]) -> Path:
    """The absolute path of a folder, before any work. Raises IndexExists if there is a shard map in
    it, and IndexNotFound if there is no folder to make it in."""
    root = Path(root).absolute()
    require_parent(root)
    if (root / MAP).exists():
        raise IndexExists(
            f"{root} is a collection of shards already",
            remedy="name another folder, or append to it", path=str(root),
        )
    return root


def listed(given: Any) -> list[Batch]:
    """Rows of a new collection as batches: of a Batch or fingerprints, or several of them.

    Raises InvalidBatch if they are neither.
    """
    if isinstance(given, Batch) or not isinstance(given, Sequence | Iterator | ValuesView):
        return [given if isinstance(given, Batch) else Batch(given)]
    several = list(given)
    if several and all(map(is_whole, several)):
        return [Batch(several)]
    return [one if isinstance(one, Batch) else Batch(one) for one in several]


def options_for(batches: list[Batch], options: IndexOptions | None) -> IndexOptions:
    """Those of all shards of some batches: with the recipe, width, sketches and kind of names of
    the first one that has rows. A shard that gets none of them must be told, too."""
    first = next((batch for batch in batches if len(batch)), batches[0] if batches else None)
    if options is None:
        options = IndexOptions(bits=64 if first is None else first.bits)
    if first is None:
        return options
    if options.recipe is None and first.recipe is not None:
        options = replace(options, recipe=first.recipe)
    if options.recipe is None and not options.sketch_bits:
        options = replace(options, sketch_bits=first.sketch_bits)
    if options.keys is None and first.keys is not None:
        kind: Any = "bytes" if first.keys and isinstance(first.keys[0], bytes) else "str"
        options = replace(options, keys=kind)
    return options


def parts_of(plan: ShardPlan, number: int, batches: list[Batch]) -> list[Batch]:
    """The rows of a shard among some batches that follow each other."""
    parts, row = [], 0
    for batch in batches:
        part = plan.part(number, batch, row)
        row += len(batch)
        if len(part):
            parts.append(part)
    return parts


def write_first_map(root: Path, made: tuple[Shard, ...], run: Run) -> None:
    """The map of shards that were built. Raises InvalidOption if two of them share an id."""
    _require_unique(made, run)
    write_map(of_shards(root, made))


def _require_unique(shards: tuple[Shard, ...], run: Run) -> None:
    pairs = shard_check.overlapping(shards)
    shared = run(shard_check.shared_ids, [one for one, _ in pairs], [other for _, other in pairs])
    for (one, other), ids in zip(pairs, shared, strict=True):
        if len(ids):
            with opened(one) as index:
                name = said_name(index, int(ids[0]))
            raise InvalidOption(
                f"{one.said} and {other.said} both have the {name}",
                remedy="an id names one row of all shards: give each row an id or key of its own",
                found=int(ids[0]), shard=one.number,
            )
