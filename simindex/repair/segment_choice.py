"""Which segment files are the index, and which of its segments are gone, noted in an inventory.

`lineage` decides by what the files say of themselves, and the catalog's head if it is certain.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from simindex.errors import CorruptFile
from simindex.repair import lineage, overlap, structure_files
from simindex.repair.catalog_records import CatalogRecords
from simindex.repair.damaged_files import header_again, whole_envelope
from simindex.repair.inventory import Inventory
from simindex.repair.lineage import Kin
from simindex.repair.segment_remains import SegmentRemains
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.tables.record import NAME

SAMPLE_ROWS = 512
"""Rows that tell whether a segment is among those that one without names was merged from."""


def _kin(found: Inventory) -> dict[str, Kin]:
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
            and overlap.share_stored(found.files[other.name], found.files[name], SAMPLE_ROWS) > 0.5
        ]
        kin[name] = replace(own, inputs=tuple(inputs))
    return kin


def choose_segments(found: Inventory, records: CatalogRecords | None) -> None:
    """Takes the files that are the index, and notes those that are gone or damaged."""
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
        # In the head's order, which is that of age. A merged segment comes where its inputs were.
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
        found.missing[name] = _recorded(found, records, name)
        if found.missing[name] is None and name in orphaned:
            found.missing[name] = orphaned[name], None


def _orphaned(found: Inventory) -> dict[str, int]:
    """Segments whose file is gone while its other files exist, and their rows."""
    rows: dict[str, int] = {}
    known = found.files.keys() | found.unreadable.keys() | found.foreign.keys()
    for path in sorted((found.path / "segments").glob("*-*-*")):
        owner = f"{path.name[:25]}.rows"
        if owner in known or not NAME.fullmatch(owner):
            continue
        with suppress(CorruptFile):
            identity = whole_envelope(path).identity
            if identity.index == found.uuid:
                rows[owner] = identity.rows
    return rows


def read_headless(found: Inventory, records: CatalogRecords | None) -> None:
    """Reads files whose header is damaged, if the catalog or another file describes them."""
    assert found.options is not None
    directory = found.path / "segments"
    names = sorted(names_in(directory))
    for name in list(found.unreadable):
        known = [_recorded(found, records, name)]
        for other in structure_files.files_of(names, name):
            with suppress(CorruptFile):
                identity = whole_envelope(directory / other).identity
                known.append((identity.rows, identity.horizon))
        for rows, horizon in filter(None, known):
            with suppress(CorruptFile):
                page = header_again(
                    directory / name, rows=rows, horizon=horizon, bits=found.options.bits,
                    keyed=found.options.keyed, timed=found.options.times,
                    sketch_bits=found.options.sketch_bits,
                )
                if page is not None:
                    file = SegmentRemains(directory / name, header=page)
                    if file.identity.index == found.uuid:
                        found.files[name] = file
                        del found.unreadable[name]
                        break


def _recorded(
    found: Inventory, records: CatalogRecords | None, name: str
) -> tuple[int, int] | None:
    """(rows, horizon) of a segment as the catalog has them."""
    payload = None
    if records is not None and found.head is not None and name in found.head.segments:
        payload = records.record("segments", name.encode(), found.head.segments[name])
    if payload is None:
        return None
    with suppress(CorruptFile, TypeError, ValueError, IndexError):
        rows, horizon, *_ = unpack(name, payload)
        return int(rows), int(horizon)
    return None


def names_in(directory: Path) -> list[str]:
    """Names in a directory, if it is one."""
    return [path.name for path in directory.iterdir()] if directory.is_dir() else []
