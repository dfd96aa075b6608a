"""Builds shards and publishes them: whole, verified, under a name that says what is in them.

    pages.shards/
      shards.json                                the shard map
      shards/00003-9f3c5a7e12d4b680/             number, digest of rows and region: known before
      shards/00003-9f3c5a7e12d4b680/51d0c7…/     the shard, an index directory, named by its seal
      shards/.00003-….XXXXXXXX/new               one that is being built here, or copied here
    WORK/.00003-….XXXXXXXX/new                   one that is being built on a local disk

Once a shard is built, `new` gets its seal for a name, and the folder around it the other name.

Invariants
1. A shard gets its name when all of it is durable and was read back. Who is second with the same
   rows and region finds it there, verifies it and its options, and throws its own away. So a folder
   of a name has one shard.
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

from simindex.checks import require
from simindex.distributed import digest
from simindex.distributed.shard import Facts, Shard, ids_of
from simindex.distributed.shard_contents import describe, verify_shard
from simindex.distributed.shard_plan import ShardPlan
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
from simindex.storage.files import durable, locks
from simindex.storage.files.published import FOLDER, NAME, SEAL
from simindex.storage.files.refusals import translated
from simindex.writing.admission import check_recipe, require_sketch
from simindex.writing.replacement import (
    clear_up,
    folder_beside,
    left_to_the_next_run,
    remove_beside,
)

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
    fill: Callable[[Index], None] | None = None,
) -> Shard:
    """`build_shard` of a shard that is in no plan: one that is split off or added later.

    `fill` appends the batches where more is known of their rows, such as when they came.
    """
    for batch in batches:
        require_fitting(batch, options, options.recipe)

    def write(path: Path) -> None:
        with open_index(path, "n", options=options) as index:
            if fill is not None:
                fill(index)
                return
            for batch in batches:
                index.append(batch)

    known = Known(
        name_of(number, _digest(batches, options, region)), number, region,
        Facts.of(options, options.recipe), options,
    )
    return published(Path(root), known, write, work)


def require_fitting(batch: Batch, options: IndexOptions, recipe: Recipe | None) -> None:
    """Raises RecipeMismatch unless the recipe of a batch is that of all shards, or not known, and
    InvalidBatch unless its sketches are as wide as theirs.

    An index without rows takes both from its first batch, and other shards would have none.
    """
    if batch.recipe is not None and recipe is None:
        raise RecipeMismatch(
            "a recipe made the batch, and the shards have none",
            remedy="give the plan IndexOptions(recipe=...), or the batch without its recipe",
            differences={},
        )
    check_recipe(batch.recipe, recipe)
    require_sketch(batch, options)


def require_parent(root: Path) -> None:
    """Raises IndexNotFound unless there is a folder in which a collection can be made."""
    parent = root.absolute().parent
    if not parent.is_dir():
        raise IndexNotFound(
            f"there is no folder {parent} for a collection of shards", remedy="create it first",
            path=str(root),
        )


def _digest(batches: Iterable[Batch], options: IndexOptions, region: str) -> int:
    digests = [digest.region_digest(region)]
    digests += (
        digest.rows_digest(ids_of(batch, options.key_secret), batch.rows, batch.sketches)
        for batch in batches
    )
    return digest.joined_digest(digests)


def name_of(number: int, rows_digest: int) -> str:
    return f"{number:05d}-{rows_digest:016x}"


class Known(NamedTuple):
    """What a shard has to be once it is built, or found."""

    name: str
    number: int
    region: str
    facts: Facts
    options: IndexOptions


def published(
    root: Path, known: Known, write: Callable[[Path], None], work: str | Path | None = None
) -> Shard:
    """The shard of a name, which `write` builds unless it is there."""
    require_parent(root)
    path = root / FOLDER / known.name
    with translated(path, True):
        for folder in (root, path.parent):
            if not folder.is_dir():
                with suppress(FileExistsError):  # another task was faster
                    durable.make_directory(folder)
        clear_up_shard(path)
        found = _as_published(path, known)
        if found is not None:
            return found
        if work is None:
            return _given_its_name(path, known, write)
        with _beside(Path(work) / known.name) as built:
            write(built)
            return _given_its_name(path, known, partial(_copy, built))


def _given_its_name(path: Path, known: Known, write: Callable[[Path], None]) -> Shard:
    with _beside(path) as new:
        write(new)
        made = describe(new, known.number, known.region)
        if name_of(known.number, int(made.rows_digest, 16)) != path.name:
            raise InvalidOption(
                f"the rows of shard {known.number} changed while it was built",
                remedy="give the same batches each time they are read", shard=known.number,
            )
        durable.move(new, new.with_name(made.seal))
        while True:
            try:
                durable.move(new.parent, path)
                return replace(made, path=str(path / made.seal))
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            found = _as_published(path, known)  # another task was faster
            if found is not None:
                return found


def _as_published(path: Path, known: Known) -> Shard | None:
    """What is known of a shard that is there already, once all of it was verified; None if none is.

    From here on it counts as published now, since `sweep` removes what no map has named for long.
    """
    try:
        os.utime(path)
    except FileNotFoundError:
        return None
    try:
        index = _index_in(path)
        found = describe(index, known.number, known.region)
        wrong = [one.what for one in verify_shard(found)]
        if name_of(known.number, int(found.rows_digest, 16)) != path.name:
            wrong.append("it has other rows than its name says")
        if replace(found.facts, h=known.facts.h) != known.facts:
            wrong.append("it has another recipe, or other options")
        differences = _differences(index, known.options)
        if not (wrong or differences) and found.seal != index.name:
            wrong.append("it is not what was published under this name")
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


def _index_in(path: Path) -> Path:
    """The shard in a folder that was published. Raises IndexNotFound unless there is one."""
    try:
        found = [one for one in path.iterdir() if SEAL.fullmatch(one.name)]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexNotFound(f"{path} is not the folder of a shard", path=str(path)) from error
    if len(found) != 1:
        raise IndexNotFound(f"{path} holds {len(found)} shards, not 1", path=str(path))
    return found[0]


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


def clear_up_shard(path: Path) -> None:
    """Removes what killed runs have left next to the folder of a shard, also with its seal."""
    with left_to_the_next_run():
        for beside in [*path.parent.iterdir()]:
            match = UNFINISHED.fullmatch(beside.name)
            if match is None or match[1] != path.name:
                continue
            held = locks.hold(beside)
            if held is not None:
                with held:
                    unseal(beside)
    clear_up(path)


def unseal(folder: Path) -> None:
    """Shards in a folder that goes are called as those that are not published."""
    for inner in [*folder.iterdir()]:
        if SEAL.fullmatch(inner.name):
            durable.move(inner, folder / "new")


def remove(path: Path) -> None:
    """Removes the folder of a shard: its name goes first, then its files."""
    beside, held = folder_beside(path)
    with held:
        durable.move(path, beside)  # which is empty
        unseal(beside)
        remove_beside(beside, path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A name next to a path for what is to be moved there; what still has it then goes."""
    clear_up_shard(path)
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
