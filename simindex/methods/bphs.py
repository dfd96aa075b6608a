"""BPHS: permuted tables, in one of which a near row has the query's header. [PSM] section 6, [MJS].

    for each table    the query is permuted as the table is, its bucket (and those within r flipped
                      header bits) are compared in full
    each row found    is un-permuted and found again in table 0, which knows whose it is

Exact for every h that the design is exact for. `first` is BPHSF, which goes on to the next table
only with the queries that have found nothing; else BPHSA.

Invariants
1. A pair of query and fingerprint is reported once: by the first table of the design whose header
   differs in at most that table's flips. Which one that is depends on their exclusive or alone, and
   that table does find the pair.
2. Equal rows of a permuted table are neighbours, and only the first of them is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import CorruptFile
from simindex.methods.base import Found
from simindex.methods.psm import exhaustive_masks
from simindex.records import U64
from simindex.simhash.permutation import BlockDesign
from simindex.storage.table import SortedRows, Table


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


def search(table: Table, queries: U64, design: BlockDesign, *, h: int, first: bool) -> Found:
    """All rows of a table within h of each query, through its permuted tables.

    Parameters
    ----------
    queries : uint64 (m, W)
    design : BlockDesign
        One that is exact for h, and whose tables the table has.
    first : bool
        At most one row a query.

    Raises
    ------
    CorruptFile
        If the permuted tables cannot be opened, or hold a row that table 0 does not.
    """
    permuted = table.structures[design.structure].tables
    flips = design.table_flips(h)
    parts: list[tuple[NDArray[np.int64], U64, NDArray[np.uint16]]] = []
    probes = compared = 0
    asked: NDArray[np.int64] | None = None
    some = queries
    for number, flipped in enumerate(flips):
        if flipped < 0:
            continue
        rows = permuted[number - 1] if number else table
        query, hits, distance, counts = _search_table(
            rows, some, design, h=h, first=first, number=number
        )
        probes, compared = probes + counts[0], compared + counts[1]
        if asked is not None:
            query = asked[query]
        parts.append((query, hits, distance))
        if first:
            left = np.ones(len(queries), np.bool_)
            for earlier, _, _ in parts:
                left[earlier] = False
            asked = np.flatnonzero(left).astype(np.int64)
            some = queries[asked]
            if not len(asked):
                break
    return _found_again(
        table,
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
        first, probes, compared, design,
    )


def _search_table(
    rows: SortedRows, queries: U64, design: BlockDesign, *, h: int, first: bool, number: int
) -> tuple[NDArray[np.int64], U64, NDArray[np.uint16], tuple[int, int]]:
    """Queries, un-permuted fingerprints and distances of what one table is the first to find."""
    flips = design.table_flips(h)
    bits = min(rows.header_bits, design.header_bits[number])
    asked = design.permute(queries, number) if number else queries
    query, row, distance, probes, compared = _native.probe(
        rows.fingerprints, rows.directory, rows.header_bits, bits, asked,
        exhaustive_masks(bits, flips[number]), h, first,
    )
    hits = rows.fingerprints[row]
    if not first:
        again = (row > 0) & (hits == rows.fingerprints[np.maximum(row, 1) - 1]).all(axis=1)
        if number == 0:
            again = _again(query, hits)
        query, hits, distance = query[~again], hits[~again], distance[~again]
    if number:
        hits = design.unpermute(hits, number)
    if number and not first and len(query):
        differing = hits ^ queries[query]
        mine = np.ones(len(query), np.bool_)
        for earlier in range(number):
            if flips[earlier] >= 0:
                within = np.bitwise_count(differing & header_masks(design)[earlier]).sum(axis=1)
                mine &= within > flips[earlier]
        query, hits, distance = query[mine], hits[mine], distance[mine]
    return query, hits, distance, (probes, compared)


def _again(query: NDArray[np.int64], hits: U64) -> NDArray[np.bool_]:
    """Which (query, fingerprint) pairs stand before already."""
    _, places = np.unique(
        np.column_stack([query.astype(np.uint64), hits]), axis=0, return_index=True
    )
    again = np.ones(len(query), np.bool_)
    again[places] = False
    return again


@lru_cache(maxsize=256)
def header_masks(design: BlockDesign) -> U64:
    """uint64 (T, W): of each table, the columns of its header, before they are permuted."""
    masks = np.zeros((design.tables, design.bits), np.bool_)
    for table, header in enumerate(design.headers):
        for column, width in header:
            masks[table, column : column + width] = True
    words = np.packbits(masks, axis=1).view(">u8").astype(np.uint64)
    words.setflags(write=False)
    return words


def _found_again(
    table: Table,
    query: NDArray[np.int64],
    hits: U64,
    distance: NDArray[np.uint16],
    first: bool,
    probes: int,
    compared: int,
    design: BlockDesign,
) -> Found:
    """The rows of table 0 with these fingerprints."""
    hit, row, _, ids, *_ = _native.probe_checked(
        table.checked, table.header_bits, hits, exhaustive_masks(table.header_bits, 0), 0, first
    )
    present = np.zeros(len(hits), np.bool_)
    present[hit] = True
    if not present.all():
        raise CorruptFile(
            f"the tables of {design.structure} beside {table.name} hold a row that it does not: "
            "run `simindex check`",
            path=table.name,
        )
    return Found(query[hit], row, distance[hit], ids, probes, compared)
