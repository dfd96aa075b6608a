"""PSM: flips the likeliest header bits of a query and looks each result up. [PSM] sections 4-5.

The query's header, and then those k headers that a near-duplicate most likely has (in VOSH order),
are looked up in one sorted table; the rows under each are compared by exact distance. `first` is
PSMF (F), else PSMA (A). With all flip sets of at most h header bits it is exact.

    online    `search`: the headers of a query, one after the other
    batch     `swept`: the probes of all queries are partitioned by header, and the table is swept
              in order

    A    own header and k flips of every query -> partitions            one sweep
    F    own headers -> partitions                                      one sweep
         k flips of those that found nothing -> partitions              one more

[PSM] section 5 reads a file in chunks that are each sorted and probed by every query; here the
table is sorted as a whole, so that a probe has one place in it and the file is read once, in order.
Where rows are given back as they are passed (a memory limit), everything is partitioned first and
both sweeps of F go through each chunk while it is there.

Invariants of a sweep
1. What is found depends on neither threads, slices nor chunks: which round a header belongs to is
   the plan's alone.
2. In F a query's matches are of one round, the first that finds any. Where there is no room for
   all of them, they are those that `search` takes for a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, I64, U64
from simindex.bits import vosh
from simindex.bits.volatility import STEP, Volatility
from simindex.methods.base import Asked, Found, TablePlan, joined
from simindex.methods.psm_slice import Slice
from simindex.methods.stream import Stream
from simindex.options import SORTED_TABLE
from simindex.resources.threads import Pool
from simindex.storage.files import readahead
from simindex.storage.files.envelope import PAGE_BYTES
from simindex.storage.tables.table import Table

NAME = SORTED_TABLE
"""What a call asks for."""

SWEPT_ROWS = 1 << 20
"""Rows from which a sweep was measured faster than probes on their own: 8 MB of fingerprints."""

ROWS_PER_PROBE = 32
"""A sweep reads all rows once. It was measured faster with a probe for this many rows or fewer."""

SWEPT_FLIPS = 64
"""A sweep takes its flip sets from networks, which exist for small numbers of them."""

MAX_HEADER_BITS = 32
"""And of headers no wider."""

SWEPT_QUERIES = 4096
"""Fewer never bring the probes a sweep needs, so that a single query need not be asked about it."""

LEAST_PROBES, MOST_PROBES = 1 << 24, 1 << 27
"""Probes of a call at a time, by the size of the table: a sweep of 60 M rows brings in 480 MB,
54 ms, which few probes would not be worth."""

PROBE_BYTES = 16

SLACK_BYTES = 10 << 20
"""Of partitioned probes: groups and chunks of each partition that are not full."""


@lru_cache(maxsize=16)
def exhaustive_masks(header_bits: int, h: int) -> U64:
    """uint64 (1 + set_count,): the empty mask, then every flip set of at most h header bits."""
    masks = [np.zeros(1, np.uint64)]
    for size in range(1, min(h, header_bits) + 1):
        places = np.array(list(combinations(range(header_bits), size)), np.uint64)
        bits = np.uint64(1) << (np.uint64(63) - places)
        masks.append(np.bitwise_or.reduce(bits, axis=1))
    joined = np.concatenate(masks)
    joined.setflags(write=False)
    return joined


def pass_from(
    rows: int, words: int, header_bits: int, flips: int, *, exact: bool
) -> int | None:
    """From how many queries on the table is swept once, partition by partition; None for never.

    A power of two: see `base.reaches`.

    Figures (one thread, ns a query, k = 15 at 60 M rows and k = 10 at 10 M, probes on their own
    against a sweep): 1 M queries 680 and 330, 354 and 225; 256 k queries 605 and 470, 337 and 239;
    64 k queries 647 and 629, 369 and 269. Only 64-bit fingerprints were measured.
    """
    if words != 1 or rows < SWEPT_ROWS or not _networked(header_bits, flips, exact):
        return None
    enough = -(-rows // ((flips + 1) * ROWS_PER_PROBE))
    return max(SWEPT_QUERIES, 1 << (enough - 1).bit_length())


def can_sweep(plan: TablePlan) -> bool:
    """Whether the plan's flip sets can be partitioned: they come from networks."""
    return plan.method == NAME and _networked(plan.header_bits, plan.flips, plan.exact)


def _networked(header_bits: int, flips: int, exact: bool) -> bool:
    return not exact and 0 < flips <= SWEPT_FLIPS and 0 < header_bits <= MAX_HEADER_BITS


def search(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """Rows of a table within h of each query, under the headers the plan reaches."""
    if plan.exact or asked.weights is None or asked.volatility is None:
        masks = exhaustive_masks(plan.header_bits, asked.h)
        return Found(
            *_native.probe_checked(
                table.checked, plan.header_bits, asked.queries, masks, asked.h, asked.first,
                room=asked.room,
            )
        )
    order = checked_order(
        asked.volatility, asked.weights.shape[1], plan.header_bits, asked.h, plan.flips
    )
    return Found._make(
        _native.psm_checked(
            table.checked, order, asked.queries, asked.weights, asked.first, room=asked.room
        )
    )


def passage(table: Table, plan: TablePlan, h: int, passages: _native.Passages) -> bool:
    """Adds all headers within h to the ways that one query by itself takes, where the plan looks
    all of them up."""
    if not plan.exact or plan.design is not None:
        return False
    masks = exhaustive_masks(plan.header_bits, h)
    passages.probe(table.checked, plan.header_bits, masks)
    return True


@lru_cache(maxsize=256)
def checked_order(
    volatility: Volatility, bits: int, header_bits: int, h: int, flips: int
) -> _native.CheckedVosh:
    """What the kernel needs to make the first `flips` flip sets of queries of `bits` weights."""
    order = vosh.plan(header_bits, h, flips)
    return _native.CheckedVosh(
        volatility.costs, STEP, bits, header_bits, h, flips, order.candidates, order.sort_network,
        order.select_network,
    )


def swept(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """Rows of a table within h of each query, under the headers of the plan's flip sets.

    These must have networks. With `first` queries are dropped once matched; a query's matches are
    then those of one round.

    Notes
    -----
    Memory is 16 bytes a probe, of `slice_queries` at a time, in addition to what is found. Rows
    that are not in memory are read ahead, in order, while probes are made.
    """
    assert asked.weights is not None and asked.volatility is not None
    queries, weights = asked.queries, asked.weights
    order = checked_order(
        asked.volatility, weights.shape[1], plan.header_bits, asked.h, plan.flips
    )
    if asked.stream is not None:
        return _search_within(table, plan, asked, weights, order, asked.stream)
    size = slice_queries(len(table), plan.flips, len(queries), asked.threads)

    def run(start: int) -> Found:
        stop = start + size
        some = Slice(
            table, queries[start:stop], weights[start:stop], order, asked.h, asked.room
        )
        try:
            found = some.first(plan.header_bits) if asked.first else some.all()
        except _native.NoRoom:
            if not asked.first:
                raise
            # A sweep finds all rows that match by a query's own header, and these are too many.
            found = search(table, plan, asked.slice(start, stop))
        return found if start == 0 else found._replace(query=found.query + start)

    wanted = [table.fingerprints]
    if reads_all_ids(len(table), len(queries)):
        wanted.append(table.ids)
    with readahead.brought_in(wanted), _mapping(asked.threads) as mapped:
        return joined(list(mapped(run, range(0, len(queries), size))))


def reads_all_ids(rows: int, queries: int) -> bool:
    """Whether a sweep reads all ids ahead, because most pages of them contain ids of matches."""
    return queries > rows >> 11


def slice_queries(rows: int, flips: int, queries: int, threads: int) -> int:
    """How many queries of a call are partitioned at a time, by each thread."""
    most = max(1, min(MOST_PROBES, max(LEAST_PROBES, 2 * rows)) // (flips + 1) // threads)
    share = -(-queries // threads)
    return max(1, -(-share // -(-share // most)))


def _search_within(
    table: Table, plan: TablePlan, asked: Asked, weights: F32, order: _native.CheckedVosh,
    stream: Stream,
) -> Found:
    """The same, in one pass over rows that are given back when they are passed.

    For memory see `bytes_needed`. With `first`, a query has one match at a time, its nearest so
    far. Reading ends with the chunk in which the last query matches by its own header.
    """
    first = asked.first
    share = -(-len(asked.queries) // stream.threads)
    starts = range(0, len(asked.queries), share)
    rooms = [asked.room for _ in starts]
    if asked.room is not None and first:  # of which none has less while another one fills its own
        rooms = [_native.Room(asked.room.left // len(starts)) for _ in starts]
    slices = [
        Slice(
            table, asked.queries[start : start + share], weights[start : start + share], order,
            asked.h, room, partial(_looked_up, table, plan, asked, stream, start),
        )
        for start, room in zip(starts, rooms, strict=True)
    ]
    with ExitStack() as stack:
        mapped = stack.enter_context(_mapping(stream.threads))
        list(mapped(lambda some: some.partition(plan.header_bits, first=first), slices))
        partitions = _chunk_partitions(table, slices[0].partitions, stream)
        bounds = [_first_row(table, slices[0].partitions, place) for place in partitions]
        chunks = stack.enter_context(
            closing(
                readahead.chunks(
                    table.fingerprints, bounds, window_bytes=stream.window_bytes,
                    release=stream.release,
                )
            )
        )
        for place, (start, stop) in enumerate(chunks):
            begin, end = partitions[place], partitions[place + 1]
            list(mapped(lambda some, begin=begin, end=end: some.sweep(begin, end), slices))
            if stream.release:
                readahead.give_back(table.ids[start:stop])
            if first and all(some.all_matched for some in slices):
                break
    found = [some.found() for some in slices]
    return joined([
        one._replace(query=one.query + start) for start, one in zip(starts, found, strict=True)
    ])


def _looked_up(
    table: Table, plan: TablePlan, asked: Asked, stream: Stream, start: int, numbers: I64
) -> Found:
    """A match of some of the queries from number `start` on, each by itself: of first matches there
    may be no room for all that a sweep finds. `query` is a number among those."""
    each = 2 * PAGE_BYTES * (plan.flips + 1)  # of rows and ids
    size = max(1, stream.resident_bytes(table.fingerprints.shape[1]) // each)
    parts = []
    for at in range(0, len(numbers), size):
        some = numbers[at : at + size]
        found = search(
            table, plan, asked.of(some + start)._replace(first=True, room=None)
        )
        parts.append(found._replace(query=some[found.query]))
        if stream.release:
            readahead.give_back(table.fingerprints)
            readahead.give_back(table.ids)
    return joined(parts)


def bytes_needed(table: Table, flips: int, queries: int, stream: Stream) -> int:
    """Memory of a pass in chunks, in bytes, matches aside."""
    probes = queries * (flips + 1) * PROBE_BYTES + 2 * stream.threads * SLACK_BYTES
    return probes + (4 << table.header_bits) + stream.resident_bytes(table.fingerprints.shape[1])


@contextmanager
def _mapping(threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    if threads == 1:
        yield map
        return
    with Pool(threads) as pool:
        yield pool.map


def _first_row(table: Table, partitions: int, partition: int) -> int:
    """First row of one of a power of two of partitions."""
    return int(table.directory[(len(table.directory) - 1) // partitions * partition])


def _chunk_partitions(table: Table, partitions: int, stream: Stream) -> Sequence[int]:
    """First partitions of chunks of about the stream's size, and the end."""
    most = stream.chunk_rows(table.fingerprints.shape[1])
    found = [0]
    for partition in range(1, partitions):
        following = _first_row(table, partitions, partition + 1)
        if following - _first_row(table, partitions, found[-1]) > most:
            found.append(partition)
    return [*found, partitions]
