"""What is there of an index, and what is wrong with it: what a repair goes by.

    FORMAT       whole, or made again: segments carry the index's uuid
    catalog      its records, read from the pages without the engine (catalog_records.py)
    segments     their headers, and which chunks agree with their checksums (segment_remains.py)
    the choice   which segments are the index (segment_choice.py), with which pending rows and
                 deletions (catalog_contents.py)

An inventory (inventory.py) takes up what each of them finds.

A head is certain if a catalog has both its meta pages, there is no doubt which is the newest, its
tree leads to that head, and no file is newer than it allows: then it says what the index holds.
Otherwise files count for themselves, and the newest head that is left, if there is one, only helps
to judge them.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from simindex.records.reports import Progress
from simindex.repair import catalog_contents, deletion_files, overlap
from simindex.repair.catalog_records import CatalogRecords
from simindex.repair.inventory import Inventory
from simindex.repair.segment_choice import choose_segments, names_in, read_headless
from simindex.repair.segment_remains import SegmentRemains
from simindex.storage.catalog.records import LAST_GENERATION, Head
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.files.file_names import repaired_catalogs
from simindex.storage.files.format import format_agrees, read_format
from simindex.storage.segment_files import checked_designs, slice_design
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.record import NAME, generation_of

SAMPLE_IDS = 1 << 20

UUID_BYTES = 16

LIKELY_ORDINAL = 1 << 40
"""Ids below may be numbers that the index gave; hashes hardly ever are."""


def anything_of_an_index(path: Path) -> bool:
    """Whether a directory has FORMAT, a catalog, or a segment: all else is not an index."""
    return (
        any(map(os.path.lexists, (path / "FORMAT", path / "catalog" / "data.mdb")))
        or any(map(NAME.fullmatch, names_in(path / "segments")))
        or any((place / "data.mdb").exists() for place in repaired_catalogs(path))
    )


def survey(path: Path, progress: Progress | None = None) -> Inventory:
    """Reads all there is of an index, segments once, in bounded memory.

    Raises
    ------
    FormatTooNew, FormatTooOld
        If another version wrote any of it.
    CorruptFile
        If nothing says how rows were stored, so that no index can be made; or
        there is a link where a directory or the catalog's file should be.
    StorageFailed
        If the system refuses to read a file.
    """
    found = Inventory(path)
    _read_format(found)
    _read_files(found, progress)
    with _catalog_records(found) as records:
        if not _choose_uuid(found, records):
            records = None
        found.deletion_files = deletion_files.listed(path / "segments", found.uuid)
        _read_head(found, records)
        _read_options(found, records)
        assert found.options is not None
        read_headless(found, records)
        for file in found.files.values():
            file.examine(found.options)
        choose_segments(found, records)
        _read_contents(found, records)
        _count_lost(found)
        _number(found, records)
    _read_lock(found)
    return found


def _read_format(found: Inventory) -> None:
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


def _choose_uuid(found: Inventory, records: CatalogRecords | None) -> bool:
    """Takes the uuid that FORMAT, the catalog and the segments name, or two of the three.

    Files of another index are left. Returns whether the catalog is this index's own.
    """
    rows: Counter[bytes] = Counter()
    for file in found.files.values():
        rows[file.identity.index] += file.rows + 1
    in_catalog = None if records is None else records.whole("meta", b"index")
    if in_catalog is not None and len(in_catalog) != UUID_BYTES:
        in_catalog = None
    votes = [found.uuid, in_catalog, next(iter(uuid for uuid, _ in rows.most_common(1)), None)]
    cast = [uuid for uuid in votes if uuid]
    chosen = max(cast, key=cast.count) if cast else os.urandom(UUID_BYTES)
    if found.uuid and chosen != found.uuid:
        found.error(found.path / "FORMAT", "belongs to another index")
        found.format_sound = False
    found.uuid = chosen
    for name, file in list(found.files.items()):
        if file.identity.index != found.uuid:
            found.foreign[name] = "belongs to another index"
            del found.files[name]
    if in_catalog is None or in_catalog == chosen:
        return True
    found.error(found.path / "catalog", "belongs to another index")
    return False


def _read_files(found: Inventory, progress: Progress | None) -> None:
    directory = found.path / "segments"
    for path in (directory, found.path / "catalog", found.path / "catalog" / "data.mdb"):
        if path.is_symlink():
            raise CorruptFile(
                f"{path} is a link", path=str(path),
                remedy="replace it by what it leads to, or remove it if that is lost; then run "
                "`simindex repair` again",
            )
    if not directory.is_dir():
        found.error(directory, "is not a folder" if directory.exists() else "is missing")
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
            found.files[path.name] = SegmentRemains(path, read)
        except (FormatTooNew, FormatTooOld):
            raise
        except CorruptFile as error:
            found.unreadable[path.name] = error.what


@contextmanager
def _catalog_records(found: Inventory) -> Iterator[CatalogRecords | None]:
    """The records of the catalog, or of the one that an interrupted repair was to put there."""
    places = [found.path / "catalog"]
    if not places[0].exists():
        places = repaired_catalogs(found.path)
    records, fault = None, "is missing"
    try:
        for place in places:
            if records is not None and records.rooted:
                break
            try:
                another = CatalogRecords.read(place / "data.mdb")
            except CorruptFile:
                another, fault = None, "is not a regular file"
            if another is not None:
                if records is not None:
                    records.close()
                records, found.catalog = another, place
        if records is None or found.catalog != found.path / "catalog":
            found.error(found.path / "catalog" / "data.mdb", fault)
        elif records.breach is not None:
            found.error(found.path / "catalog" / "data.mdb", records.breach)
        yield records
    finally:
        if records is not None:
            records.close()


def _read_lock(found: Inventory) -> None:
    path = found.path / "catalog" / "lock.mdb"
    with suppress(FileNotFoundError, NotADirectoryError):
        if not stat.S_ISREG(path.lstat().st_mode):
            found.error(path, "is not a regular file")
            found.obstacle = path


def _read_head(found: Inventory, records: CatalogRecords | None) -> None:
    """The head to go by: the certain one, or the newest that most of is left of."""
    heads = [] if records is None else records.heads()
    if records is None or not heads:
        found.lose(
            "the catalog's head: rows that waited in the catalog for a segment and deletions since "
            "each segment was written are lost, and of a segment whose files are all gone nothing "
            "says; rows of appends that were not committed may be back"
        )
        return
    newest = _newest_file(found)
    head, rooted = heads[0]
    later = any(other.generation > head.generation for other, _ in heads)
    # Of a transaction that did not end there may be a later head, but then the pages are sound.
    if rooted and records.ordered and not (later and records.breach):
        # A file of the next commit was written ahead of it, unless the meta pages are in doubt.
        found.head, found.certain = head, newest <= head.generation + records.numbered
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
        runs += [("tombstones", run) for run in candidate.tombstones if not run.file]
        missing = sum(records.run(name, run) is None for name, run in runs)
        missing += sum(
            run.file not in found.deletion_files for run in candidate.tombstones if run.file
        )
        return missing + sum(name not in found.files for name in candidate.segments)

    found.head = min((head for head, _ in heads), key=lambda head: (
        left(head) > 0, -head.generation, left(head)
    ))
    found.lose(
        f"the catalog's newest head, perhaps: it is of commit "
        f"{found.head.generation}; later deletions and rows waiting for a segment are lost if "
        "there were any"
    )


def _newest_file(found: Inventory) -> int:
    """The generation of the newest file of the index; 0 if there is none."""
    segments = (file.identity.generation for file in found.files.values())
    return max([0, *segments, *found.deletion_files.values()])


def _read_options(found: Inventory, records: CatalogRecords | None) -> None:
    """From the catalog, or from the newest segment."""
    told: list[dict[str, Any]] = []
    if records is not None:
        crc = None if found.head is None else found.head.values.get("options")
        payloads = [records.whole("meta", b"options", crc), records.whole("meta", b"options")]
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
    if not found.certain:
        # The first rows decide whether there are keys: a catalog of before them does not know.
        told.sort(key=lambda values: values.get("keys") is None)
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
            f"{found.path} cannot be repaired: none of its files that say how rows are stored can "
            "be read",
            remedy="build the index again, or restore files from a backup",
            path=str(found.path),
        )
    for name, file in list(found.files.items()):
        own = file.identity.bits, file.keyed, file.timed, file.sketch_bits
        if own != (options.bits, options.keyed, options.times, options.sketch_bits):
            found.foreign[name] = "belongs to an index with other options"
            del found.files[name]


def _read_contents(found: Inventory, records: CatalogRecords | None) -> None:
    options, head = found.options, found.head
    assert options is not None
    found.values, lost_values = catalog_contents.values(records, head, options)
    found.tombstones, lost_deletions, wrong = catalog_contents.deletions(
        records, head, found.path / "segments", found.deletion_files, _newest_file(found),
        certain=found.certain, options=options,
    )
    for name, what in wrong.items():
        found.error(found.path / "segments" / name, what)
    runs, lost_runs = catalog_contents.waiting(records, head, options)
    for what, rows in [*lost_runs, *lost_deletions, *lost_values]:
        if head is not None:
            found.error(found.path / "catalog", f"has no {what}")
        found.lose(what, rows)
    if options.times and head is None:
        found.lose("what had expired: of these rows, those that no merge had dropped are back")
    newer = [file for file in found.segments if head is None or file.name not in head.segments]
    for table, sample in runs:
        every = np.arange(len(table), dtype=np.int64)
        dead = Deletions([found.tombstones], found.expired).dead(table, table.ids, every)
        if not found.certain:  # a later commit may have made a segment of them
            dead |= overlap.stored(table, newer)
        found.runs.append((catalog_contents.without(table, dead), sample))


def _count_lost(found: Inventory) -> None:
    """Tells which rows of segments are lost; of these, none that is known to have been deleted."""
    for file in found.segments:
        if file.damage is not None:
            rows, unknown = file.lost_rows(found.tombstones, found.expired)
            perhaps = f"; {unknown:,} of them may have been deleted" if unknown else ""
            if rows:
                found.lose(f"{rows:,} of the {file.rows:,} rows of {file.name}{perhaps}", rows)
    for name, known in found.missing.items():
        if known is None:
            found.lose(f"all rows of {name}; how many they were is not known")
            continue
        rows, horizon = known
        deleted = found.tombstones.newest > (horizon or 0) or found.expired > 0
        perhaps = "; some of them may have been deleted" if deleted else ""
        found.lose(f"all {rows:,} rows of {name}{perhaps}", rows)


def _number(found: Inventory, records: CatalogRecords | None) -> None:
    """Numbers above all that were given out before, so that none is given twice."""
    head = found.head or Head(0, 0, 0)
    names = [*found.files, *found.unreadable, *found.deletion_files]
    generations = [generation_of(name) for name in names]
    found.generation = max(
        [head.generation, found.tombstones.newest,
         *(file.identity.horizon for file in found.files.values()),
         *(number for number in generations if number < LAST_GENERATION)]
    )
    runs = [] if records is None else [
        *records.run_numbers("pending"), *records.run_numbers("tombstones")
    ]
    found.next_run = max([head.next_run, *(n + 1 for n in runs if n < LAST_GENERATION)])
    found.appended, found.latest = head.appended, head.latest
    if not found.certain:
        found.appended = max(head.appended, _likely_appended(found))
        found.latest = max([head.latest, *(file.latest() for file in found.segments)])


def _likely_appended(found: Inventory) -> int:
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
