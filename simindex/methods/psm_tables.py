"""PSM in all tables of a block design: the k likeliest flips of the header of each.

    one table        a near row is found if all that it differs in of t header bits is likely
    T tables         it is found if that is so in one of T headers, which share no bits where the
                     design has g = 1

At a cosine of 0.9, three of 20 header bits differ, and one header takes 1,250 flips to find 95 in
100. Four headers take 24 flips each. So large radii, which hardly any table is exact for, are
searched here where the queries have weights.

A row found in a permuted table is un-permuted and found again in table 0, which knows whose it is.
`first` goes on to the next table only with the queries that have found nothing.

Invariants
1. A pair of query and fingerprint is reported once, whichever tables find it.
2. What is found depends on neither threads, slices nor sweeps: it follows from the query, its
   weights and the row.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64, U8, U16, U64
from simindex.bits.design import BlockDesign
from simindex.methods.base import Asked, Found, TablePlan, joined, reaches
from simindex.methods.bphs import refuse_missing
from simindex.methods.psm import NAME, checked_order
from simindex.storage.files.checksums import section_of
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table

Numbers = TypeVar("Numbers", bound=np.generic)

OWN_HEADER = np.zeros(1, np.uint64)
"""Of a look-up in table 0: no bit flips."""


class _Pairs(NamedTuple):
    """Queries and fingerprints of stored rows within h; columns of one length."""

    query: I64
    fingerprint: U64
    distance: U16


def method_of(design: BlockDesign) -> str:
    """The name that plans of the design's tables have."""
    return f"{NAME}:{design.structure.partition(':')[2]}"


def leading_columns(design: BlockDesign, number: int) -> list[slice]:
    """The columns of a fingerprint, those of a table's header first, and then the others."""
    header = [slice(first, first + width) for first, width in design.headers[number]]
    rest, start = [], 0
    for one in sorted(header, key=lambda part: part.start):
        rest.append(slice(start, one.start))
        start = one.stop
    rest.append(slice(start, design.bits))
    return header + [part for part in rest if part.stop > part.start]


def permuted_weights(
    design: BlockDesign, weights: NDArray[Numbers], number: int
) -> NDArray[Numbers]:
    """Weights (n, b), or their costs, in the order of columns that a table has."""
    if number == 0:
        return weights
    return np.concatenate(
        [weights[:, part] for part in leading_columns(design, number)], axis=1
    )


def search(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """Rows of a table within h of each query, under the likeliest headers of each of its tables.

    The plan's design is one whose tables the table has, of fingerprints of 64 bits.

    Raises
    ------
    CorruptFile
        If the permuted tables cannot be opened, or hold a row that table 0 does not.
    """
    design = plan.design
    assert design is not None and asked.weights is not None and asked.volatility is not None
    tables: list[SortedRows] = [table, *table.structures[design.structure].tables]
    own: list[Found] = []
    others: list[Found] = []
    open_queries: I64 | None = None
    steps, most = (None, 0) if asked.first else asked.volatility.in_steps(asked.weights)
    for number, rows in enumerate(tables):
        some = asked if open_queries is None else asked.of(open_queries)._replace(first=True)
        if not len(some.queries):
            break
        found = _looked_up(rows, plan, some, number, steps, most)
        if open_queries is not None:
            found = found._replace(query=open_queries[found.query])
        if number:
            found = found._replace(id=design.unpermute(found.id, number))
        (others if number else own).append(found)
        if asked.first:
            left = np.ones(len(asked.queries), np.bool_)
            for earlier in (*own, *others):
                left[earlier.query] = False
            open_queries = np.flatnonzero(left)
    at_once = joined(own)
    known = table.fingerprints[at_once.row, 0]
    pairs = _distinct(at_once, known, joined(others))
    again = _found_again(table, design, pairs, asked, held=sum(len(one.query) for one in others))
    counted = joined([one._replace(
        query=one.query[:0], row=one.row[:0], distance=one.distance[:0], id=one.id[:0]
    ) for one in others])
    return joined([at_once, again, counted])


def _looked_up(
    rows: SortedRows, plan: TablePlan, asked: Asked, number: int, steps: U8 | None, most: int
) -> Found:
    """What one table has within h, of which differing bits cost no more than `most` steps; ids of
    a permuted one are its own fingerprints."""
    design = plan.design
    assert design is not None and asked.weights is not None and asked.volatility is not None
    order = checked_order(
        asked.volatility, design.bits, plan.widths[number], asked.h, plan.flips
    )
    queries = asked.queries if number == 0 else design.permute(asked.queries, number)
    weights = permuted_weights(design, asked.weights, number)
    if steps is not None:
        steps = permuted_weights(design, steps, number)
    checked = _checked(rows)
    if asked.first or not reaches(len(queries), plan.swept_from):
        return Found._make(_native.psm_checked(
            checked, order, queries, weights, asked.first, room=asked.room, costs=steps, most=most
        ))
    probes = _native.partition_psm(checked, order, queries, weights, None, True)
    return Found._make(_native.sweep(
        checked, probes, asked.h, 0, probes.partitions, None, room=asked.room, costs=steps,
        most=most,
    ))


def _checked(rows: SortedRows) -> _native.CheckedTable:
    """A table as the probing kernels take it. A permuted one has its fingerprints as ids: what
    is found there is found again by them."""
    if isinstance(rows, Table):
        return rows.checked
    section = section_of(rows.fingerprints)
    return _native.CheckedTable(
        rows.fingerprints, rows.directory, rows.header_bits, rows.fingerprints[:, 0], section,
        section,
    )


def _distinct(own: Found, own_fingerprints: U64, others: Found) -> _Pairs:
    """The pairs of permuted tables that table 0 has not found, each once."""
    query = np.concatenate([own.query, others.query])
    fingerprint = np.concatenate([own_fingerprints, others.id])
    order = np.lexsort((fingerprint, query))  # stable: those of table 0 come first
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(query[order]) != 0) | (np.diff(fingerprint[order]) != 0)
    places = order[fresh]
    places = places[places >= len(own.query)] - len(own.query)
    return _Pairs(others.query[places], others.id[places], others.distance[places])


def _found_again(
    table: Table, design: BlockDesign, pairs: _Pairs, asked: Asked, *, held: int
) -> Found:
    """All rows of pairs, of which permuted tables have `held` in room, found again in table 0."""
    asked.dropped(held)
    if not len(pairs.query):
        return joined([])
    again = Found._make(_native.probe_checked(
        table.checked, table.header_bits, pairs.fingerprint[:, None], OWN_HEADER, 0, asked.first,
        room=asked.room,
    ))
    missing = len(pairs.query) - np.count_nonzero(
        np.bincount(again.query, minlength=len(pairs.query))
    )
    if missing:
        refuse_missing(table, design, int(missing))
    return again._replace(
        query=pairs.query[again.query], distance=pairs.distance[again.query], probes=0, compared=0
    )
