"""Reads everything an index holds and says what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simindex.advising import advice_bytes
from simindex.errors import (
    CorruptFile,
    IndexNotFound,
    SimindexError,
    raised_by_a_handler,
    what_happened,
)
from simindex.options import IndexOptions
from simindex.planning.machine import Machine
from simindex.query import audit
from simindex.records.reports import Finding, Progress
from simindex.simhash.recipe import Recipe
from simindex.storage import ancestry
from simindex.storage.catalog import pages
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.records import stored_options
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.files.envelope import Envelope
from simindex.storage.files.file_names import KEPT_PREFIX, REPAIRED_CATALOG, TEMPORARY
from simindex.storage.files.format import read_format
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables import deletion_file, permuted, slice_lists
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.permuted import PermutedTables
from simindex.storage.tables.record import SegmentRecord
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.segment import Segment
from simindex.storage.tables.slice_lists import SliceLists
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table
from simindex.storage.tables.times import LAST_TIME
from simindex.storage.tables.tombstones import Tombstones

SLICE_ROWS = 1 << 20

Verified = Callable[[int], None]
"""Called with the number of rows of a file that were just verified."""


def faults(
    path: Path, catalog: Catalog, *, index: bytes, options: IndexOptions, snapshot: Snapshot,
    progress: Progress | None = None,
) -> list[Finding]:
    """What is wrong with the files of a commit, and with what the catalog holds now.

    See `Index.check`. Reads each file once, in bounded memory.
    """
    found: list[Finding] = []
    total = sum(len(segment) * _files_of(segment) for segment in snapshot.segments)
    done = 0

    def verified(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, total)

    try:
        if read_format(path) != index:
            found.append(_error(path / "FORMAT", "names another index than the one opened"))
    except (CorruptFile, IndexNotFound) as error:
        found.append(_error(path / "FORMAT", str(error)))
    found += _check_pages(path)
    found += _check_values(path, catalog, options)
    for run, deleted in zip(snapshot.head.tombstones, snapshot.tombstones.runs, strict=True):
        place = path / "segments" / run.file if run.file else path / "catalog"
        found += _check_deletions(place, snapshot, deleted, options.key_secret)
    for segment in snapshot.segments:
        found += _check_segment(path, catalog, segment, options, verified)
    for table, sample in zip(snapshot.pending, snapshot.samples, strict=True):
        wrong = [*_disorder(table, options), *_fault(sample.check)]
        found += [_error(path / "catalog", f"{table.name}: {what}") for what in wrong]
    return found


def strays(path: Path, catalog: Catalog, snapshot: Snapshot) -> list[Finding]:
    """What else is in the directory: files of no commit, and what repairs have kept."""
    found = list(_strays(path, catalog, snapshot))
    for prefix, what in (
        (KEPT_PREFIX, "what a repair replaced; remove it when it is of no more use"),
        (REPAIRED_CATALOG, "left by an interrupted repair; the next one removes it"),
    ):
        found += [Finding("note", str(kept), what) for kept in sorted(path.glob(f"{prefix}*"))]
    return found


def _error(path: Path, what: str) -> Finding:
    return Finding("error", str(path), what)


def _check_pages(path: Path) -> Iterator[Finding]:
    try:
        fault = pages.damage(path / "catalog" / "data.mdb")
    except CorruptFile as error:
        yield _error(path / "catalog", str(error))
        return
    if fault is not None:
        yield _error(path / "catalog", fault.what)


def _fault(act: Callable[[], object]) -> Iterator[str]:
    """What is wrong, if a call says so."""
    try:
        act()
    except CorruptFile as error:
        yield str(error)


def _check_deletions(
    place: Path, snapshot: Snapshot, deleted: Tombstones, secret: bytes | None
) -> Iterator[Finding]:
    if deleted.envelope is not None:
        damaged = deleted.envelope.damaged_chunks()
        yield from _check_bytes(place, deleted.envelope, damaged)
        if damaged:
            return
        wrong = deletion_file.disorder(deleted)
        if wrong is not None:
            yield _error(place, wrong)
            return
    misplaced = 0 if secret is None else deleted.misplaced(secret)
    if misplaced:
        yield _error(place, f"{misplaced:,} deletions are under ids that their keys do not make")
    if deleted.newest > snapshot.head.generation:
        yield _error(place, (
            f"has deletions of commit {deleted.newest}, and the newest commit is "
            f"{snapshot.head.generation}"
        ))


def _check_values(path: Path, catalog: Catalog, options: IndexOptions) -> Iterator[Finding]:
    with catalog.reading() as reading:
        _, head = reading.head()

        def value(name: str) -> None:
            payload = reading.value(head, name)
            if payload is not None:
                require_usable(name, payload, options)

        wanted: list[partial[Any]] = [partial(value, name) for name in head.values]
        wanted += [partial(reading.segment, head, name) for name in head.segments]
        wanted += [partial(reading.run, "pending", run) for run in head.pending]
        wanted += [
            partial(reading.run, "tombstones", run) for run in head.tombstones if not run.file
        ]
        for read in wanted:
            for what in _fault(read):
                yield _error(path / "catalog", what)


def _files_of(segment: Segment) -> int:
    return 1 + len(segment.structures) + (segment.slices is not None)


def _check_segment(
    path: Path, catalog: Catalog, segment: Segment, options: IndexOptions, verified: Verified
) -> Iterator[Finding]:
    """Calls `verified` with the number of verified rows, for each file of the segment."""
    file = path / "segments" / segment.name
    damaged = segment.envelope.damaged_chunks()
    yield from _check_bytes(file, segment.envelope, damaged)
    wrong = [] if damaged else list(_disorder(segment, options, verified))
    for what in wrong:
        yield _error(file, what)
    sound = not damaged and not wrong
    yield from _check_directory(path, catalog, segment.record, 0, segment if sound else None)
    if segment.structures and not damaged:
        expected = permuted.content_sum(segment.fingerprints)
        for structure in segment.structures.values():
            yield from _check_structure(
                path, catalog, segment.record, structure,
                partial(permuted.disorder, structure, expected),
            )
            verified(len(segment))
    if segment.slices is not None and not damaged:
        yield from _check_structure(
            path, catalog, segment.record, segment.slices,
            partial(slice_lists.disorder, segment.slices, segment.fingerprints),
        )
        verified(len(segment))


def _check_bytes(
    file: Path, envelope: Envelope, damaged: list[tuple[int, int]]
) -> Iterator[Finding]:
    for offset, size in damaged:
        yield _error(file, f"damaged within {size} bytes at offset {offset}")
    for offset, size in envelope.filled_gaps():
        yield _error(file, f"not zero between its sections, in {size} bytes at offset {offset}")


def _check_structure(
    path: Path, catalog: Catalog, record: SegmentRecord, structure: PermutedTables | SliceLists,
    disorder: Callable[[], Iterator[str]],
) -> Iterator[Finding]:
    file = path / "segments" / structure.record.name
    try:
        damaged = structure.envelope.damaged_chunks()
        yield from _check_bytes(file, structure.envelope, damaged)
        if damaged:
            return
        wrong = [_error(file, what) for what in disorder()]
        yield from wrong
        tables = structure.tables if isinstance(structure, PermutedTables) else ()
        for number, table in enumerate(tables, structure.record.first_table):
            yield from _check_directory(path, catalog, record, number, None if wrong else table)
    except CorruptFile as error:
        yield _error(file, str(error))


def _check_directory(
    path: Path, catalog: Catalog, record: SegmentRecord, number: int, rows: SortedRows | None
) -> Iterator[Finding]:
    """Compares a stored header directory with the rows, unless these are damaged."""
    name = record.name + (f", table {number}," if number else "")
    try:
        with catalog.reading() as reading:
            _, head = reading.head()
            if record.name not in head.segments:
                return
            if reading.segment(head, record.name) != record:
                return
            stored = reading.directory(record, number)
        if rows is not None and not np.array_equal(stored, rows.compute_directory()):
            yield _error(path / "catalog", f"the header directory of {name} is not its own")
    except CorruptFile as error:
        yield _error(path / "catalog", str(error))


def _disorder(
    table: Table, options: IndexOptions, verified: Verified = lambda rows: None
) -> Iterator[str]:
    """What is inconsistent in a table's rows."""
    previous, kind, secret = 0, options.key_kind, options.key_secret
    oldest = LAST_TIME
    for start in range(0, len(table), SLICE_ROWS):
        stop = min(start + SLICE_ROWS, len(table))
        verified(stop - start)
        words = table.fingerprints[start:stop, 0]
        if int(words[0]) < previous or (words[1:] < words[:-1]).any():
            yield f"rows {start} to {stop} are not sorted"
        previous = int(words[-1])
        if table.times is not None:
            oldest = min(oldest, int(table.times[start:stop].min()))
        if table.keys is None or secret is None:
            continue
        keys = KeyHeap(table.keys.offsets[start : stop + 1], table.keys.data)
        if not keys.within().all():
            yield f"the keys of rows {start} to {stop} are out of bounds"
        elif table.keys.slice(start, stop).faulty(table.ids[start:stop], kind, secret).any():
            yield f"a key of rows {start} to {stop} does not make its id, or is not text"
    if table.times is not None and oldest != table.oldest:
        yield "it has rows older than it says"


def _strays(path: Path, catalog: Catalog, snapshot: Snapshot) -> Iterator[Finding]:
    try:
        files = sorted((path / "segments").iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        yield _error(path / "segments", str(error))
        return
    live = {name for segment in snapshot.segments for name in segment.record.files}
    live.update(run.file for run in snapshot.head.tombstones)
    live |= _live_files(catalog)  # after the listing: of what was committed meanwhile, too
    for file in files:
        if file.name not in live and os.path.lexists(file):
            what = "left by an interrupted write" if TEMPORARY.fullmatch(file.name) else (
                "not part of the index"
            )
            yield Finding("note", str(file), f"{what}; the next writer removes it if it is ours")


def _live_files(catalog: Catalog) -> set[str]:
    """Names of the files of the newest commit, as far as its records can be read."""
    with catalog.reading() as reading:
        _, head = reading.head()
        found = {run.file for run in head.tombstones}
        for name in head.segments:
            with suppress(CorruptFile):  # which `faults` reports
                found.update(reading.segment(head, name).files)
    return found


def require_usable(name: str, payload: bytes, options: IndexOptions) -> None:
    """Raises CorruptFile if the payload of a value, whose checksum held, is none that is written.

    Values of other names, which this version does not know, are skipped.
    """
    try:
        if name == "recipe":
            bits: int = Recipe.from_bytes(payload).bits
            if bits != options.bits:
                raise CorruptFile(
                    f"the recipe makes fingerprints of {bits} bits, not of {options.bits}"
                )
        elif name == "reservoir":
            Reservoir.decode("the index", payload, options.words).check()
        elif name == "machine":
            Machine.from_dict(unpack("meta/machine", payload))
        elif name == "origin":
            if not payload.startswith(b"/") or b"\0" in payload:
                raise CorruptFile("it is not the path of a folder")
        elif name == ancestry.VALUE:
            ancestry.decode(payload)
        elif name == "audit":
            audit.decode(payload)
        elif name == advice_bytes.VALUE:
            advice_bytes.decode(payload)
        elif name == "options":
            stored_options(payload)
    except (SimindexError, ValueError) as error:
        if raised_by_a_handler(error):
            raise
        remedy = error.remedy if isinstance(error, SimindexError) else None
        raise CorruptFile(
            f"the catalog's record meta/{name} cannot be used: {what_happened(error)}",
            remedy=remedy, path=f"meta/{name}",
        ) from error
