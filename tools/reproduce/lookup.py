"""Headers looked up by directory, by bisection and by interpolation, for comparison.

    directory        a table of 2^t + 1 offsets names the bucket; no row is touched
    binary           bisection of the rows: t delta_R of [PSM] (9), for t = log2 n
    interpolation    jumps to where the header would stand among rows spread evenly: [MJS] for large
                     tables that are even; [PSM] (experiments) touched 11 rows with it in place of
                     26, and was slower

The engine looks up by directory only, many headers at once (`methods.psm`, `methods.bphs`). This
module looks them up one after the other, as the papers do. `tools/bench.py lookup` measures it.

Invariants
1. All three find the same buckets, and so do the searches made of them.
2. Bisection touches at most floor(log2 n) + 1 rows to find a bucket's first, interpolation 8 more,
   however rows are spread.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64, U16, U32, U64
from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.methods.base import Found
from simindex.methods.bphs import refuse_missing
from simindex.methods.psm import exhaustive_masks
from simindex.storage.files.checksums import verified, verified_at
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table

Lookup = Literal["directory", "binary", "interpolation"]

LOOKUPS: tuple[Lookup, ...] = get_args(Lookup)


SLICE_HEADERS = 1 << 18
"""Headers looked up at a time: 12 bytes each."""

SLICE_WORDS = 1 << 20
"""Words of rows compared at a time."""


class Buckets(NamedTuple):
    """Rows `first` to `end` - 1 under each header; columns of shape (m, k)."""

    first: U32
    end: U32
    steps: U16
    """Rows touched until `first` was known."""
    end_steps: U16
    """Rows touched after that, until `end` was."""


class Near(NamedTuple):
    """Rows of one table within h, by query; columns of one length."""

    query: I64
    row: I64
    distance: U16
    probes: int
    compared: int


def buckets(
    rows: SortedRows, queries: U64, flips: U64, *, header_bits: int, lookup: Lookup
) -> Buckets:
    """The rows under the headers of queries, and under those with some bits flipped.

    Parameters
    ----------
    queries : uint64 (m, W)
    flips : uint64 (k,) or (m, k)
        Masks of word 0, for all queries or for each; 0 for the query's own header.
    header_bits : int
        t, from 0 to 64; by directory at most `rows.header_bits`.
    lookup : Lookup
        "directory" makes or loads `rows.directory`; the others need none.

    Returns
    -------
    Buckets
        An empty bucket has the position that its rows would have.

    Raises
    ------
    InvalidOption
        If there is no such look-up.

    Notes
    -----
    O(1), O(log n) and, on uniform rows, O(log log n) memory accesses a header, one after the other.
    The literature scans on for the end of a bucket; here it takes O(log(end - first)) accesses.
    Source: [PSM] sections 5 and 6; [MJS].
    """
    masks = flips if flips.ndim == 2 else flips[None]
    if lookup == "directory":
        return Buckets(*_native.look_up_in_directory(
            rows.directory, rows.header_bits, len(rows), queries, masks, header_bits
        ))
    if lookup not in LOOKUPS:
        raise InvalidOption(
            f"lookup is {lookup!r}, not one of {', '.join(LOOKUPS)}",
            option="lookup", found=lookup, expected=LOOKUPS,
        )
    return Buckets(*_native.look_up(
        verified(rows.fingerprints), queries, masks, header_bits, lookup == "interpolation"
    ))


def probe(
    rows: SortedRows, queries: U64, flips: U64, *, header_bits: int, h: int, first: bool,
    lookup: Lookup,
) -> Near:
    """Rows within h of each query, under the headers that `buckets` looks up.

    Parameters
    ----------
    first : bool
        At most one row a query, the first in the order of its flips and of rows; those behind it
        are compared all the same.

    Returns
    -------
    Near
        By query, then in the order of its flips and of rows.

    Notes
    -----
    The other parameters are those of `buckets`. With all masks of at most h bits of the header it
    is exact PSM, with those of `vosh` PSM; with a permuted table one step of BPHS.
    """
    shared = flips.ndim == 1
    found = []
    compared = 0
    step = max(1, SLICE_HEADERS // max(1, flips.shape[-1]))
    for start in range(0, max(1, len(queries)), step):
        some = queries[start : start + step]
        masks = flips if shared else flips[start : start + step]
        under = buckets(rows, some, masks, header_bits=header_bits, lookup=lookup)
        query, row, distance = _compared(verified(rows.fingerprints), some, under, h)
        compared += int((under.end - under.first).sum(dtype=np.int64))
        found.append((query + start, row, distance))
    query, row, distance = (np.concatenate(column) for column in zip(*found, strict=True))
    if first:
        kept = np.unique(query, return_index=True)[1]
        query, row, distance = query[kept], row[kept], distance[kept]
    return Near(query, row, distance, len(queries) * flips.shape[-1], compared)


def search(
    table: Table, queries: U64, design: BlockDesign, *, h: int, first: bool, lookup: Lookup
) -> Found:
    """BPHS with a look-up of choice: what `methods.bphs.search` finds.

    Returns
    -------
    Found
        By query, then row. With `first`, the rows compared are more than there.

    Notes
    -----
    Parameters, source and errors as there. The header looked up is as wide as the directory would
    be, so that the same rows are compared.
    """
    permuted: list[SortedRows] = [table, *table.structures[design.structure].tables]
    whole = table.header_bits if lookup == "directory" else 64
    left = np.arange(len(queries))
    parts = []
    probes = compared = missing = 0
    for number, flips in enumerate(design.table_flips(h)):
        if flips < 0:
            continue
        rows = permuted[number]
        bits = min(rows.header_bits, design.header_bits[number])
        near = probe(
            rows, design.permute(queries[left], number), exhaustive_masks(bits, flips),
            header_bits=bits, h=h, first=first, lookup=lookup,
        )
        probes, compared = probes + near.probes, compared + near.compared
        query, row, distance = near.query, near.row, near.distance
        if number:
            own = _first_of_equals(rows.fingerprints, row)
            hits = design.unpermute(rows.fingerprints[row[own]], number)
            again = probe(
                table, hits, _NO_FLIP, header_bits=whole, h=0, first=first, lookup=lookup
            )
            missing += len(hits) - len(np.unique(again.query))
            query, row, distance = query[own][again.query], again.row, distance[own][again.query]
        parts.append((left[query], row, distance))
        if first:
            left = np.setdiff1d(left, left[query])
    query, row, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    _, kept = np.unique(query << 32 | row, return_index=True)
    at = row[kept].astype(np.uint32)
    ids = verified_at(table.ids, at)
    if missing:
        refuse_missing(table, design, missing)
    return Found(query[kept], at, distance[kept], ids, probes, compared)


_NO_FLIP = np.zeros(1, np.uint64)


def _compared(rows: U64, queries: U64, under: Buckets, h: int) -> tuple[I64, I64, U16]:
    """(query, row, distance) of the rows of all buckets that are within h."""
    first = under.first.reshape(-1).astype(np.int64)
    ends = np.cumsum(under.end.reshape(-1) - first)
    total = int(ends[-1]) if len(ends) else 0
    step = max(1, SLICE_WORDS // rows.shape[1])
    query, row, distance = [_NO_ROWS], [_NO_ROWS], [_NO_ROWS.astype(np.uint16)]
    for start in range(0, total, step):
        # Rows of all buckets one after the other, by their place among them.
        place = np.arange(start, min(total, start + step))
        bucket = np.searchsorted(ends, place, side="right")
        at = under.end.reshape(-1)[bucket] - (ends[bucket] - place)
        asked = bucket // under.first.shape[1]
        apart = np.bitwise_count(rows[at] ^ queries[asked]).sum(axis=1, dtype=np.uint16)
        near = apart <= h
        query.append(asked[near])
        row.append(at[near])
        distance.append(apart[near])
    return np.concatenate(query), np.concatenate(row), np.concatenate(distance)


_NO_ROWS = np.empty(0, np.int64)


def _first_of_equals(rows: U64, at: I64) -> NDArray[np.bool_]:
    """Whether a row is the first of its equals, which are neighbours."""
    unlike: NDArray[np.bool_] = (rows[at] != rows[np.maximum(at, 1) - 1]).any(axis=1)
    unlike |= at == 0
    return unlike
