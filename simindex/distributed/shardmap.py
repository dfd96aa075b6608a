"""The shard map: which shards a collection has. One small file, replaced at once.

    pages.shards/shards.json

    {"kind": "simindex shard map", "version": 1,
     "generation": 4,                        one more with each replacement
     "facts": {"bits": 64, "recipe": "5c…", "names": "ids", "secret": null, "format": 1, "h": 3, …},
     "shards": [{"number": 0, "name": "00000-9f…/51…", "region": "", "rows": 334, …}, …],
     "checksum": "…"}                        of all the rest

A query takes the map once, so it sees one generation throughout. A shard that is replaced has
another name, and its directory stays until `sweep`. Each name ends with the seal of what the map
says of the shard, its facts included: whoever changes that must rename the directory, too.

Invariants
1. A map names only shards that are published, alike, each once, and each with rows of its own ids.
   Who replaces a map and who removes shards have the same lock, and the former looks at all shards
   just before, so what was removed between its publishing and its map is in no map.
2. Who replaces a map has read the one it replaces; else nothing is changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simindex.checks import is_int, require_seconds
from simindex.distributed import regions
from simindex.distributed.publication import UNFINISHED, clear_up_shard, remove
from simindex.distributed.shard import Facts, Shard, require_alike, seal
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    IndexLocked,
    IndexNotFound,
    InvalidOption,
    raised_by_a_handler,
)
from simindex.storage.files import durable, locks
from simindex.storage.files.published import FOLDER, MAP, NAME, SEAL
from simindex.storage.files.refusals import translated
from simindex.values import dataclass

KIND, VERSION = "simindex shard map", 1

MOST_BYTES = 1 << 28
"""Of a map that is read: more is not one."""

KEEP_S = 3600.0
"""How long shards that no map names are kept: calls may still read them, or publish them."""

RESTORE = "restore it from a copy, or build the collection again; published shards are kept"

_DIGITS = {"uuid": 32, "checksum": 32, "rows_digest": 16}
"""Lengths of hexadecimal values."""


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shards of a collection at one time. It pickles."""

    root: str
    generation: int
    shards: tuple[Shard, ...]

    @property
    def facts(self) -> Facts:
        """What all shards share."""
        return self.shards[0].facts

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(shard.rows for shard in self.shards)

    @property
    def h(self) -> int:
        """The radius of calls without one."""
        return self.facts.h

    def __len__(self) -> int:
        return len(self.shards)

    def shard(self, number: int) -> Shard:
        """The shard of a number. Raises InvalidOption if there is none."""
        for shard in self.shards:
            if shard.number == number:
                return shard
        raise InvalidOption(
            f"there is no shard {number} in {self.root}",
            remedy=f"give one of {', '.join(str(shard.number) for shard in self.shards)}",
            shard=number,
        )

    def replaced(self, shards: Iterable[Shard]) -> ShardMap:
        """The next map: some shards in the place of those of their numbers, or new.

        Raises InvalidOption or RecipeMismatch unless all are alike and have ids of their own, as
        far as the smallest and largest tell; `shard_check.shared_ids` tells the rest.
        """
        held = {shard.number: shard for shard in self.shards}
        held.update((shard.number, shard) for shard in shards)
        return of_shards(
            self.root, [held[number] for number in sorted(held)], generation=self.generation + 1
        )


def of_shards(root: str | Path, shards: Iterable[Shard], *, generation: int = 1) -> ShardMap:
    """A map of some shards. Raises InvalidOption or RecipeMismatch unless they are alike."""
    listed = tuple(shards)
    if not listed:
        raise InvalidOption(f"{root} would have no shards", remedy="give at least one")
    require_alike(listed)
    return ShardMap(str(root), generation, listed)


def read_map(root: str | Path) -> ShardMap:
    """The newest map of a collection. Reads one file, and opens no shard.

    Raises
    ------
    IndexNotFound
        If there is no map.
    CorruptFile, FormatTooNew
        If it is damaged, says what cannot be or other than was published of a shard, or is of a
        newer version.
    """
    path = Path(root) / MAP
    with translated(path, False):
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise IndexNotFound(
                f"there is no shard map at {path}",
                remedy="name the folder of a collection of shards, or build one",
                path=str(path),
            ) from error
    return _decoded(Path(root), path, data)


def version(root: str | Path) -> tuple[int, ...]:
    """What changes with each replacement of the map; empty if there is none."""
    try:
        found = (Path(root) / MAP).stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def write_map(new: ShardMap) -> None:
    """Replaces the map at once, and for good; readers see the old one or the new one.

    Raises
    ------
    IndexLocked
        If another process replaces it now, or has done so since this one's was read.
    IndexNotFound
        If a shard is not there any more. The old map stays.
    """
    root = Path(new.root)
    data = _encoded(new)
    with translated(root / MAP, True), _alone(root):
        before = read_map(root) if (root / MAP).exists() else None
        found = 0 if before is None else before.generation
        if found != new.generation - 1:
            raise IndexLocked(
                f"the shard map of {root} was replaced meanwhile: it has generation {found}, not "
                f"{new.generation - 1}",
                remedy="read the map again and repeat the change", path=str(root / MAP),
                found=found, expected=new.generation - 1,
            )
        _require_there(new)
        with durable.NewFile(root) as file:
            file.write(data, 0)

            def same(fd: int) -> None:
                if os.pread(fd, len(data) + 1, 0) != data:
                    raise CorruptFile(
                        f"{root / MAP} reads back differently than it was written",
                        remedy="check the disk", path=str(root / MAP),
                    )

            file.publish(MAP, same, replacing=True)
        named = {shard.folder for shard in new.shards}
        for shard in () if before is None else before.shards:
            if shard.folder not in named:
                with suppress(OSError):  # `sweep` counts from here on
                    os.utime(shard.folder)


def _require_there(new: ShardMap) -> None:
    for shard in new.shards:
        if not Path(shard.path).is_dir():
            raise IndexNotFound(
                f"{shard.said} was removed before a shard map named it; the map stays as it was",
                remedy="repeat the call, and give `sweep` more seconds than it takes",
                path=shard.path, shard=shard.number,
            )


def sweep(root: str | Path, *, older_than_s: float = KEEP_S) -> list[str]:
    """Removes shards that the map does not name; returns their names.

    Those younger than `older_than_s` are kept, since a task may have published them for the next
    map, or a query may be about to open them. What killed tasks have left goes, too.

    0 seconds are safe, and slow others down: a change that runs meanwhile raises IndexNotFound and
    leaves the map as it was, and a query begins again, a few times. A shard that is published
    longer before the map names it than `older_than_s` ends its change in the same way.
    """
    least_s = require_seconds(older_than_s, "older_than_s")
    folder = Path(root) / FOLDER
    gone = []
    with translated(folder, True), _alone(Path(root)):
        named = {shard.folder.name for shard in read_map(root).shards}
        for path in sorted(folder.iterdir()):
            unfinished = UNFINISHED.fullmatch(path.name)
            if unfinished is not None:
                clear_up_shard(folder / unfinished[1])
            if NAME.fullmatch(path.name) is None or path.name in named:
                continue
            if time.time() - path.stat().st_mtime >= least_s:
                remove(path)
                gone.append(path.name)
    return gone


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    held = locks.hold(root)
    if held is None:
        if not root.is_dir():
            raise IndexNotFound(
                f"there is no folder {root}", remedy="build its shards first", path=str(root)
            )
        raise IndexLocked(
            f"another process is changing the shard map of {root}",
            remedy="read the map again and repeat the change", path=str(root),
        )
    with held:
        yield


def _encoded(shard_map: ShardMap) -> bytes:
    def entry(shard: Shard) -> dict[str, Any]:
        told = shard.told
        del told["facts"]
        return {"name": shard.name, **told}

    content = {
        "kind": KIND, "version": VERSION, "generation": shard_map.generation,
        "facts": asdict(shard_map.facts),
        "shards": [entry(shard) for shard in shard_map.shards],
    }
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode() + b"\n"


def _checksum(content: dict[str, Any]) -> str:
    told = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(told, digest_size=16).hexdigest()


def _decoded(root: Path, path: Path, data: bytes) -> ShardMap:
    try:
        content = json.loads(data)
        if content["kind"] != KIND or not is_int(content["version"]):
            raise ValueError("is not a shard map")
        if content["version"] > VERSION:
            raise FormatTooNew(
                f"{path} has version {content['version']}, this version of simindex reads "
                f"{VERSION}", remedy="install a newer simindex", path=str(path),
                found=content["version"], expected=VERSION,
            )
        if content.pop("checksum") != _checksum(content):
            raise ValueError("does not have the checksum that it was written with")
        return _checked(root, content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if raised_by_a_handler(error):
            raise
        what = f"has no {error}" if isinstance(error, KeyError) else str(error)
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            what = f"is not JSON ({error})"
        raise CorruptFile(
            f"{path} is damaged: it {what}", remedy=RESTORE, path=str(path)
        ) from error


def _checked(root: Path, content: dict[str, Any]) -> ShardMap:
    """The map, once nothing in it contradicts the rest; ValueError says what does."""
    facts = Facts(**content["facts"])
    h, generation = facts.h, content["generation"]
    _need(is_int(h) and h >= 0, f"says h={h!r}")
    _need(h <= facts.bits, f"says h={h} of {facts.bits} bits")
    _need(is_int(generation) and generation >= 0, f"says generation={generation!r}")
    shards = tuple(_shard(root, facts, entry) for entry in content["shards"])
    _need(bool(shards), "names no shard")
    for what in ("number", "name"):
        values = [getattr(shard, what) for shard in shards]
        _need(len(set(values)) == len(values), f"names a {what} of a shard twice")
    return ShardMap(str(root), generation, shards)


def _shard(root: Path, facts: Facts, entry: dict[str, Any]) -> Shard:
    name, number = entry.pop("name"), entry["number"]
    said = f"of shard {number!r}"
    folder, _, known = name.partition("/")
    match = NAME.fullmatch(folder) and SEAL.fullmatch(known)
    _need(match is not None and is_int(number), f"has a name {said} that is none: {name!r}")
    place = str(root / FOLDER / name)
    found = seal({**entry, "facts": asdict(facts)})
    if found != known:
        raise CorruptFile(
            f"{root / MAP} does not say of shard {number} ({place}) what it was published with: "
            f"the seal of that is {known}, and of this {found}",
            remedy=RESTORE, path=str(root / MAP), shard=number, found=found, expected=known,
        )
    _need(
        folder == f"{number:05d}-{entry['rows_digest']}",
        f"has a name {said} of other rows: {name!r}",
    )
    _need(regions.is_region(entry["region"]), f"has no region {said}")
    for what, digits in _DIGITS.items():
        value = entry[what]
        _need(re.fullmatch(rf"[0-9a-f]{{{digits}}}", value) is not None, f"has no {what} {said}")
    for what in ("rows", "least_id", "greatest_id", "generation"):
        _need(is_int(entry[what]) and entry[what] >= 0, f"says {what}={entry[what]!r} {said}")
    least, greatest = entry["least_id"], entry["greatest_id"]
    _need(
        entry["rows"] <= greatest - least + 1 and greatest < 1 << 64,
        f"has {entry['rows']} rows {said} with ids from {least} to {greatest}",
    )
    files = tuple(entry.pop("files").items())
    for file, size in files:
        inside = not Path(file).is_absolute() and ".." not in Path(file).parts
        _need(inside and is_int(size) and size >= 0, f"names a file {said} that is none: {file!r}")
    return Shard(path=place, facts=facts, files=files, **entry)


def _need(holds: bool, else_it: str) -> None:
    if not holds:
        raise ValueError(else_it)
