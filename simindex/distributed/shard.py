"""A shard: an index directory that nobody writes to any more, and what is known of it.

    Facts    what all shards of a collection share: width, recipe, kind of names, format
    Shard    one of them: where it is, which rows it has, what its files add up to

A shard is looked at in two ways. `opened` compares what costs nothing to read: sizes of files,
uuid, commit, rows, facts. `verify_shard` reads every byte.

Invariants
1. The directory of a published shard never changes: a shard with other rows has another directory.
2. An id is in one shard only, in one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simindex.arrays import U64
from simindex.distributed import digest, regions
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexNotFound,
    InvalidOption,
    RecipeMismatch,
    SimindexError,
    what_happened,
)
from simindex.index.index import Index
from simindex.index.opening import open as open_index
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.records.reports import Finding
from simindex.simhash.recipe import Recipe
from simindex.storage.files.format import MAJOR, read_format
from simindex.storage.files.refusals import translated
from simindex.storage.tables.keys import KeyHeap
from simindex.values import dataclass

CHUNK_ROWS = 1 << 16
"""Rows of a shard that are in memory at once."""

RESTORE = "restore the shard from a copy, or build it again"


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
    sketch: int = 0
    """Bits of a sketch; 0 if there are none."""

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
    """Of ids and fingerprints, in any order."""

    @property
    def name(self) -> str:
        """The name of its directory."""
        return Path(self.path).name

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


Held = Shard | Index
"""A shard to open for one call, one that is kept open, or an index."""


class Contents(NamedTuple):
    """What reading all rows of a shard shows."""

    rows: int
    least_id: int
    greatest_id: int
    digest: int
    again: int | None
    """An id that comes twice, if one does."""
    astray: int | None
    """An id of a row that is not in the region, if there is one."""


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


def contents(index: Index, region: str) -> Contents:
    """Reads all rows. Takes 8 bytes of memory a row, to see ids that come twice."""
    held = np.empty(len(index), np.uint64)
    digests: list[int] = []
    astray: int | None = None
    end = 0
    for ids, batch in named_rows(index):
        held[end : end + len(ids)] = ids
        end += len(ids)
        digests.append(digest.rows_digest(ids, batch.rows))
        out = ~regions.inside(batch.rows, region)
        if astray is None and out.any():
            astray = int(ids[int(np.argmax(out))])
    held.sort()
    same = np.flatnonzero(held[1:] == held[:-1])
    least, greatest = (int(held[0]), int(held[-1])) if len(held) else (0, 0)
    again = int(held[same[0]]) if len(same) else None
    return Contents(len(held), least, greatest, digest.joined_digest(digests), again, astray)


def describe(path: Path, number: int, region: str) -> Shard:
    """What is known of an index that becomes a shard. Reads all of it.

    Raises InvalidOption if an id or key comes twice, or a row is not in the region.
    """
    with open_index(path, "r", refresh=False) as index:
        found = contents(index, region)
        facts, generation = Facts.of(index.options, index.recipe), index.generation
        again = None if found.again is None else said_name(index, found.again)
    if again is not None:
        raise InvalidOption(
            f"the {again} comes twice in shard {number}",
            remedy="an id names one row of all shards: give each row an id or key of its own",
            shard=number, found=found.again,
        )
    if found.astray is not None:
        raise InvalidOption(
            f"the row of id {found.astray} does not {regions.said(region)}, as rows of shard "
            f"{number} do",
            remedy="choose rows with ShardPlan.part", shard=number, found=found.astray,
        )
    files = digest.file_sizes(path)
    return Shard(
        number=number, path=str(path), facts=facts, region=region, rows=found.rows,
        least_id=found.least_id, greatest_id=found.greatest_id, uuid=read_format(path).hex(),
        generation=generation, files=tuple(files.items()),
        checksum=digest.files_digest(path, files), rows_digest=f"{found.digest:016x}",
    )


@contextmanager
def opened(held: Held) -> Iterator[Index]:
    """The shard as an index for reading, once it is found to be what is known of it.

    An index that is open already is given back as it is, and stays open.

    Raises
    ------
    IndexNotFound
        If the shard is missing.
    CorruptFile
        If files are missing or cut short, or the directory is that of another index.
    RecipeMismatch, InvalidOption
        If the shard has another recipe, width or kind of names than the others.
    """
    if isinstance(held, OpenShard):
        held = held.index
    if isinstance(held, Index):
        yield held
        return
    with open_shard(held) as index:
        yield index


def open_shard(shard: Shard) -> Index:
    """The shard as an index for reading; the caller closes it. Raises what `opened` raises."""
    path = Path(shard.path)
    if not path.is_dir():
        raise IndexNotFound(
            f"{shard.said} is missing", remedy=RESTORE, path=shard.path, shard=shard.number
        )
    with _named(shard), translated(path, False):
        _check_sizes(shard)
        index = open_index(path, "r", refresh=False)
        try:
            _check_facts(shard, index)
        except BaseException:
            index.close()
            raise
    return index


def verify_shard(shard: Shard) -> list[Finding]:
    """Reads and compares all of a shard. An empty list means that it is what is known of it.

    Compares sizes and checksums of the files, checks the index as `Index.check` does, and counts
    rows, ids and region. Never raises because of the shard. O(bytes), and 8 bytes of memory a row.
    """
    try:
        index = open_shard(shard)
    except SimindexError as error:
        return [Finding("error", shard.path, str(error))]
    with index:
        try:
            wrong = [one for one in index.check() if one.severity == "error"]
            if wrong:
                return wrong
            found = contents(index, shard.region)
            with translated(Path(shard.path), False):
                checksum = digest.files_digest(Path(shard.path), dict(shard.files))
        except SimindexError as error:
            return [Finding("error", shard.path, f"{shard.said}: {error}")]
    told = [
        ("rows", found.rows, shard.rows),
        ("ids", (found.least_id, found.greatest_id), (shard.least_id, shard.greatest_id)),
        ("digest of rows", f"{found.digest:016x}", shard.rows_digest),
        ("checksum of files", checksum, shard.checksum),
    ]
    texts = [
        f"{shard.said} has other {what} than it was published with: {has}, not {known}"
        for what, has, known in told if has != known
    ]
    if found.again is not None:
        texts.append(f"{shard.said} has the id {found.again} twice")
    if found.astray is not None:
        texts.append(
            f"{shard.said}: the row of id {found.astray} does not {regions.said(shard.region)}"
        )
    return [Finding("error", shard.path, text) for text in texts]


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
def _named(shard: Shard) -> Iterator[None]:
    """Errors of damage name the shard."""
    try:
        yield
    except (CorruptFile, IndexNotFound) as error:
        if "shard" in error.data:
            raise
        raise type(error)(
            f"{shard.said}: {what_happened(error)}", remedy=RESTORE,
            **{**error.data, "shard": shard.number},
        ) from error
