"""What is there of an index, and what is wrong with it: what a repair goes by.

    FORMAT       whole, or made again: segments carry the index's uuid
    catalog      its records, read from the pages without the engine (storage/remains.py)
    segments     their headers, and which chunks agree with their checksums (storage/remnant.py)
    the choice   which segments are the index (lineage.py), with which pending rows and deletions

A head is certain if a catalog has both its meta pages, there is no doubt which is the newest, its
tree leads to that head, and no file is newer than it allows: then it says what the index holds.
Otherwise files count for themselves, and the newest head that is left, if there is one, only helps
to judge them.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexNotFound,
    InvalidOption,
    raised_by_a_handler,
)
from simindex.options import IndexOptions
from simindex.records.reports import Finding, Progress
from simindex.repair import lineage, salvage, structures
from simindex.repair.lineage import Kin
from simindex.repair.remains import Remains
from simindex.repair.remnant import Remnant, header_again
from simindex.repair.salvage import Waiting
from simindex.storage.catalog.catalog import LAST_GENERATION, Head, unpack
from simindex.storage.files.envelope import open_envelope
from simindex.storage.files.format import format_agrees, read_format
from simindex.storage.files.names import repaired_catalogs
from simindex.storage.tables.designs import checked_designs, slice_design
from simindex.storage.tables.record import NAME, generation_of
from simindex.storage.tables.tombstones import Tombstones

SAMPLE_ROWS = 512
"""Rows that tell whether a segment is among those that one without names was merged from."""

SAMPLE_IDS = 1 << 20

UUID_BYTES = 16

LIKELY_ORDINAL = 1 << 40
"""Ids below may be numbers that the index gave; hashes hardly ever are."""


@dataclass
class Survey:
    """See the module. `findings` is what is wrong, `losses` what no repair brings back."""

    path: Path
    uuid: bytes = b""
    format_sound: bool = True
    catalog: Path | None = None
    """The directory of the catalog that was read."""
    obstacle: Path | None = None
    """What stands in the place of LMDB's lock file, which holds nothing, and is no regular file."""
    head: Head | None = None
    certain: bool = False
    options: IndexOptions | None = None
    values: dict[str, bytes] = field(default_factory=dict)
    """Values of `meta` that are left."""
    segments: list[Remnant] = field(default_factory=list)
    """Files that are the index, oldest first."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Segment files of which nothing can be had, with what is wrong."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Segment files that were never of this index."""
    missing: dict[str, tuple[int, int | None] | None] = field(default_factory=dict)
    """Segments that are gone: their rows and horizons, as far as these are known."""
    runs: list[Waiting] = field(default_factory=list)
    """Rows waiting for a segment, without those that are deleted."""
    tombstones: Tombstones | None = None
    generation: int = 0
    """Above all that was seen."""
    appended: int = 0
    next_run: int = 0
    findings: list[Finding] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    lost_rows: int = 0
    files: dict[str, Remnant] = field(default_factory=dict)

    def error(self, path: Path | str, what: str) -> None:
        """Notes damage."""
        self.findings.append(Finding("error", str(path), what))

    def lose(self, what: str, rows: int = 0) -> None:
        """Notes a loss, and of how many rows for certain."""
        self.losses.append(what)
        self.lost_rows += rows


def anything_of_an_index(path: Path) -> bool:
    """Whether a directory has FORMAT, a catalog, or a segment: all else is no index."""
    return (
        any(map(os.path.lexists, (path / "FORMAT", path / "catalog" / "data.mdb")))
        or any(map(NAME.fullmatch, _names(path / "segments")))
        or any((place / "data.mdb").exists() for place in repaired_catalogs(path))
    )


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()] if directory.is_dir() else []


def survey(path: Path, progress: Progress | None = None) -> Survey:
    """Reads all there is of an index, segments once, in bounded memory.

    Raises
    ------
    FormatTooNew, FormatTooOld
        If another version wrote any of it.
    CorruptFile
        If what is left does not tell how rows were stored, so that nothing can be made of it; or
        there is a link where a directory or the catalog's file should be.
    StorageFailed
        If the system refuses to read a file.
    """
    found = Survey(path)
    _read_format(found)
    _read_files(found, progress)
    with _remains(found) as remains:
        if not _choose_uuid(found, remains):
            remains = None
        _read_head(found, remains)
        _read_options(found, remains)
        assert found.options is not None
        _read_headless(found, remains)
        for file in found.files.values():
            file.examine(found.options)
        _choose_segments(found, remains)
        _read_records(found, remains)
        _count_lost(found)
        _number(found, remains)
    _read_lock(found)
    return found


# -- FORMAT ----------------------------------------------------------------------------------------


def _read_format(found: Survey) -> None:
    path = found.path
    try:
        found.uuid = read_format(path)
        return
    except IndexNotFound:
        found.error(path / "FORMAT", "is missing")
    except (FormatTooNew, FormatTooOld):
        if format_agrees(path):
            raise
        found.error(path / "FORMAT", "is damaged")
    except CorruptFile as error:
        found.error(path / "FORMAT", error.what)
    found.format_sound = False


def _choose_uuid(found: Survey, remains: Remains | None) -> bool:
    """Takes the uuid that FORMAT, the catalog and the segments name, or two of the three.

    Files of another index are left. Returns whether the catalog is this index's own.
    """
    rows: Counter[bytes] = Counter()
    for file in found.files.values():
        rows[file.identity.index] += file.rows + 1
    in_catalog = None if remains is None else remains.whole("meta", b"index")
    if in_catalog is not None and len(in_catalog) != UUID_BYTES:
        in_catalog = None
    votes = [found.uuid, in_catalog, next(iter(uuid for uuid, _ in rows.most_common(1)), None)]
    cast = [uuid for uuid in votes if uuid]
    chosen = max(cast, key=cast.count) if cast else secrets.token_bytes(UUID_BYTES)
    if found.uuid and chosen != found.uuid:
        found.error(found.path / "FORMAT", "is of another index")
        found.format_sound = False
    found.uuid = chosen
    for name, file in list(found.files.items()):
        if file.identity.index != found.uuid:
            found.foreign[name] = "is of another index"
            del found.files[name]
    if in_catalog is None or in_catalog == chosen:
        return True
    found.error(found.path / "catalog", "is of another index")
    return False


# -- files -----------------------------------------------------------------------------------------


def _read_files(found: Survey, progress: Progress | None) -> None:
    directory = found.path / "segments"
    for path in (directory, found.path / "catalog", found.path / "catalog" / "data.mdb"):
        if path.is_symlink():
            raise CorruptFile(
                f"{path} is a link", path=str(path),
                remedy="put what it leads to in its place, or remove it if that is lost, then run "
                "`simindex repair` again",
            )
    if not directory.is_dir():
        found.error(directory, "is no directory" if directory.exists() else "is missing")
        return
    paths = sorted(path for path in directory.iterdir() if NAME.fullmatch(path.name))
    total = sum(path.lstat().st_size for path in paths)
    done = 0

    def read(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            progress(done, total)

    for path in paths:
        try:
            found.files[path.name] = Remnant(path, read)
        except (FormatTooNew, FormatTooOld):
            raise
        except CorruptFile as error:
            found.unreadable[path.name] = error.what


# -- catalog ---------------------------------------------------------------------------------------


@contextmanager
def _remains(found: Survey) -> Iterator[Remains | None]:
    """The records of the catalog, or of the one that an interrupted repair was to put there."""
    places = [found.path / "catalog"]
    if not places[0].exists():
        places = repaired_catalogs(found.path)
    remains, fault = None, "is missing"
    try:
        for place in places:
            if remains is not None and remains.rooted:
                break
            try:
                another = Remains.read(place / "data.mdb")
            except CorruptFile:
                another, fault = None, "is no regular file"
            if another is not None:
                if remains is not None:
                    remains.close()
                remains, found.catalog = another, place
        if remains is None or found.catalog != found.path / "catalog":
            found.error(found.path / "catalog" / "data.mdb", fault)
        elif remains.breach is not None:
            found.error(found.path / "catalog" / "data.mdb", remains.breach)
        yield remains
    finally:
        if remains is not None:
            remains.close()


def _read_lock(found: Survey) -> None:
    path = found.path / "catalog" / "lock.mdb"
    with suppress(FileNotFoundError, NotADirectoryError):
        if not stat.S_ISREG(path.lstat().st_mode):
            found.error(path, "is no regular file")
            found.obstacle = path


def _read_head(found: Survey, remains: Remains | None) -> None:
    """The head to go by: the certain one, or the newest that most of is left of."""
    heads = [] if remains is None else remains.heads()
    if remains is None or not heads:
        found.lose(
            "the catalog's head: rows that waited in the catalog for a segment and deletions since "
            "each segment was written are lost, and of a segment whose files are all gone nothing "
            "tells; rows of appends that were not committed may be back"
        )
        return
    newest = max((file.identity.generation for file in found.files.values()), default=0)
    head, rooted = heads[0]
    later = any(other.generation > head.generation for other, _ in heads)
    # Of a transaction that did not end there may be a later head, but then the pages are sound.
    if rooted and remains.ordered and not (later and remains.breach):
        # A file of the next commit was written ahead of it, unless the meta pages are in doubt.
        found.head, found.certain = head, newest <= head.generation + remains.numbered
        if not found.certain:
            found.error(found.path / "catalog", (
                f"is older than its segments: it is of commit {head.generation}, and there is a "
                f"file of commit {newest}"
            ))
            found.lose(
                f"deletions and rows waiting for a segment of the commits after "
                f"{head.generation}, if there were any"
            )
        return

    def left(candidate: Head) -> int:
        runs = [("pending", run) for run in candidate.pending]
        runs += [("tombstones", run) for run in candidate.tombstones]
        missing = sum(remains.run(name, run) is None for name, run in runs)
        return missing + sum(name not in found.files for name in candidate.segments)

    found.head = min((head for head, _ in heads), key=lambda head: (
        left(head) > 0, -head.generation, left(head)
    ))
    found.lose(
        f"the catalog's newest head, perhaps: what it tells is as of commit "
        f"{found.head.generation}; later deletions and rows waiting for a segment are lost if "
        "there were any"
    )


# -- options and values ----------------------------------------------------------------------------


def _read_options(found: Survey, remains: Remains | None) -> None:
    """From the catalog, or from the newest segment."""
    told: list[dict[str, Any]] = []
    if remains is not None:
        crc = None if found.head is None else found.head.values.get("options")
        payloads = [remains.whole("meta", b"options", crc), remains.whole("meta", b"options")]
        for payload in payloads:
            if payload is not None:
                with suppress(CorruptFile):
                    values = unpack("options", payload)
                    told += [values] if isinstance(values, dict) else []
    by_age = sorted(found.files.values(), key=lambda file: -file.identity.generation)
    for file in by_age:
        values = file.description()
        values.pop("inputs", None)
        values.pop("salvaged", None)
        told.append(values)
    for values in told:
        if "bits" not in values:
            continue
        try:
            options = IndexOptions.from_dict(values)
            checked_designs(options)
            slice_design(options)
        except (InvalidOption, TypeError, ValueError) as error:
            if raised_by_a_handler(error):
                raise
            continue
        found.options = options
        break
    else:
        raise CorruptFile(
            f"nothing at {found.path} tells how rows were stored, since neither the catalog nor a "
            "segment is left",
            remedy="build the index anew, or bring files back from a backup",
            path=str(found.path),
        )
    for name, file in list(found.files.items()):
        if file.identity.bits != options.bits or file.keyed != options.keyed:
            found.foreign[name] = "is of an index with other options"
            del found.files[name]


# -- segments --------------------------------------------------------------------------------------


def _kin(found: Survey) -> dict[str, Kin]:
    """What the files say of themselves; of merged ones that name none, likely inputs are given."""
    kin = {}
    for name, file in found.files.items():
        inputs = file.description().get("inputs", [])
        known = isinstance(inputs, list) and all(isinstance(name, str) for name in inputs)
        kin[name] = Kin(
            name, file.identity.generation, file.identity.horizon, file.damage is None,
            tuple(inputs) if known else (), file.description().get("salvaged") is True,
        )
    if found.certain:
        return kin
    for name, own in kin.items():
        if own.inputs or not own.merged:
            continue
        inputs = [
            other.name for other in kin.values()
            if other.name != name and other.generation <= own.horizon
            and found.files[other.name].rows <= found.files[name].rows
            and salvage.share_stored(found.files[other.name], found.files[name], SAMPLE_ROWS) > 0.5
        ]
        kin[name] = replace(own, inputs=tuple(inputs))
    return kin


def _choose_segments(found: Survey, remains: Remains | None) -> None:
    kin, head, orphaned = _kin(found), found.head, dict[str, int]()
    live = set() if head is None else set(head.segments)
    if found.certain:
        taken = lineage.as_committed(live, kin)
        missing = taken - kin.keys()
    else:
        taken = lineage.as_found(kin, live, 0 if head is None else head.generation)
        orphaned = _orphaned(found)
        missing = live.union(found.unreadable, orphaned) - kin.keys()
        for name in taken:
            missing -= lineage.ancestors(kin[name], kin)
    order = {name: place for place, name in enumerate([] if head is None else head.segments)}

    def age(name: str) -> tuple[int, int, str]:
        # In the head's order, which is that of age; one in the place of others where these stood.
        places = [order[n] for n in (name, *kin[name].inputs) if n in order]
        return min(places, default=len(order)), kin[name].generation, name

    found.segments = [found.files[name] for name in sorted(taken & kin.keys(), key=age)]
    for file in found.segments:
        if file.damage is not None:
            found.error(file.path, file.damage)
    said = {**found.unreadable, **found.foreign}
    for name in sorted(found.foreign.keys() - missing) if not found.certain else ():
        found.error(found.path / "segments" / name, said[name])
    for name in sorted(missing):
        found.error(found.path / "segments" / name, said.get(name, "is missing"))
        found.missing[name] = _recorded(found, remains, name)
        if found.missing[name] is None and name in orphaned:
            found.missing[name] = orphaned[name], None


def _orphaned(found: Survey) -> dict[str, int]:
    """Segments whose file is gone while others stand beside where it stood, and their rows."""
    rows: dict[str, int] = {}
    known = found.files.keys() | found.unreadable.keys() | found.foreign.keys()
    for path in sorted((found.path / "segments").glob("*-*-*")):
        owner = f"{path.name[:25]}.rows"
        if owner in known or not NAME.fullmatch(owner):
            continue
        with suppress(CorruptFile, OSError):
            identity = open_envelope(path).identity
            if identity.index == found.uuid:
                rows[owner] = identity.rows
    return rows


def _read_headless(found: Survey, remains: Remains | None) -> None:
    """Reads files whose header is damaged, where the catalog or a file beside tells of them."""
    assert found.options is not None
    directory = found.path / "segments"
    names = sorted(_names(directory))
    for name in list(found.unreadable):
        known = [_recorded(found, remains, name)]
        for other in structures.files_of(names, name):
            with suppress(CorruptFile, OSError):
                identity = open_envelope(directory / other).identity
                known.append((identity.rows, identity.horizon))
        for rows, horizon in filter(None, known):
            with suppress(CorruptFile):
                page = header_again(
                    directory / name, rows=rows, horizon=horizon, bits=found.options.bits,
                    keyed=found.options.keyed,
                )
                if page is not None:
                    file = Remnant(directory / name, header=page)
                    if file.identity.index == found.uuid:
                        found.files[name] = file
                        del found.unreadable[name]
                        break


def _recorded(found: Survey, remains: Remains | None, name: str) -> tuple[int, int] | None:
    """(rows, horizon) of a segment as the catalog has them."""
    payload = None
    if remains is not None and found.head is not None and name in found.head.segments:
        payload = remains.record("segments", name.encode(), found.head.segments[name])
    if payload is None:
        return None
    with suppress(CorruptFile, TypeError, ValueError, IndexError):
        rows, horizon, *_ = unpack(name, payload)
        return int(rows), int(horizon)
    return None


# -- what the records give -------------------------------------------------------------------------


def _read_records(found: Survey, remains: Remains | None) -> None:
    options, head = found.options, found.head
    assert options is not None
    found.values, lost_values = salvage.values(remains, head, options)
    found.tombstones, lost_deletions = salvage.deletions(
        remains, head, certain=found.certain, options=options
    )
    runs, lost_runs = salvage.waiting(remains, head, options)
    for what, rows in [*lost_runs, *lost_deletions, *lost_values]:
        if head is not None:
            found.error(found.path / "catalog", f"lacks {what}")
        found.lose(what, rows)
    newer = [file for file in found.segments if head is None or file.name not in head.segments]
    for table, sample in runs:
        every = np.arange(len(table), dtype=np.int64)
        dead = found.tombstones.dead(table, table.ids, every)
        if not found.certain:  # a later commit may have made a segment of them
            dead |= salvage.stored(table, newer)
        found.runs.append((salvage.without(table, dead), sample))


def _count_lost(found: Survey) -> None:
    """Tells which rows of segments are lost; of these, none that is known to have been deleted."""
    assert found.tombstones is not None
    for file in found.segments:
        if file.damage is not None:
            rows, unknown = salvage.lost(file, found.tombstones)
            perhaps = f"; {unknown:,} of them may have been deleted" if unknown else ""
            if rows:
                found.lose(f"{rows:,} of the {file.rows:,} rows of {file.name}{perhaps}", rows)
    for name, known in found.missing.items():
        if known is None:
            found.lose(f"all rows of {name}; how many they were is not known")
            continue
        rows, horizon = known
        deleted = found.tombstones.later_than(0 if horizon is None else horizon)
        perhaps = "; some of them may have been deleted" if deleted else ""
        found.lose(f"all {rows:,} rows of {name}{perhaps}", rows)


def _number(found: Survey, remains: Remains | None) -> None:
    """Numbers above all that were given out before, so that none is given twice."""
    head = found.head or Head(0, 0, 0)
    assert found.options is not None and found.tombstones is not None
    names = [*found.files, *found.unreadable]
    generations = [generation_of(name) for name in names]
    found.generation = max(
        [head.generation, found.tombstones.newest,
         *(file.identity.horizon for file in found.files.values()),
         *(number for number in generations if number < LAST_GENERATION)]
    )
    runs = [] if remains is None else [
        *remains.run_numbers("pending"), *remains.run_numbers("tombstones")
    ]
    found.next_run = max([head.next_run, *(n + 1 for n in runs if n < LAST_GENERATION)])
    found.appended = head.appended
    if not found.certain:
        found.appended = max(head.appended, _likely_appended(found))


def _likely_appended(found: Survey) -> int:
    """At least as many rows as were ever appended, and more than any number given as an id."""
    assert found.options is not None
    rows = sum(file.rows for file in found.files.values()) + sum(len(t) for t, _ in found.runs)
    if found.options.keyed:
        return rows
    highest = -1
    columns = [file.columns()[1] for file in found.files.values()]
    for ids in [*columns, *(table.ids for table, _ in found.runs)]:
        for start in range(0, len(ids), SAMPLE_IDS):
            part = ids[start : start + SAMPLE_IDS]
            small = part[part < LIKELY_ORDINAL]
            highest = max(highest, int(small.max()) if len(small) else -1)
    return max(rows, highest + 1)
