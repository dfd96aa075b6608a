"""Segment files, permuted tables, slice lists and tombstones, opened and searched as a catalog that
agrees with their headers would have them."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from fuzzing.target import Target, workplace
from simindex import Batch, IndexOptions
from simindex._kernels import _native
from simindex.arrays import F32, U64
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile
from simindex.methods import bphs, issl
from simindex.methods.base import Asked, TablePlan, TopTablePlan
from simindex.methods.psm import exhaustive_masks
from simindex.storage.files.envelope import (
    CHUNK_BYTES,
    END_MAGIC,
    FOOTER,
    HEADER,
    MAX_SECTIONS,
    PAGE_BYTES,
    SECTION,
    open_envelope,
)
from simindex.storage.tables import deletion_file, permuted, slice_lists
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import SegmentFolder, SegmentRecord, StructureRecord
from simindex.storage.tables.segment import KEY_OFFSETS, Segment, open_segment
from simindex.storage.tables.sketches import SKETCHES, sketches_at
from simindex.storage.tables.sorted_rows import header_bits
from simindex.storage.tables.tombstones import Tombstones

BPHS = "bphs:G=3,g=1,r=2"
ISSL = "issl:w=8"
SKETCH_WORDS = 3
KINDS = (".rows", ".bphs", ".issl", ".dead")
QUERIES = np.array([0, 1 << 63, (1 << 64) - 1, 12345], np.uint64)


@cache
def example(bits: int, keys: bool, sketch_words: int = 0) -> Path:
    """A small index with every kind of file."""
    path = workplace() / f"example-{bits}-{keys}-{sketch_words}.sim"
    structures: tuple[str, ...] = ("psm", BPHS, ISSL) if bits == 64 else ("psm",)
    options = IndexOptions(
        bits=bits, keys="str" if keys else False, batch_rows=16, min_merge=0, reservoir_rows=4,
        structures=structures, sketch_bits=64 * sketch_words,
    )
    rng = np.random.default_rng(bits + keys)
    with simindex.open(path, "n", options=options) as index:
        for start in range(0, 60, 30):
            rows = rng.integers(0, 1 << 64, (30, bits // 64), dtype=np.uint64)
            rows[10:20] = rows[:10] ^ np.uint64(1 << 7)
            names = [f"key {start + i}" for i in range(30)] if keys else None
            index.append(Batch(
                rows, keys=names, sketch=_sketch(rows, sketch_words), features=np.arange(30)
            ))
            index.commit()
        last: dict[str, Any] = {"keys": ["a", "b"]} if keys else {}
        index.append(Batch(
            rows[:2], weights=_weights(rows[:2]), sketch=_sketch(rows[:2], sketch_words), **last
        ))
        if keys:
            index.delete(keys=["key 3", "a"])
        else:
            index.delete(ids=[3, 7])
        index.commit()
    return path


def _sketch(rows: U64, words: int) -> U64 | None:
    return np.repeat(~rows[:, :1], words, axis=1) if words else None


def _weights(rows: U64) -> F32:
    bits = np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1)
    return np.where(bits, np.float32(1), np.float32(-1))


def seeds() -> list[bytes]:
    """Files of each kind; the generation says which one it is."""
    found = []
    for bits, keys, sketch_words in (
        (64, False, 0), (64, True, 0), (128, False, 0), (1024, True, 0), (64, True, SKETCH_WORDS)
    ):
        index, record = _own(bits, keys, sketch_words)
        beside = {".rows", ".dead"} if keys or bits > 64 else set(KINDS)
        files = index.path / "segments"
        for path in sorted([*files.glob(f"{record.name[:25]}*"), *files.glob("*.dead")]):
            if path.suffix not in beside:
                continue
            data = bytearray(path.read_bytes())
            header = np.frombuffer(data, HEADER, 1)
            header["generation"] = KINDS.index(path.suffix)
            found.append(repair(bytes(data)))
    return found


def repair(data: bytes) -> bytes:
    """The bytes as a file whose checksums hold, of chunks as far as its sections are there."""
    if len(data) < PAGE_BYTES + FOOTER.itemsize:
        return data
    raw = np.frombuffer(bytearray(data), np.uint8)
    header = raw[: HEADER.itemsize].view(HEADER)[0]
    header["file_bytes"] = len(raw)
    raw[PAGE_BYTES - 4 : PAGE_BYTES].view("<u4")[0] = _native.crc32c(raw[: PAGE_BYTES - 4])
    start, end = int(header["checksum_offset"]), len(raw) - FOOTER.itemsize
    footer = raw[end:].view(FOOTER)[0]
    footer["index"], footer["file_id"] = header["index"], header["file_id"]
    footer["file_bytes"], footer["magic"] = len(raw), END_MAGIC
    footer["header_checksum"] = raw[PAGE_BYTES - 4 : PAGE_BYTES].view("<u4")[0]
    if PAGE_BYTES <= start <= end and (end - start) % 4 == 0 and start % 4 == 0:
        sums = raw[start:end].view("<u4")
        count = min(int(header["sections"]), MAX_SECTIONS)
        table = raw[HEADER.itemsize : HEADER.itemsize + count * SECTION.itemsize].view(SECTION)
        at = 0
        for place, entry in enumerate(table):
            first = int(entry["offset"])
            size = int(entry["itemsize"]) * int(entry["count"])
            if first + size > start or at + -(-size // CHUNK_BYTES) > len(sums):
                break
            seed = (int(header["file_id"]) + place) & ((1 << 64) - 1)
            made = _native.crc32c_chunks(raw[first : first + size], CHUNK_BYTES, seed)
            sums[at : at + len(made)] = made
            at += len(made)
        footer["checksums"] = _native.crc32c(sums.view(np.uint8))
    footer["checksum"] = _native.crc32c(raw[end:-12])
    return raw.tobytes()


def execute(data: bytes) -> None:
    """Opens the file as what its generation says, verifies it, and searches it."""
    directory = workplace()
    path = directory / "fuzzed"
    path.write_bytes(data)
    envelope = open_envelope(path)
    identity = envelope.identity
    kind = KINDS[identity.generation % len(KINDS)]
    bits = identity.bits if identity.bits in (64, 128, 1024) else 64
    if kind == ".rows":
        record = SegmentRecord(
            f"{0:016x}-{0:08x}.rows", identity.rows, identity.horizon, len(data),
            envelope.footer_checksum, min(header_bits(identity.rows), 12),
        )
        path.rename(directory / record.name)
        keyed = envelope.section(KEY_OFFSETS, "<i8") is not None
        sketch_words = SKETCH_WORDS if envelope.has_section(SKETCHES) else 0
        folder = SegmentFolder(
            directory, identity.index, bits, keyed, sketch_words=sketch_words
        )
        search_rows(open_segment(folder, record, lambda: None))
        return
    if kind == ".dead":
        keyed = envelope.section(KEY_OFFSETS, "<i8") is not None
        look_up(deletion_file.run_of(envelope, keyed=keyed))
        return
    _search_structure(kind, directory, path, data, envelope.footer_checksum)


def search_rows(segment: Segment) -> None:
    """Everything that follows numbers of a segment: headers, sketches, keys, checksums."""
    words = segment.fingerprints.shape[1]
    queries = np.repeat(QUERIES[:, None], words, axis=1)
    masks = exhaustive_masks(segment.header_bits, 1)
    found = _native.probe_checked(
        segment.checked, segment.header_bits, queries, masks, 64 * words, False
    )
    if segment.sketches is not None:
        sketches_at(segment, found[1].astype(np.int64))
    segment.envelope.damaged_chunks()
    if segment.keys is not None:
        with suppress(ValueError):  # what `take` is documented to raise
            taken = segment.keys.take(found[1][:8].astype(np.int64))
            taken.hashes(bytes(16))
        segment.keys.slice(0, 8).decoded("bytes")


def look_up(run: Tombstones) -> None:
    """Everything that follows numbers of a run: its order, its keys, commits."""
    keys = None if run.keys is None else KeyHeap.of(["key 3", "a", "", "x"])
    run.killed(QUERIES, keys, np.arange(4), np.zeros(1, np.uint64))
    ids = run.id[:4].copy()
    run.killed(ids, keys, np.arange(len(ids)), np.zeros(1, np.uint64))
    deletion_file.disorder(run)
    with suppress(CorruptFile):
        run.since(run.newest - 1)
    run.misplaced(bytes(16))


@cache
def _own(
    bits: int = 64, keys: bool = False, sketch_words: int = 0
) -> tuple[simindex.Index, SegmentRecord]:
    index = simindex.open(example(bits, keys, sketch_words))
    return index, index._current().segments[0].record


def _search_structure(
    kind: str, directory: Path, path: Path, data: bytes, footer_checksum: int
) -> None:
    """A file next to the first segment of the example, and searched with it."""
    index, record = _own()
    segment = index._current().segments[0]
    structure = BPHS if kind == ".bphs" else ISSL
    name = f"{record.name[:25]}-{0:08x}{kind}"
    widths = next(s.header_bits for s in record.structures if s.structure == structure)
    about = StructureRecord(structure, name, len(data), footer_checksum, 1, widths)
    path.rename(directory / name)
    queries = QUERIES[:, None]
    folder = SegmentFolder(directory, index._handle.view.index, 64, keyed=False)
    try:
        if kind == ".bphs":
            tables = permuted.open_permuted(folder, record, about, lambda table: None)
            segment.structures = {structure: tables}
            design = BlockDesign.parse(structure, 64)
            plan = TablePlan(structure, 0, 0, True, 0.0, design)
            for first in (False, True):
                bphs.search(segment, plan, Asked(queries, 3, first))
            for _ in permuted.disorder(tables, permuted.content_sum(segment.fingerprints)):
                pass
        else:
            segment.slices = slice_lists.open_slices(folder, record, about)
            for error in (0, 2):
                plan = TablePlan(structure, 0, 0, True, 0.0, max_error=error)
                issl.within(segment, plan, Asked(queries, 8))
                scored = TopTablePlan(structure, False, 0.0, issl.LEAST_RERANK, error)
                issl.top(segment, scored, queries, 3, None, 1)
    finally:
        segment.structures, segment.slices = {}, None


TARGET = Target("segment files", seeds, execute, repair)
