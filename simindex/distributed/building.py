"""Builds shards and publishes them: whole, verified, under a name that says what is in them.

    pages.shards/
      shards.json                          the shard map
      shards/00003-9f3c5a7e12d4b680/       a shard: an index directory; number, digest of its rows
      shards/.00003-….XXXXXXXX/new         one that is being built here, or copied here
    WORK/.00003-….XXXXXXXX/new             one that is being built on a local disk

Invariants
1. A shard gets its name when all of it is durable and was read back. Who is second with the same
   rows finds it there, verifies it and its options, and throws its own away.
2. Nothing that is published is changed. An error leaves behind at most a folder of the second form,
   which the next run of the same shard removes.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import U64
from simindex.checks import require
from simindex.distributed import digest, regions
from simindex.distributed.plan import ShardPlan
from simindex.distributed.shard import (
    Facts,
    Shard,
    describe,
    ids_of,
    named_rows,
    opened,
    verify_shard,
)
from simindex.errors import (
    CorruptFile,
    IndexExists,
    IndexNotFound,
    InvalidOption,
    RecipeMismatch,
)
from simindex.index.index import Index
from simindex.index.opening import open as open_index
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe
from simindex.storage.files import durable
from simindex.storage.files.refusals import translated
from simindex.writing.admission import check_recipe
from simindex.writing.replacement import (
    clear_up,
    folder_beside,
    left_to_the_next_run,
    remove_beside,
)

FOLDER = "shards"
"""Of the shards, next to the map."""

NAME = re.compile(r"[0-9]{5,}-[0-9a-f]{16}", re.ASCII)

UNFINISHED = re.compile(rf"\.({NAME.pattern})\.[a-z0-9_]{{8}}", re.ASCII)
"""Of a folder in which a shard is built or removed; the first group is its name."""


def build_shard(
    plan: ShardPlan,
    number: int,
    batches: Iterable[Batch],
    root: str | Path,
    *,
    work: str | Path | None = None,
) -> Shard:
    """Builds one shard of a plan and publishes it in `root`. A second run finds it there.

    Parameters
    ----------
    batches : list of Batch
        The rows of this shard, with ids or keys, as `ShardPlan.part` gives them. Any iterable that
        can be read twice: once for the name of the shard, once to build it.
    root : path
        The folder of the collection. It is made if it is missing.
    work : path, optional
        A folder on a local disk, in which the shard is built before it is copied to `root`.
        Default: it is built in `root`.

    Raises
    ------
    InvalidOption, InvalidBatch, RecipeMismatch
        If an id comes twice, or rows belong to another shard, width or recipe.
    IndexNotFound
        If there is no folder for `root`.
    IndexExists
        If a damaged shard, or something else, has the name.
    StorageFull, StorageFailed
        If the system refused to write.
    """
    require(
        not isinstance(batches, Iterator), "batches", type(batches).__name__,
        "a list of batches, or what can be read twice",
    )
    require(0 <= number < len(plan), "number", number, f"a number from 0 to {len(plan) - 1}")
    return build_of(plan.options, number, plan.regions[number], batches, root, work=work)


def build_of(
    options: IndexOptions,
    number: int,
    region: str,
    batches: Iterable[Batch],
    root: str | Path,
    *,
    work: str | Path | None = None,
) -> Shard:
    """`build_shard` of a shard that is in no plan: one that is split off or added later."""
    for batch in batches:
        require_recipe(batch, options.recipe)

    def write(path: Path) -> None:
        with open_index(path, "n", options=options) as index:
            for batch in batches:
                index.append(batch)

    known = _Known(
        _name(number, _digest(batches, options)), number, region,
        Facts.of(options, options.recipe), options,
    )
    return _published(Path(root), known, write, work)


def require_recipe(batch: Batch, recipe: Recipe | None) -> None:
    """Raises RecipeMismatch unless the recipe of a batch is that of all shards, or not known.

    An index without a recipe takes that of its first batch, and an empty shard would have none.
    """
    if batch.recipe is not None and recipe is None:
        raise RecipeMismatch(
            "a recipe made the batch, and the shards have none",
            remedy="give the plan IndexOptions(recipe=...), or the batch without its recipe",
            differences={},
        )
    check_recipe(batch.recipe, recipe)


def extend_shard(shard: Shard, batch: Batch, root: str | Path) -> Shard:
    """Publishes a shard with more rows; the shard itself stays as it is.

    Files of the old rows are hard links where the file system has them. Raises what `build_shard`
    and `opened` raise.
    """
    with opened(shard) as index:
        require_recipe(batch, index.recipe)
        added = digest.rows_digest(ids_of(batch, index.options.key_secret), batch.rows)
        total = digest.joined_digest((int(shard.rows_digest, 16), added))

        def write(path: Path) -> None:
            index.backup(path)
            with open_index(path, "w") as larger:
                larger.append(batch)

        options = replace(index.options, recipe=index.recipe)
        known = _Known(
            _name(shard.number, total), shard.number, shard.region, shard.facts, options
        )
        return _published(Path(root), known, write, None)


def split_shard(shard: Shard, number: int, root: str | Path) -> tuple[Shard, Shard]:
    """Publishes two shards with the rows of one, by the first leading bit in which its rows differ,
    or by their number of ones if that is what its region is.

    The first one keeps the number, the second one gets `number`. The shard itself stays as it is.
    Weights that the shard has sampled do not go along. Raises InvalidOption if the first 64 bits of
    all rows are equal, or their numbers of ones, and what `build_shard` and `opened` raise.
    """
    with opened(shard) as index:
        halves = _halves(index, shard.region)
        if halves is None:
            what = "first 64 bits" if regions.ones_of(shard.region) is None else "number of ones"
            raise InvalidOption(
                f"{shard.said} cannot be split: its rows have the same {what}",
                remedy="leave it as it is", shard=shard.number, path=shard.path,
            )
        options = replace(index.options, recipe=index.recipe)
        first, second = (
            build_of(options, place, half, _Rows(index, half), root)
            for half, place in zip(halves, (shard.number, number), strict=True)
        )
    return first, second


class _Rows:
    """The rows of an index that are in a region, as often as they are asked for."""

    def __init__(self, index: Index, region: str) -> None:
        self._index, self._region = index, region

    def __iter__(self) -> Iterator[Batch]:
        for _, batch in named_rows(self._index):
            chosen = regions.inside(batch.rows, self._region)
            if chosen.all():
                yield batch
            elif chosen.any():
                yield batch.take(chosen.nonzero()[0])


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


def require_parent(root: Path) -> None:
    """Raises IndexNotFound unless there is a folder in which a collection can be made."""
    parent = root.absolute().parent
    if not parent.is_dir():
        raise IndexNotFound(
            f"there is no folder {parent} for a collection of shards", remedy="create it first",
            path=str(root),
        )


def _digest(batches: Iterable[Batch], options: IndexOptions) -> int:
    return digest.joined_digest(
        digest.rows_digest(ids_of(batch, options.key_secret), batch.rows) for batch in batches
    )


def _name(number: int, rows_digest: int) -> str:
    return f"{number:05d}-{rows_digest:016x}"


class _Known(NamedTuple):
    """What a shard has to be once it is built, or found."""

    name: str
    number: int
    region: str
    facts: Facts
    options: IndexOptions


def _published(
    root: Path, known: _Known, write: Callable[[Path], None], work: str | Path | None
) -> Shard:
    """The shard of a name, which `write` builds unless it is there."""
    require_parent(root)
    path = root / FOLDER / known.name
    with translated(path, True):
        for folder in (root, path.parent):
            if not folder.is_dir():
                with suppress(FileExistsError):  # another task was faster
                    durable.make_directory(folder)
        clear_up(path)
        found = _as_published(path, known)
        if found is not None:
            return found
        if work is None:
            return _given_its_name(path, known, write)
        with _beside(Path(work) / known.name) as built:
            write(built)
            return _given_its_name(path, known, partial(_copy, built))


def _given_its_name(path: Path, known: _Known, write: Callable[[Path], None]) -> Shard:
    with _beside(path) as new:
        write(new)
        made = describe(new, known.number, known.region)
        if _name(known.number, int(made.rows_digest, 16)) != path.name:
            raise InvalidOption(
                f"the rows of shard {known.number} changed while it was built",
                remedy="give the same batches each time they are read", shard=known.number,
            )
        while True:
            try:
                durable.move(new, path)
                return replace(made, path=str(path))
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            found = _as_published(path, known)  # another task was faster
            if found is not None:
                return found


def _as_published(path: Path, known: _Known) -> Shard | None:
    """What is known of a shard that is there already, once all of it was verified; None if none is.

    From here on it counts as published now, since `sweep` removes what no map has named for long.
    """
    try:
        os.utime(path)
    except FileNotFoundError:
        return None
    try:
        found = describe(path, known.number, known.region)
        wrong = [one.what for one in verify_shard(found)]
        if _name(known.number, int(found.rows_digest, 16)) != path.name:
            wrong.append("it has other rows than its name says")
        if found.facts != known.facts:
            wrong.append("it has another recipe, or other options")
        differences = _differences(path, known.options)
    except (CorruptFile, IndexNotFound, InvalidOption) as error:
        if not path.exists():
            return None  # `sweep` removed it meanwhile
        wrong, differences = [error.what], {}
    remedy = "move it away, and build the shard again"
    if differences and not wrong:
        option, (has, asked) = next(iter(differences.items()))
        wrong.append(f"it has {option}={has!r}, not {asked!r}")
        remedy = f"give the {option} that it has, or {remedy}"
    if wrong:
        raise IndexExists(
            f"shard {known.number} cannot be published as {path}, which is there: {wrong[0]}",
            remedy=remedy, path=str(path), shard=known.number,
            **({"option": next(iter(differences))} if differences else {}),
        )
    return found


def _differences(path: Path, asked: IndexOptions) -> dict[str, tuple[Any, Any]]:
    """How an index differs from one of these options, as name -> (its own, that of the options).

    What a caller did not choose counts, too: a shard that was left by a build with other structures
    is none of a build with the usual ones.
    """
    with open_index(path, "r", refresh=False) as index:
        differences: dict[str, tuple[Any, Any]] = {}
        if asked.recipe is not None and index.h != asked.recipe.h:
            differences["h"] = index.h, asked.recipe.h
        mine, theirs = index.options.to_dict(), asked.to_dict()
    mine["times"], theirs["times"] = index.options.times, asked.times
    for name in ("keys", "key_secret", "sketch_bits"):  # of the facts
        mine.pop(name, None)
        theirs.pop(name, None)
    differences.update(
        (name, (mine[name], theirs[name])) for name in theirs if mine[name] != theirs[name]
    )
    return differences


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A name next to a path for what is to be moved there; what still has it then goes."""
    clear_up(path)
    beside, held = folder_beside(path)
    with held:
        try:
            yield beside / "new"
        finally:
            with left_to_the_next_run():
                remove_beside(beside, path)


def _copy(index: Path, to: Path) -> None:
    """Copies an index that is not open, durably. `describe` compares it afterwards."""
    before = digest.file_sizes(index)
    for folder in (to, to / "catalog", to / "segments"):  # also one that has no files
        durable.make_directory(folder)
    for name in before:
        target = to / name
        with durable.NewFile(target.parent) as file, (index / name).open("rb") as source:
            offset = 0
            while piece := source.read(1 << 22):
                file.write(piece, offset)
                offset += len(piece)
            file.publish(target.name, lambda _fd: None)
    if digest.files_digest(to, before) != digest.files_digest(index, before):
        raise CorruptFile(
            f"{to} reads back differently than it was copied", remedy="check the disk",
            path=str(to),
        )
