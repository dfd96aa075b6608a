"""A shard: an index directory that nobody writes to any more, and what is known of it.

    Facts    what all shards of a collection share: width, recipe, kind of names, format
    Shard    one of them: where it is, which rows it has, what its files add up to

    shards/00003-9f3c5a7e12d4b680/51d0c7a94e8b2f36/     its directory
           number-digest of rows  seal                  of all that is known of it

`opened` compares what costs nothing to read: sizes of files, uuid, commit, rows, facts. What is in
`shard_contents.py` reads all of it.

Invariants
1. The directory of a published shard never changes: a shard with other rows has another directory.
2. An id is in one shard only, in one row.
3. What is said of a shard has the seal that its directory is named by, or it is not believed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from simindex.arrays import U64
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexNotFound,
    InvalidOption,
    RecipeMismatch,
    SimindexError,
    StorageFailed,
    what_happened,
)
from simindex.index.index import Index
from simindex.index.opening import open as open_index
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.simhash.radius import raw_radius
from simindex.simhash.recipe import Recipe
from simindex.storage.files.format import MAJOR, read_format
from simindex.storage.files.published import RESTORE
from simindex.storage.files.refusals import translated
from simindex.storage.tables.keys import KeyHeap
from simindex.values import dataclass

CHUNK_ROWS = 1 << 16
"""Rows of a shard that are in memory at once."""

OTHER_STRUCTURES = (
    'build the collection again with structures of this kind, or use method="auto"'
)

DAMAGE = (CorruptFile, IndexNotFound, StorageFailed)
"""Errors of a file of a shard."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What all shards of a collection share."""

    bits: int
    recipe: str | None
    """Identity of the recipe, or None."""
    names: str
    """`"ids"`, `"str"` or `"bytes"`: what rows are named by."""
    secret: str | None
    """Digest of the secret that ids of keys are made with; None without keys."""
    format: int
    """Major version of the files."""
    sketch: int
    """Bits of a sketch; 0 if there are none."""
    h: int
    """The radius of calls without one."""

    @classmethod
    def of(cls, options: IndexOptions, recipe: Recipe | None) -> Facts:
        """Those of indexes of some options, as this version writes them."""
        secret = options.key_secret if options.keyed else None
        return cls(
            options.bits,
            None if recipe is None else recipe.identity,
            options.key_kind if options.keyed else "ids",
            None if secret is None else hashlib.blake2b(secret, digest_size=16).hexdigest(),
            MAJOR,
            options.sketch_bits,
            raw_radius(options.bits) if recipe is None else recipe.h,
        )


@dataclass(frozen=True, slots=True)
class Shard:
    """A published shard. It pickles, so that a task on another process can open it."""

    number: int
    path: str
    """The directory of the index."""
    facts: Facts
    region: str
    """Leading bits of all its rows, or how many of their bits are ones; "" if it takes any row."""
    rows: int
    least_id: int
    greatest_id: int
    """Of an empty shard both ids are 0."""
    uuid: str
    generation: int
    files: tuple[tuple[str, int], ...]
    """Paths in the directory, and bytes."""
    checksum: str
    """Of all files."""
    rows_digest: str
    """Of the ids, fingerprints and sketches of its rows, in any order, and of its region."""

    @property
    def folder(self) -> Path:
        """Its directory is alone in this one, which is published and removed with it."""
        return Path(self.path).parent

    @property
    def name(self) -> str:
        """Its directory among those of all shards."""
        return f"{self.folder.name}/{Path(self.path).name}"

    @property
    def told(self) -> dict[str, Any]:
        """All that is known of it but its path, as JSON has it."""
        told = {one.name: getattr(self, one.name) for one in fields(Shard) if one.name != "path"}
        return {**told, "facts": asdict(self.facts), "files": dict(self.files)}

    @property
    def seal(self) -> str:
        """16 hexadecimal digits of all that is known of it but its path."""
        return seal(self.told)

    @property
    def said(self) -> str:
        """The shard in a message."""
        return f"shard {self.number} ({self.path})"


@dataclass(frozen=True, slots=True)
class OpenShard(Shard):
    """A shard that whoever runs its tasks keeps open. Functions of shards take it as it is."""

    index: Index

    @classmethod
    def of(cls, shard: Shard) -> OpenShard:
        """The shard, opened as `open_shard` does; the caller closes the index."""
        told = {one.name: getattr(shard, one.name) for one in fields(shard)}
        return cls(**told, index=open_shard(shard))

    def is_of(self, shard: Shard) -> bool:
        """Whether it is this version of a shard that is open."""
        return all(getattr(self, one.name) == getattr(shard, one.name) for one in fields(shard))


def seal(told: dict[str, Any]) -> str:
    """The seal of a shard of which this is told."""
    text = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(text, digest_size=8).hexdigest()


Held = Shard | Index
"""A shard to open for one call, one that is kept open, or an index."""


def ids_of(batch: Batch, secret: bytes | None) -> U64:
    """The ids of the rows of a batch: the given ones, or those of its keys."""
    if batch.keys is None:
        assert batch.ids is not None  # rows of an index have a name
        return batch.ids
    assert secret is not None  # an index with keys has one
    hashes: U64 = KeyHeap.of(batch.keys).hashes(secret)
    return np.ascontiguousarray(hashes[:, 0])


def named_rows(index: Index, chunk_rows: int = CHUNK_ROWS) -> Iterator[tuple[U64, Batch]]:
    """All rows of a shard with their ids, a part at a time."""
    for batch in index.rows(chunk_rows=chunk_rows):
        yield ids_of(batch, index.options.key_secret), batch


def said_name(index: Index, id: int) -> str:
    """What a message calls a row of a shard by: its key, or its id. Reads rows up to it."""
    if index.options.keyed:
        for ids, batch in named_rows(index):
            rows = np.flatnonzero(ids == np.uint64(id))
            if len(rows) and batch.keys is not None:
                return f"key {batch.keys[int(rows[0])]!r}"
    return f"id {id}"


@contextmanager
def opened(held: Held) -> Iterator[Index]:
    """The shard as an index for reading, once it is found to be what is known of it.

    An index that is open already is given back as it is, and stays open. Damage that is met while
    it is used is an error that names the shard, unless only an index was given.

    Raises
    ------
    IndexNotFound
        If the shard is missing.
    CorruptFile
        If files are missing or cut short, or the directory is that of another index.
    RecipeMismatch, InvalidOption
        If the shard has another recipe, width or kind of names than the others.
    """
    if isinstance(held, Index):
        yield held
    elif isinstance(held, OpenShard):
        with named(held):
            yield held.index
    else:
        with open_shard(held) as index, named(held):
            yield index


@contextmanager
def both_opened(one: Held, other: Held) -> Iterator[tuple[Index, Index]]:
    """Two shards, as `opened`. The error of damage names the one that has the file."""
    with opened(one) as first:
        try:
            with opened(other) as second:
                yield first, second
        except DAMAGE as error:
            place = error.data.get("path")
            if isinstance(one, Shard) and place is not None and _is_inside(place, one):
                raise _naming(one, error) from error
            raise


def open_shard(shard: Shard) -> Index:
    """The shard as an index for reading; the caller closes it. Raises what `opened` raises."""
    path = Path(shard.path)
    if not path.is_dir():
        raise IndexNotFound(
            f"{shard.said} is missing", remedy=RESTORE, path=shard.path, shard=shard.number
        )
    with named(shard), translated(path, False):
        _check_sizes(shard)
        index = open_index(path, "r", refresh=False)
        try:
            _check_facts(shard, index)
        except BaseException:
            index.close()
            raise
    return index


def require_alike(shards: tuple[Shard, ...]) -> None:
    """Raises RecipeMismatch, InvalidOption or FormatTooNew unless all shards share their facts."""
    for shard in shards[1:]:
        _check_alike(shard, shard.facts, shards[0].facts, shards[0].said)


def _check_sizes(shard: Shard) -> None:
    for name, size in shard.files:
        path = Path(shard.path) / name
        found = path.stat().st_size if path.is_file() else None
        if found != size:
            what = "is missing" if found is None else f"has {found:,} bytes, not {size:,}"
            raise CorruptFile(
                f"{shard.said} is not whole: {name} {what}",
                remedy=f"copy it again, or {RESTORE}", path=str(path), shard=shard.number,
                found=found, expected=size,
            )


def _check_facts(shard: Shard, index: Index) -> None:
    path = Path(shard.path)
    _check_alike(shard, Facts.of(index.options, index.recipe), shard.facts, "the shard map")
    told = [
        ("the uuid", read_format(path).hex(), shard.uuid),
        ("commit", index.generation, shard.generation),
        ("a number of rows of", len(index), shard.rows),
    ]
    for what, found, known in told:
        if found != known:
            raise CorruptFile(
                f"{shard.said} has {what} {found}, and the shard map says {known}",
                remedy=f"somebody has changed one of them: {RESTORE}", path=shard.path,
                shard=shard.number, found=found, expected=known,
            )


def _check_alike(shard: Shard, found: Facts, known: Facts, whose: str) -> None:
    if found == known:
        return
    has, expected = asdict(found), asdict(known)
    name = next(name for name in has if has[name] != expected[name])
    kind: type[SimindexError] = RecipeMismatch if name == "recipe" else InvalidOption
    if name == "format":
        kind = FormatTooNew if found.format > known.format else FormatTooOld
    differs = f"{name} {has[name]}, and {whose} has {expected[name]}"
    if name == "secret":
        differs = f"another secret than {whose}, so equal keys have other ids"
    raise kind(
        f"{shard.said} has {differs}",
        remedy="build it again, with the recipe and options of the other shards", path=shard.path,
        shard=shard.number, found=has[name], expected=expected[name],
    )


@contextmanager
def named(shard: Shard) -> Iterator[None]:
    """Errors of damage name the shard, and no remedy would change it."""
    try:
        yield
    except InvalidOption as error:
        if error.data.get("lacks") != "structures":
            raise
        raise type(error)(error.what, remedy=OTHER_STRUCTURES, **error.data) from error
    except DAMAGE as error:
        if "shard" in error.data:
            raise
        raise _naming(shard, error) from error


def _naming(shard: Shard, error: SimindexError) -> SimindexError:
    """The same error of damage, which names the shard."""
    while "shard" in error.data and isinstance(error.__cause__, SimindexError):
        error = error.__cause__  # that another shard was named in
    return type(error)(
        f"{shard.said}: {what_happened(error)}", remedy=RESTORE,
        **{**error.data, "shard": shard.number},
    )


def _is_inside(path: Any, shard: Shard) -> bool:
    return Path(path).resolve().is_relative_to(Path(shard.path).resolve())

