"""How crowded headers are: how many rows a query finds under them, if these are not uniform.

    sampled rows   -> their headers -> the directory tells how many rows share each
    flips 0        1,024 rows; a table is crowded if it is twice as many rows as of uniform ones
    flips 1 to 4   64 of them, under all headers within so many bits; of a crowded table only

A query that is like the rows of a table finds so many. Where all rows share their first 24 bits,
those of table 0 are all under one header, and a plan looks into other tables instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from weakref import WeakKeyDictionary

import numpy as np

from simindex.bits.vosh import set_count
from simindex.methods.psm import exhaustive_masks
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table
from simindex.values import dataclass

LEAST_ROWS = 1 << 14
"""Smaller tables are not sampled: to compare all of their rows takes some microseconds."""

WIDEST = 20
"""Directories of more bits are not read for this: they take megabytes each."""

SAMPLED, FLIPPED = 1024, 64

CROWDED = 2.0

MOST_FLIPS = 4
"""Of 16 header bits, 2,517 headers."""

RowsNear = tuple[float, ...]
"""Rows under all headers within 0, 1, ... `MOST_FLIPS` flips of a row's own, on average."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """Of one table and its permuted ones; None of those whose headers are not crowded."""

    own: RowsNear | None
    """Under headers as wide as the table's directory."""
    designs: Mapping[str, tuple[RowsNear | None, ...]] = field(default_factory=dict)
    """Of the tables of each structure, under the headers of its design."""


_KNOWN: WeakKeyDictionary[SortedRows, dict[int, RowsNear | None]] = WeakKeyDictionary()
"""What was found, by header bits, while the tables are open."""


def survey(table: Table, h: int) -> Crowding | None:
    """The crowding of a table, whatever h; None where none of its headers are crowded.

    Notes
    -----
    Loads the header directories, once. 0.1 ms a table, and some milliseconds of a crowded one.
    """
    if len(table) < LEAST_ROWS:
        return None
    found = Crowding(
        rows_near(table, table.header_bits),
        {
            name: tuple(
                rows_near(one, min(one.header_bits, bits))
                for one, bits in zip(
                    (table, *structure.tables), structure.design.header_bits, strict=True
                )
            )
            for name, structure in table.structures.items() if structure.damage is None
        },
    )
    crowded = found.own, *(one for tables in found.designs.values() for one in tables)
    return None if all(one is None for one in crowded) else found


def rows_near(rows: SortedRows, header_bits: int) -> RowsNear | None:
    """Of one sorted table, under headers of its first bits; None if they are not crowded."""
    if rows.header_bits > WIDEST or not len(rows):
        return None
    known = _KNOWN.setdefault(rows, {})
    if header_bits not in known:
        known[header_bits] = _rows_near(rows, header_bits)
    return known[header_bits]


def _rows_near(rows: SortedRows, header_bits: int) -> RowsNear | None:
    starts = rows.directory[:: 1 << (rows.header_bits - header_bits)].astype(np.int64)
    lengths = np.diff(starts)
    sampled = np.random.default_rng(0).integers(0, len(rows), SAMPLED)
    headers = np.searchsorted(starts, sampled, side="right") - 1
    usual = len(rows) / len(lengths) + 1
    if float(lengths[headers].mean()) < CROWDED * usual:
        return None
    masks = exhaustive_masks(header_bits, MOST_FLIPS) >> np.uint64(max(1, 64 - header_bits))
    flipped = headers[:FLIPPED, None] ^ masks.astype(np.int64)
    found = lengths[flipped].mean(axis=0)
    ends = [1 + set_count(header_bits, flips) for flips in range(MOST_FLIPS + 1)]
    return tuple(float(found[:end].sum()) for end in ends)
