"""What a search takes with the engine's own kernels, in nanoseconds a query on one thread.

    PSM     VOSH(k) + (k + 1) look-up                        as [PSM] (19)
    BPHS    sum over tables of TABLE + p look-up             as [PSM] (9), p probes of a table
    scan    rows * SCANNED                                   and ANSWERED of them all
    top K   words (SCANNED + TURNED / m), or words * ALONE
    ISSL    rows * CLEARED + lists * LIST + scored * SCORED + R * RERANKED
    batch   T (P + S log m) + rows (sum of P + p look-up) / m    as [PSM] (17), tables over queries
    look-up     LEVEL(bytes, rows under the header)
    all flips   LEVEL less the pages that neighbouring headers share
    PSM         less half of VOSH, or of the wait for memory if that is shorter: they overlap
    if swept    SWEPT(rows under the header) or BUCKETED, and rows brought in * STREAMED / queries

Where this leaves the papers' form (`model`): look-ups go by header directory, not by search; many
are in flight at once, so that one costs what the memory can deliver, not how long it takes to
answer, and that depends on where the table fits (`Machine.levels`, interpolated); a row is an
eighth of a compare, and less where a bucket is long; and a large batch is swept. The constants are
a `Machine`'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from math import log2

from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.vosh import MAX_NETWORKED_FLIPS, set_count
from simindex.methods import bphs
from simindex.methods.psm import MOST_PROBES
from simindex.methods.query_tables import bytes_needed, directory_bits, sweeps
from simindex.methods.stream import Stream
from simindex.planning.machine import Curve, Level, Machine

CALL_NS = 9_000.0
"""A call, whatever it asks: looking for new commits, planning, making the matches."""

SEGMENT_NS = 4_000.0
"""And each segment in it: a kernel is called, and hands its arrays over."""

ANSWERED_NS = 12.0
"""Putting a query's matches in order, where about every other query has one."""

UNFORESEEN_NS, FORESEEN_SHARE = 55.0, 0.5
"""And coming upon them between probes. A sweep puts it off as far as it reads in order: one of
permuted tables all of it, and one in VOSH order such a share."""

MATCHED_WAITS = 1.5
"""Giving a row found by tables over the queries its id and queries waits so often for memory, where
every other query has one."""

FOUND_AGAIN_SHARE, FOUND_AGAIN_WAITS = 0.5, 3
"""Of the queries have a row that is found again in table 0, where the directory, the rows and the
ids are waited for, one after the other. What that takes near the processor is in `table_ns`."""

FOUND_NEAR_BYTES, FOUND_FAR_BYTES = 1 << 23, 1 << 29
"""Of table 0: up to the first, nothing is waited for; from the second on, all is."""

WIDE_WORD_NS = 5.0
"""Permuting a word of a row that has several."""

LONG_BUCKET, SHARED_BUCKET = 64, 2
"""Rows, and probes, that headers must have on average for the costs of a sweep bucket by bucket.
From fewer probes on, such a sweep waits for rows, and a probe takes about what one alone takes."""

SHARED_SHARE, SHARED_SLOPE, BUCKET_NS = 0.6, 0.75, 20.0
"""Where probes share a short bucket: what a probe takes of `Machine.swept`, what a row more, and
what the bucket takes. Fitted to sweeps of 60 M rows under 20 to 23 header bits."""

SLICED_WORDS = 2.0
"""What a word takes whose slices are compared, in words that are scanned."""

ROWS_OF_A_LINE = 8

LANES = 16
"""Queries that a sorting network takes together."""

OVERLAPPING_QUERIES, OVERLAPPED_SHARE = 4 * LANES, 0.5
"""From so many in a call on, flip sets of some are made while the rows of others come in, and such
a part of the shorter of both counts. Fewer are one block or two, which wait for their own."""

PAGE_ROWS = 512
"""Of 64 bits, in 4 KB. Also where a program has larger pages, the host of a virtual machine often
has not. The headers next to each other whose rows these are differ in their last bits."""

SHARED_QUERIES = 16
"""If a call has at least this many queries, each slab of a scan serves many of them."""


NEAR_BYTES, FAR_BYTES = 1 << 20, 1 << 26
"""Of a table: up to the first it is near the processor, from the second on in memory."""


def along(curve: Curve, x: float) -> float:
    """y at x: on the lines between the points, the last going on; level before the first."""
    at = min(max(1, bisect_left(curve, (x,))), len(curve) - 1)
    if x <= curve[0][0] or len(curve) == 1:
        return curve[0][1]
    (left, low), (right, high) = curve[at - 1], curve[at]
    return low + (x - left) / (right - left) * (high - low)


def counted_ns(machine: Machine, h: int, header_bits: int) -> float:
    """What a row takes more where bits are counted at once: equal bytes do not tell so far a row.

    Of the bytes that are not of the header, two must be equal; the curves are measured at h = 3.
    """
    told = h + 2 + -(-header_bits // 8) <= 8
    return 0.0 if told else max(0.0, machine.scanned_far_ns - machine.scanned_ns)


def look_up_ns(machine: Machine, table_bytes: float, bucket: float) -> float:
    """Cost of a probe, by the rows that have its header and by the bytes of the table."""
    size, levels = _levels_at(machine, table_bytes)
    return along(tuple((log2(most), along(curve, bucket)) for most, curve in levels), log2(size))


def _levels_at(machine: Machine, table_bytes: float) -> tuple[float, Sequence[Level]]:
    """The size of a table, at most that of the last level, and the levels that it lies between."""
    levels = machine.levels
    size = min(max(1.0, table_bytes), levels[-1][0])
    after = min(max(1, bisect_left(levels, (size,))), len(levels) - 1)
    return size, levels[max(0, after - 1) : after + 1]


def shared_page_ns(machine: Machine, rows: int, words: int, header_bits: int, h: int) -> float:
    """What a probe takes less if a query looks under all headers within h bits.

    The levels are measured with all headers within 1 bit. Of those within h more share a page with
    another, whose address is then at hand. At 60 M rows under 23 bits, a probe took 24.6 ns with
    one flip, 20.8 with two and 19.6 with three; under 21 bits 45.0, 42.9 and 41.4.
    """
    headers = PAGE_ROWS * (1 << header_bits) / max(1, rows * words)
    beside = min(header_bits, max(0, int(log2(headers))))

    def pages(flips: int) -> float:
        """A probe, of headers within so many bits."""
        other, every = (set_count(bits, flips) for bits in (header_bits - beside, header_bits))
        return (1 + other) / (1 + every)

    size = table_bytes(rows, words, header_bits)
    page = max(0.0, _no_rows_ns(machine, size) - _no_rows_ns(machine, 1)) / pages(1)
    return page * (pages(1) - pages(h)) if h > 1 else 0.0


def _no_rows_ns(machine: Machine, table_bytes: float) -> float:
    """A probe of a header without rows, by the first two points of the levels."""
    size, levels = _levels_at(machine, table_bytes)
    points = []
    for most, curve in levels:
        (few, low), (more, high) = curve[0], curve[min(1, len(curve) - 1)]
        slope = (high - low) / (more - few) if more > few else 0.0
        points.append((log2(most), max(0.0, low - few * slope)))
    return along(tuple(points), log2(size))


def table_bytes(rows: int, words: int, directory_bits: int) -> int:
    """Memory of a table and its header directory."""
    return 8 * words * rows + (4 << directory_bits)


def probing_ns(
    machine: Machine,
    rows: int,
    header_bits: int,
    flips: int,
    *,
    ordered: bool,
    compared: float | None = None,
    h: int = 3,
    words: int = 1,
    queries: int = 1,
    swept: bool = False,
) -> float:
    """Time of one query that looks under `flips` + 1 headers; `ordered` adds making the VOSH.

    `compared` are rows that it is compared with, if they are not uniform; `swept` is whether the
    table is passed once for all queries of the call.
    """
    queries, probes = max(1, queries), flips + 1
    if compared is None:
        compared = uniformly_compared(rows, probes, header_bits)
    computed = UNFORESEEN_NS + (vosh_ns(machine, flips, h, queries) if ordered else 0.0)
    if swept:
        brought = _brought_share(rows, header_bits, queries * probes)
        computed -= FORESEEN_SHARE * brought * UNFORESEEN_NS
    looked_up = _looked_up_ns(
        machine, rows, words, header_bits, probes, compared, swept, queries, h
    )
    if not ordered and not swept:
        looked_up -= probes * shared_page_ns(machine, rows, words, header_bits, h)
    waited = 0.0
    if ordered and not swept and queries >= OVERLAPPING_QUERIES:
        bucket = compared * words / probes
        far = look_up_ns(machine, table_bytes(rows, words, header_bits), bucket)
        waited = probes * max(0.0, far - look_up_ns(machine, 1, bucket))
    return ANSWERED_NS + looked_up + computed - OVERLAPPED_SHARE * min(computed, waited)


def vosh_ns(machine: Machine, flips: int, h: int, queries: int) -> float:
    """Putting a query's flip sets in order; networks do so for 16 queries at a time, or fewer."""
    if flips == 0 or queries == 0:
        return 0.0
    if flips > MAX_NETWORKED_FLIPS:
        return flips * along(machine.heaped, min(h, machine.heaped[-1][0]))
    return along(machine.vosh, flips) * (-(-queries // LANES) * LANES / queries)


def permuted_ns(
    machine: Machine,
    rows: int,
    tables: Sequence[tuple[int, int]],
    *,
    compared: Sequence[float] | None = None,
    h: int = 3,
    words: int = 1,
    queries: int = 1,
    swept: bool = False,
) -> float:
    """Time of one query that makes (probes, header bits) in each of a design's tables.

    `compared` are rows that it is compared with in each, if they are not uniform; `swept` is
    whether each table is passed once for all queries of the call.
    """
    if compared is None:
        compared = [uniformly_compared(rows, probes, bits) for probes, bits in tables]
    queries = max(1, queries)
    put_off = min(
        (_brought_share(rows, bits, probes * queries) for probes, bits in tables), default=0.0
    ) if swept else 0.0
    met = ANSWERED_NS + (1 - put_off) * UNFORESEEN_NS
    met += found_again_ns(machine, len(tables) * rows, words)
    return met + sum(
        machine.table_ns + _looked_up_ns(
            machine, rows, words, header_bits, probes, some, swept, queries, h, among=len(tables)
        )
        for (probes, header_bits), some in zip(tables, compared, strict=True)
    )


def uniformly_compared(rows: int, probes: int, header_bits: int) -> float:
    """Rows under so many headers, if they are uniform."""
    return probes * rows / (1 << header_bits)


def found_again_ns(machine: Machine, rows: int, words: int) -> float:
    """Waiting for memory while the rows found in permuted tables are found again in table 0.

    `rows` are those of all tables, which share the caches.
    """
    ends = ((log2(FOUND_NEAR_BYTES), 0.0), (log2(FOUND_FAR_BYTES), machine.delta_r_ns))
    size = min(max(1, 8 * words * rows), FOUND_FAR_BYTES)
    return FOUND_AGAIN_SHARE * FOUND_AGAIN_WAITS * along(ends, log2(size))


def _looked_up_ns(
    machine: Machine,
    rows: int,
    words: int,
    header_bits: int,
    probes: int,
    compared: float,
    swept: bool,
    queries: int,
    h: int,
    among: int = 1,
) -> float:
    """Of all probes of a query in a table, which is one of so many that share the caches.

    It is compared with `compared` rows.
    """
    bucket = compared / probes
    counted = bucket * counted_ns(machine, h, header_bits)
    size = among * table_bytes(rows, words, header_bits)
    alone = look_up_ns(machine, size, bucket * words)
    if not swept:
        return probes * (alone + counted)
    sharing = min(queries * probes, MOST_PROBES) / (1 << header_bits)
    long = rows >= LONG_BUCKET << header_bits
    brought = _brought_share(rows, header_bits, queries * probes)
    probe = along(machine.swept, bucket)
    if sharing >= SHARED_BUCKET and long:
        probe = along(machine.bucketed, bucket)
    elif sharing >= SHARED_BUCKET:
        few, least = machine.swept[0]
        further = along(machine.swept, few + 100) - least
        shared = SHARED_SHARE * least + SHARED_SLOPE * further * bucket / 100
        probe = min(probe, shared + BUCKET_NS / sharing)
    # Where probes are so few that rows between them are passed over, nothing is read in order.
    probe += brought * rows * machine.streamed_ns / (queries * probes)
    probe += (1 - brought) * max(0.0, alone - probe)
    return probes * (probe + counted)


def _brought_share(rows: int, header_bits: int, probes: int) -> float:
    """Of the rows, brought in by so many probes of all queries.

    They are the lines that a bucket lies in, also in part, and one of the directory.
    """
    lines = rows / (1 << header_bits) + 3 * ROWS_OF_A_LINE
    return min(1.0, probes * lines / max(1, rows))


def scanning_ns(machine: Machine, rows: int, words: int, queries: int, h: int = 3) -> float:
    """Time of one query that is compared with every row."""
    row = machine.scanned_ns + counted_ns(machine, h, 0)
    # A query alone waits for memory, unless the table is near the processor; many share the wait.
    near = look_up_ns(machine, 8 * words * rows, rows) / max(1, rows)
    waited = max(0.0, min(machine.scanned_alone_ns, near) - row)
    row += waited if queries < SHARED_QUERIES else waited / queries
    return ANSWERED_NS + rows * words * row


def top_scanning_ns(machine: Machine, rows: int, words: int, queries: int) -> float:
    """Time of one query for the nearest documents that is compared with every row.

    A single query takes rows as they are and waits for memory, unless the table is near the
    processor; many have them turned into columns of bits first.
    """
    size = 8 * rows * words
    near, far = machine.top_near_ns, machine.top_alone_ns
    ends = ((log2(NEAR_BYTES), near), (log2(FAR_BYTES), far))
    alone = along(ends, min(log2(max(1, size)), log2(FAR_BYTES)))
    turned = machine.top_scanned_ns + machine.top_turned_ns / max(1, queries)
    return ANSWERED_NS + rows * words * min(alone, turned)


def issl_ns(
    machine: Machine, rows: int, words: int, lists: float, scored: float, rerank: int
) -> float:
    """Time of one query for the nearest documents that looks into slice lists.

    `scored` rows are in them together, of which the `rerank` of highest score are compared. Where
    that takes longer than a scan of the rows, their slices are compared instead, in order.
    """
    compared = min(rerank, rows) * machine.issl_reranked_ns
    by_lists = lists * machine.issl_list_ns + scored * machine.issl_scored_ns
    by_rows = rows * words * SLICED_WORDS * machine.top_alone_ns
    return ANSWERED_NS + rows * machine.issl_cleared_ns + min(by_lists, by_rows) + compared


def issl_within_ns(
    machine: Machine, rows: int, lists: float, listed: float, *, slices: int, h: int
) -> float:
    """Time of one query for all rows within h by slice lists; exact.

    Of `slices` only so many are looked up as a row within h cannot all miss, and every row that is
    in one of their lists is compared; all of them have `lists` lists with `listed` rows.
    """
    share = min(1.0, (h + 1) / (h // slices + 1) / slices)
    return (
        ANSWERED_NS + UNFORESEEN_NS + rows * machine.issl_cleared_ns
        + share * lists * machine.issl_list_ns + share * listed * machine.issl_scored_ns
        + min(share * listed, rows) * machine.issl_reranked_ns
    )


def query_tables_ns(
    machine: Machine,
    rows: int,
    design: BlockDesign,
    *,
    h: int = 3,
    words: int = 1,
    queries: int = 1,
    chunk_rows: int = 1 << 20,
    crowded: float = 0.0,
) -> float:
    """Time of one query of a batch whose tables the stored rows are streamed past: [PSM] (17).

    Of the processor alone, on one thread; the file is read meanwhile. `crowded` is the share of the
    stored rows, and so of queries like them, under one header of table 0.
    """
    queries = max(1, queries)
    widths = [directory_bits(queries, words)] * design.tables
    looked_up = bphs.looked_up(design, design.table_flips(h), widths)
    moved = machine.delta_p_ns if words == 1 else words * WIDE_WORD_NS
    built = len(looked_up) * (moved + words * machine.delta_s_ns * log2(queries))
    compared = [uniformly_compared(queries, probes, width) for probes, width in looked_up]
    compared[0] = max(compared[0], crowded * queries)
    row = sum(
        moved + _looked_up_ns(
            machine, queries, words, width, probes, some, sweeps(chunk_rows, words), chunk_rows, h
        )
        for (probes, width), some in zip(looked_up, compared, strict=True)
    )
    return MATCHED_WAITS * machine.delta_r_ns + built + row * rows / queries


@lru_cache(maxsize=64)
def query_design(
    machine: Machine,
    rows: int,
    *,
    h: int,
    words: int = 1,
    queries: int = 1,
    memory_bytes: int | None = None,
    stream: Stream | None = None,
    crowded: float = 0.0,
) -> BlockDesign | None:
    """The design of the least `query_tables_ns`, of those whose tables fit; None if none does.

    A forecast asks the same for each structure that an index may have.
    """
    stream = stream or Stream()
    fitting = [
        design for design in designs_for(h, 64 * words)
        if memory_bytes is None
        or bytes_needed(queries, words, design, h=h, stream=stream) <= memory_bytes
    ]
    return min(
        fitting, default=None,
        key=lambda design: query_tables_ns(
            machine, rows, design, h=h, words=words, queries=queries,
            chunk_rows=stream.chunk_rows(words), crowded=crowded,
        ),
    )
