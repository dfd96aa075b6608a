"""What the catalog says of a segment, as bytes.

    payload   msgpack: rows, horizon, bytes of the file, checksum of its footer, width of the header
              directory; then, if it has structures, of each: structure, name, bytes of the file,
              checksum of its footer, first table, widths of the header directories
"""

from __future__ import annotations

from typing import Any

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.options import is_slicing
from simindex.storage.catalog.head import count
from simindex.storage.catalog.values import pack, unpack
from simindex.storage.tables import permuted, slicelist
from simindex.storage.tables.record import SegmentRecord, StructureRecord
from simindex.storage.tables.structure import owner_of

ANY_HEADERS = 1 << 20
"""A directory of so many may be of any rows: 4 MiB."""


def encode(record: SegmentRecord) -> bytes:
    """The payload of a segment's record."""
    packed: list[Any] = [
        record.rows, record.horizon, record.file_bytes, record.footer_checksum,
        record.header_bits,
    ]
    if record.structures:
        packed.append([
            [s.structure, s.name, s.file_bytes, s.footer_checksum, s.first_table,
             list(s.header_bits)]
            for s in record.structures
        ])
    return pack(packed)


def decode(name: str, payload: bytes) -> SegmentRecord:
    """The record in a payload whose checksum held."""
    try:
        fields = unpack(name, payload)
        rows, horizon, file_bytes, footer, header_bits = (int(v) for v in fields[:5])
        more = fields[5:]
        structures = tuple(_structure(name, value) for value in (more[0] if more else ()))
        for _, width in ((0, header_bits), *(d for s in structures for d in s.directories)):
            _require_width(width, rows)
        if len(more) > 1 or len({found.structure for found in structures}) < len(structures):
            raise ValueError("not a record of this version")
    except (TypeError, ValueError) as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(f"the catalog's record of {name} is not whole", path=name) from error
    return SegmentRecord(name, rows, horizon, file_bytes, footer, header_bits, structures)


def _structure(segment: str, value: Any) -> StructureRecord:
    structure, name, file_bytes, footer, first_table, header_bits = value
    record = StructureRecord(
        str(structure), str(name), count(file_bytes), count(footer), count(first_table),
        tuple(count(width) for width in header_bits),
    )
    kind = slicelist if is_slicing(record.structure) else permuted
    if (
        not kind.NAME.fullmatch(record.name)
        or owner_of(record.name) != segment
        or max(record.header_bits, default=0) > 32
        or not 1 <= record.first_table <= permuted.MAX_TABLE + 1 - len(record.header_bits)
    ):
        raise ValueError("out of range")
    return record


def _require_width(header_bits: int, rows: int) -> None:
    """Refuses a directory of many more headers than rows: nobody writes one; it takes memory."""
    if not 0 <= header_bits <= 32 or 1 << header_bits > max(ANY_HEADERS, rows):
        raise ValueError("out of range")
