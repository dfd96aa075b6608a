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
from typing import NoReturn

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U64
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile
from simindex.methods.base import Asked, Found, TablePlan
from simindex.methods.psm import exhaustive_masks
from simindex.options import PERMUTED_TABLES
from simindex.storage.files.checksums import section_of
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table

NAME = PERMUTED_TABLES
"""What a call asks for."""

SLICE_QUERIES = 1 << 16
"""Queries at a time where no table is swept, so that permutations of them stay in cache, and an
interrupt is honoured in between."""

SWEPT_PROBES = 1 << 24
"""Probes of all sweeps of a call at a time: 16 bytes each, 0.3 s in all."""

LEAST_SWEEP_QUERIES, MOST_SWEEP_QUERIES = 1 << 9, 1 << 15
"""Bounds of `sweep_queries`: fewer queries hardly share rows of a sweep, and more always do."""

SPARSE_QUERIES = 1 << 10
"""From this many queries on a sweep may pay, whatever their probes share."""

SHARED_PROBES = 8
"""A sweep pays if there is at least one probe for this many headers."""


def looked_up(
    design: BlockDesign, table_flips: Sequence[int], widths: Sequence[int]
) -> list[tuple[int, int]]:
    """(probes, header bits) of a query in each table that is looked into.

    `widths` are those of the tables' directories; a design's header may be narrower.
    """
    found = []
    for flips, header, width in zip(table_flips, design.header_bits, widths, strict=True):
        if flips >= 0:
            bits = min(header, width)
            found.append((sum(comb(bits, size) for size in range(min(flips, bits) + 1)), bits))
    return found


def search(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """All rows of a table within h of each query, through its permuted tables.

    The plan's design is one that is exact for h, and whose tables the table has.

    Raises
    ------
    CorruptFile
        If the permuted tables cannot be opened, or hold a row that table 0 does not.
    """
    assert plan.design is not None
    *columns, missing = _native.bphs(
        table.checked, table.header_bits,
        checked_tables(table, plan.design, plan.table_flips or plan.design.table_flips(asked.h)),
        asked.queries, asked.h, asked.first, plan.swept_from or 0, room=asked.room,
    )
    if missing:
        refuse_missing(table, plan.design, missing)
    return Found._make(columns)


def passage(table: Table, plan: TablePlan, h: int, passages: _native.Passages) -> bool:
    """Adds the permuted tables of a table to the ways that one query by itself takes."""
    design = plan.design
    assert design is not None
    passages.permuted(
        table.checked, table.header_bits,
        checked_tables(table, design, plan.table_flips or design.table_flips(h)),
    )
    return True


def refuse_missing(table: Table, design: BlockDesign, missing: int) -> NoReturn:
    """Raises CorruptFile for permuted tables that do not belong to the table."""
    raise CorruptFile(
        f"the tables of {design.structure} of {table.name} contain {missing} rows that it does "
        "not contain",
        remedy="run `simindex check`", path=table.name,
    )


def sweep_queries(rows: int, words: int, looked_up: Sequence[tuple[int, int]]) -> int | None:
    """From how many queries on the tables are swept, all matches being asked for; None for never.

    The tables are `looked_up`. A power of two: see `base.reaches`.

    Two things decide, and the smaller number counts. A sweep brings a bucket in once for all its
    probes, which pays from `SHARED_PROBES` on. And a large table is read in order, which pays for
    many queries even if they share no bucket.

    Figures: one thread, ns a query, probes on their own against a sweep. Shared: 10 M rows, four
    tables with 17 probes in each, 512 queries 9,580 and 9,810, 2,048 queries 8,880 and 7,300,
    16,384 queries 7,520 and 1,940; with 137 probes, 512 queries 28,500 and 23,900; three tables
    with 232 probes, 2,048 queries 5,780 and 5,730. In order: 1 M rows, four tables, 4,096 queries
    256 and 210; 10 M rows, ten tables, 16,384 queries 755 and 771, 65,536 queries 661 and 583;
    60 M rows, two tables with a flip, the same 1,760 and 1,960, 1,686 and 1,457.
    """
    if words != 1:
        return None
    in_order = max(SPARSE_QUERIES, 1 << (rows // 256).bit_length())
    headers_of_a_probe = min((1 << bits) // probes for probes, bits in looked_up)
    shared = 1 << max(0, headers_of_a_probe // SHARED_PROBES - 1).bit_length()
    return max(LEAST_SWEEP_QUERIES, min(MOST_SWEEP_QUERIES, in_order, shared))


def slice_queries(plan: TablePlan, threads: int) -> int:
    """How many queries of a call are given to the kernel at a time."""
    if plan.swept_from is None:
        return SLICE_QUERIES
    return max(SLICE_QUERIES, SWEPT_PROBES // (plan.flips + 1) // threads)


def checked_tables(
    table: Table, design: BlockDesign, table_flips: tuple[int, ...]
) -> list[_native.CheckedPermuted]:
    """The tables with flips of 0 or more as the kernel takes them, kept with the table."""
    structure = table.structures[design.structure]
    known = structure.checked.get(table_flips)
    if known is None:
        permuted: list[SortedRows] = [table, *structure.tables]
        known = structure.checked[table_flips] = [
            checked_table(permuted[number], design, number, flips)
            for number, flips in enumerate(table_flips)
            if flips >= 0
        ]
    return known


def checked_table(
    rows: SortedRows, design: BlockDesign, number: int, flips: int
) -> _native.CheckedPermuted:
    """Table `number` of a design as the kernel takes it, with this many header bits flipped."""
    bits = min(rows.header_bits, design.header_bits[number])
    none = np.empty((0, 4), np.uint64)
    return _native.CheckedPermuted(
        rows.fingerprints, rows.directory, rows.header_bits, bits,
        design.rotations(number) if number else none,
        design.rotations(number, inverse=True) if number else none,
        exhaustive_masks(bits, flips), header_mask(design, number, bits), flips,
        section_of(rows.fingerprints),
    )


def header_mask(design: BlockDesign, number: int, header_bits: int) -> U64:
    """uint64 (W,): columns of the first bits of a table's header, before they are permuted."""
    mask = np.zeros(design.bits, np.bool_)
    for column, width in design.headers[number]:
        mask[column : column + min(width, header_bits)] = True
        header_bits -= min(width, header_bits)
    return np.packbits(mask).view(">u8").astype(np.uint64)
