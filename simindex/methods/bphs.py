"""BPHS: permuted tables, in one of which a near row has the query's header. [PSM] section 6, [MJS].

    for each table    the query is permuted as the table is, its bucket (and those within r flipped
                      header bits) are compared in full
    each row found    is un-permuted and found again in table 0, which knows whose it is

Exact for every h that the design is exact for. `first` is BPHSF, which goes on to the next table
only with the queries that have found nothing; else BPHSA.

Invariants
1. A pair of query and fingerprint is reported once: by the first table whose header, as far as it
   is looked up, differs in at most that table's flips. Which one that is follows from their
   exclusive or, and it is the first table that finds the pair.
2. Equal rows of a permuted table are neighbours, and only the first of them is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from simindex._kernels import _native
from simindex.errors import CorruptFile
from simindex.methods import lookup as lookups
from simindex.methods.base import Found
from simindex.methods.psm import (
    ROWS_PER_PROBE,
    SWEPT_PROBES,
    SWEPT_ROWS,
    exhaustive_masks,
)
from simindex.records import U64
from simindex.simhash.permutation import BlockDesign
from simindex.storage.table import SortedRows, Table

SLICE_QUERIES = 1 << 16
"""Queries at a time where no table is swept, so that their permutations stay in cache."""


def looked_up(design: BlockDesign, h: int, widths: Sequence[int]) -> list[tuple[int, int]]:
    """(probes, header bits) of a query in each table that is needed for h.

    `widths` are those of the tables' directories; a design's header may be narrower.
    """
    found = []
    for flips, header, width in zip(
        design.table_flips(h), design.header_bits, widths, strict=True
    ):
        if flips >= 0:
            bits = min(header, width)
            found.append((sum(comb(bits, size) for size in range(min(flips, bits) + 1)), bits))
    return found


def search(
    table: Table, queries: U64, design: BlockDesign, *, h: int, first: bool,
    lookup: lookups.Lookup = "directory",
) -> Found:
    """All rows of a table within h of each query, through its permuted tables.

    Parameters
    ----------
    queries : uint64 (m, W)
    design : BlockDesign
        One that is exact for h, and whose tables the table has.
    first : bool
        At most one row a query.
    lookup : Lookup
        How headers are found; others than by directory are for comparison, and slow.

    Raises
    ------
    CorruptFile
        If the permuted tables cannot be opened, or hold a row that table 0 does not.
    """
    if lookup == "directory":
        *columns, missing = _native.bphs(
            table.checked, table.header_bits, checked_tables(table, design, h), queries, h, first,
            sweep_probes(len(table), table.fingerprints.shape[1], first),
        )
        found = Found._make(columns)
    else:
        found, missing = lookups.search(
            table, queries, design, h=h, first=first, lookup=lookup
        )
    if missing:
        raise CorruptFile(
            f"the tables of {design.structure} beside {table.name} hold {missing} rows that it "
            "does not: run `simindex check`",
            path=table.name,
        )
    return found


def sweep_probes(rows: int, words: int, first: bool) -> int:
    """From how many probes of a table on it is swept once; 0 for never. As for PSM."""
    return -(-rows // ROWS_PER_PROBE) if not first and words == 1 and rows >= SWEPT_ROWS else 0


def slice_queries(table: Table, design: BlockDesign, h: int, threads: int) -> int:
    """How many queries of a call are given to the kernel at a time."""
    rows, words = table.fingerprints.shape
    if not sweep_probes(rows, words, False):
        return SLICE_QUERIES
    probes = max(probes for probes, _ in looked_up(design, h, _widths(table, design)))
    return max(SLICE_QUERIES, SWEPT_PROBES // probes // threads)


def checked_tables(table: Table, design: BlockDesign, h: int) -> list[_native.CheckedPermuted]:
    """The tables that h needs as the kernel takes them, kept beside the table."""
    structure = table.structures[design.structure]
    known = structure.checked.get(h)
    if known is None:
        permuted: list[SortedRows] = [table, *structure.tables]
        known = structure.checked[h] = [
            _checked_table(permuted[number], design, number, flips)
            for number, flips in enumerate(design.table_flips(h))
            if flips >= 0
        ]
    return known


def _checked_table(
    rows: SortedRows, design: BlockDesign, number: int, flips: int
) -> _native.CheckedPermuted:
    bits = min(rows.header_bits, design.header_bits[number])
    none = np.empty((0, 4), np.uint64)
    return _native.CheckedPermuted(
        rows.fingerprints, rows.directory, rows.header_bits, bits,
        design.rotations(number) if number else none,
        design.rotations(number, inverse=True) if number else none,
        exhaustive_masks(bits, flips), header_mask(design, number, bits), flips,
    )


def _widths(table: Table, design: BlockDesign) -> tuple[int, ...]:
    return (table.header_bits, *table.structures[design.structure].record.header_bits)


def header_mask(design: BlockDesign, number: int, header_bits: int) -> U64:
    """uint64 (W,): columns of the first bits of a table's header, before they are permuted."""
    mask = np.zeros(design.bits, np.bool_)
    for column, width in design.headers[number]:
        mask[column : column + min(width, header_bits)] = True
        header_bits -= min(width, header_bits)
    return np.packbits(mask).view(">u8").astype(np.uint64)
