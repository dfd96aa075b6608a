"""Rows that wait in the catalog until there are enough for a segment.

    payload   PENDING header | fingerprints | ids | key offsets | key bytes | reservoir

The rows are sorted, so that a pending run is a table like any other. The reservoir part holds those
of its rows that may join the index's sample of weights.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from simindex.errors import CorruptFile
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.sortedrows import header_bits
from simindex.storage.tables.table import Table

PENDING = np.dtype(
    [
        ("rows", "<u8"),
        ("words", "<u4"),
        ("keyed", "<u4"),
        ("key_bytes", "<u8"),
        ("reservoir_bytes", "<u8"),
    ]
)


def encode(table: Table, reservoir: Reservoir) -> bytes:
    """The payload of a pending run."""
    sample = reservoir.encode()
    header = np.zeros((), PENDING)
    header["rows"], header["words"] = len(table), table.fingerprints.shape[1]
    header["reservoir_bytes"] = len(sample)
    parts = [table.fingerprints.astype("<u8").tobytes(), table.ids.astype("<u8").tobytes()]
    if table.keys is not None:
        header["keyed"], header["key_bytes"] = 1, len(table.keys.data)
        parts += [table.keys.offsets.astype("<i8").tobytes(), table.keys.data.tobytes()]
    return b"".join([header.tobytes(), *parts, sample])


def decode(
    name: str, payload: bytes, *, rows: int, words: int, keyed: bool, horizon: int
) -> tuple[Table, Reservoir]:
    """The table and the reservoir part of a payload whose checksum held.

    Raises CorruptFile if it holds no such rows, as the head and the index's options tell of.
    """
    if len(payload) < PENDING.itemsize:
        raise CorruptFile(f"the {name} is cut short", path=name)
    header = np.frombuffer(payload, PENDING, 1)[0]
    *found, key_bytes, sample_bytes = (int(field) for field in header.item())
    if found != [rows, words, int(keyed)]:
        raise CorruptFile(f"the {name} is not the one the head names", path=name)
    sizes = [8 * rows * words, 8 * rows]
    if keyed:
        sizes += [8 * (rows + 1), key_bytes]
    if PENDING.itemsize + sum(sizes) + sample_bytes != len(payload):
        raise CorruptFile(f"the {name} has a wrong size", path=name)
    bounds = np.cumsum([PENDING.itemsize, *sizes]).tolist()
    pieces = [
        np.frombuffer(payload, np.uint8, stop - start, start)
        for start, stop in pairwise(bounds)
    ]
    keys = KeyHeap(pieces[2].view("<i8"), pieces[3]) if keyed else None
    if keys is not None and not (
        keys.offsets[0] == 0 and keys.offsets[-1] == key_bytes and keys.within().all()
    ):
        raise CorruptFile(f"the {name} has keys that are out of bounds", path=name)
    table = Table(
        name, pieces[0].view("<u8").reshape(rows, words), pieces[1].view("<u8"), keys,
        horizon=horizon, header_bits=header_bits(rows),
    )
    return table, Reservoir.decode(name, payload[bounds[-1] :], words)
