"""What is left of an index, as `repair` finds it: patches of its files, and files that are gone.

    input    which example u1, then patches:
             file u1 | offset u3 | length u1 | bytes

An offset is within the file, and 0xFFFFFF removes it; a length of 255 ends the file there. With
checksums repaired the segments' hold, and so do the seals of the catalog's records.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import simindex
from fuzzing import envelopes
from fuzzing.target import Target, workplace
from simindex import Batch, IndexOptions
from simindex.arrays import I64, U64
from simindex.errors import SimindexError
from simindex.repair.catalog_records import CatalogRecords
from simindex.storage.catalog.sealed_values import checksum

GONE, CUT = 0xFFFFFF, 255
PAGE_BYTES = 4096
"""Of `data.mdb`."""

Seal = tuple[str, bytes, int, int]
"""Database, key, offset and size of a sealed record in `data.mdb`."""

REPAIRED = 0x80
"""Bit of the first byte: checksums are made right once the patches are there."""


@cache
def _example(keyed: bool) -> Path:
    """A small index: a merged segment, another, deletions, and rows that wait for a segment."""
    path = workplace() / f"whole-{keyed}.sim"
    options = IndexOptions(
        keys="str" if keyed else False, sketch_bits=64 if keyed else 0,
        batch_rows=16, min_merge=2, reservoir_rows=4,
        structures=("psm", envelopes.BPHS) if keyed else ("psm",),
    )
    with simindex.open(path, "n", options=options) as index:
        for start in range(0, 54, 18):
            rows = np.arange(start, start + 18, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            index.append(_batch(rows, [f"key {row}" for row in rows] if keyed else None))
            index.commit()
            if not start:
                index.delete(**({"keys": ["key 0"]} if keyed else {"ids": [0]}))
        index.append(_batch(rows[:2], ["one", "two"] if keyed else None))
        index.commit()
    return path


def _batch(rows: U64, keys: list[str] | None) -> Batch:
    if keys is None:
        return Batch(rows)
    return Batch(rows, keys=keys, sketch=~rows[:, None], features=_sizes(rows))


def _sizes(rows: U64) -> I64:
    """Numbers of features that say whose they are: powers of two, which a byte has exactly."""
    return np.int64(1) << (rows % np.uint64(31)).astype(np.int64)


@cache
def _files(keyed: bool) -> tuple[tuple[str, bytes], ...]:
    """An index's files by name: catalog, FORMAT, then segments and what belongs to them."""
    path = _example(keyed)
    names = ["catalog/data.mdb", "FORMAT"]
    names += sorted(f"segments/{file.name}" for file in (path / "segments").iterdir())
    return tuple((name, (path / name).read_bytes()) for name in names)


@cache
def seals(keyed: bool) -> tuple[Seal, ...]:
    records = CatalogRecords.read(_example(keyed) / "catalog" / "data.mdb")
    assert records is not None
    try:
        return tuple(
            (name, key, place.offset, place.size)
            for (name, key), places in records.found.items() for place in places
        )
    finally:
        records.close()


def patch(file: int, offset: int, data: bytes = b"", *, cut: bool = False) -> bytes:
    """One patch, as an input encodes it."""
    length = CUT if cut else len(data)
    return bytes([file]) + offset.to_bytes(3, "little") + bytes([length]) + data


def seeds() -> list[bytes]:
    """One of each kind of wreck, of both examples."""
    found = []
    for keyed in (False, True):
        patches = []
        for number, (name, data) in enumerate(_files(keyed)[:4]):
            patches += [
                patch(number, GONE), patch(number, len(data) // 2, cut=True),
                patch(number, 0, bytes(64)), patch(number, len(data) // 3, b"\xff" * 9),
            ]
            if name.endswith(".rows"):
                patches.append(patch(0, GONE) + patch(number, 5000, b"\x01"))
        for _, _, offset, _ in seals(keyed):
            bounds = offset // PAGE_BYTES * PAGE_BYTES + 12
            patches += [patch(0, offset, b"\x33"), patch(0, bounds, b"\x10\x00")]
        found += [bytes([keyed]) + some for some in patches]
    return found


def repair(data: bytes) -> bytes:
    """The same wreck with checksums that hold."""
    return bytes([_first(data) | REPAIRED]) + data[1:]


def _first(data: bytes) -> int:
    return data[0] if data else 0


def _patches(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    at = 1
    while at + 5 <= len(data):
        length = data[at + 4]
        size = 0 if length == CUT else length
        yield (
            data[at], int.from_bytes(data[at + 1 : at + 4], "little"), length,
            data[at + 5 : at + 5 + size],
        )
        at += 5 + size


def wrecked(data: bytes) -> dict[str, bytes]:
    """The files that an input leaves."""
    first = _first(data)
    keyed = bool(first & 1)
    files = {name: bytearray(content) for name, content in _files(keyed)}
    names = list(files)
    for file, offset, length, content in _patches(data):
        name = names[file % len(names)]
        if name not in files:
            continue
        if offset == GONE:
            del files[name]
            continue
        offset %= len(files[name]) + 1
        if length == CUT:
            del files[name][offset:]
        else:
            files[name][offset : offset + len(content)] = content
    if first & REPAIRED:
        for name in files:
            if name.startswith("segments/"):
                files[name] = bytearray(envelopes.repair(bytes(files[name])))
        _seal(files.get("catalog/data.mdb", bytearray()), seals(keyed))
    return {name: bytes(content) for name, content in files.items()}


def _seal(data: bytearray, seals: tuple[Seal, ...]) -> None:
    for name, key, offset, size in seals:
        value = bytes(data[offset : offset + size])
        if len(value) == size:
            crc = checksum(name, key, value[:-4])
            data[offset + size - 4 : offset + size] = crc.to_bytes(4, "little")


def execute(data: bytes) -> None:
    """Repairs the wreck, first without applying it; what is made must open, and be whole."""
    path = workplace() / "wreck.sim"
    shutil.rmtree(path, ignore_errors=True)
    for folder in ("catalog", "segments"):
        (path / folder).mkdir(parents=True)
    for name, content in wrecked(data).items():
        (path / name).write_bytes(content)
    dry = _repaired(path, apply=False)
    wet = _repaired(path, apply=True)
    if isinstance(wet, SimindexError):
        raise wet
    assert not isinstance(dry, SimindexError), "repaired what it had refused to look at"
    with simindex.open(path) as index:
        errors = [finding for finding in index.check() if finding.severity == "error"]
        if not _first(data) & REPAIRED:  # else files may lie as no checksum tells
            assert not errors, f"repaired, and damaged: {errors[0]}"
        rows = sum(len(batch.rows) for batch in index.rows())
        assert rows == len(index) == wet.rows, "other rows than it reported"
        index.query(np.repeat(envelopes.QUERIES[:, None], index.options.words, axis=1), h=3)


def _repaired(path: Path, *, apply: bool) -> simindex.RepairReport | SimindexError:
    try:
        return simindex.repair(path, apply=apply)
    except SimindexError as error:
        return error


TARGET = Target("what repair reads", seeds, execute, repair)
"""Its wrecks are of small indexes with every kind of file."""
