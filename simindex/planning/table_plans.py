"""The ways through a table that each method offers, what they are expected to take, and hold.

Sizes, and what was surveyed, decide: nothing is read here. Those of permuted tables are in
`permuted_plans`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from simindex.bits.design import BlockDesign
from simindex.bits.vosh import set_count
from simindex.errors import InvalidOption
from simindex.methods import issl, psm, scan
from simindex.methods.base import TablePlan, TopTablePlan, reaches
from simindex.methods.crowding import MOST_FLIPS, Crowding
from simindex.methods.stream import Stream
from simindex.planning.conditions import Carried, Conditions, TopConditions
from simindex.planning.costs import (
    issl_ns,
    issl_within_ns,
    probing_ns,
    scanning_ns,
    table_bytes,
    top_scanning_ns,
)
from simindex.storage.tables.table import Table

NARROWEST = 10
"""How many bits narrower than a table's directory a header may be chosen."""


# -- scan ------------------------------------------------------------------------------------------


def scans(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """All rows are compared."""
    rows, words = table.fingerprints.shape
    cost = scanning_ns(asked.machine, rows, words, asked.queries, asked.h)
    yield TablePlan(scan.NAME, 0, 0, True, cost, compared=float(rows))


def scan_passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[tuple[TablePlan, int]]:
    """The same in chunks, which takes next to no memory."""
    for plan in scans(table, asked):
        yield replace(plan, pass_from=0), stream.resident_bytes(table.fingerprints.shape[1])



# -- PSM -------------------------------------------------------------------------------------------


def probed(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The sorted table, by headers as wide as its directory's and narrower ones."""
    tried = set()
    if not asked.named:
        for plan in exhaustive(table, asked):
            tried.add(plan.header_bits)
            yield plan
    for header_bits in narrower(table.header_bits):
        every = set_count(header_bits, asked.h)
        k = every if asked.flips is None else min(every, asked.flips[header_bits])
        if k != every or header_bits not in tried:
            yield _probed_plan(table, header_bits, k, asked, exact=k == every)


def narrower(header_bits: int) -> range:
    """Widths of headers that are looked up where a directory has so wide ones."""
    return range(header_bits, max(0, header_bits - NARROWEST) - 1, -1)


def exhaustive(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The sorted table, with all flip sets of at most h bits."""
    for header_bits in range(table.header_bits, max(0, table.header_bits - 12), -1):
        flips = set_count(header_bits, asked.h)
        if flips < 1 << 21:
            yield _probed_plan(table, header_bits, flips, asked, exact=True)


def exact_plan(table: Table, asked: Conditions) -> TablePlan:
    """The cheaper of the two exact ways through any table: all flip sets, or all rows."""
    return min(
        (*scans(table, asked), *exhaustive(table, asked)), key=lambda one: one.nanoseconds
    )


def _probed_plan(
    table: Table, header_bits: int, flips: int, asked: Conditions, *, exact: bool
) -> TablePlan:
    rows, words = table.fingerprints.shape
    pass_from = psm.pass_from(rows, words, header_bits, flips, exact=exact)
    compared = (flips + 1) * max(rows / (1 << header_bits), _crowded_bucket(table, asked))
    cost = probing_ns(
        asked.machine, rows, header_bits, flips, ordered=not exact, compared=compared, h=asked.h,
        words=words, queries=asked.queries, swept=reaches(asked.queries, pass_from),
    )
    return TablePlan(
        psm.NAME, header_bits, flips, exact, cost, widths=(header_bits,), probes=flips + 1,
        compared=compared,
        pass_from=pass_from,
    )


def _crowded_bucket(table: Table, asked: Conditions) -> float:
    """Rows under a header of the directory within h of a row's, on average: under a narrower one
    there are no fewer."""
    found: Crowding | None = asked.found
    if found is None or found.own is None:
        return 0.0
    flips = min(asked.h, MOST_FLIPS)
    return found.own[flips] / (1 + set_count(table.header_bits, flips))


def probed_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of all tables and their header directories."""
    return sum(
        table_bytes(len(table), table.fingerprints.shape[1], table.header_bits) for table in tables
    )


def probed_passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[tuple[TablePlan, int]]:
    """The plan of a call without a limit, if its probes can be partitioned: by no other headers, so
    that a limit changes no answer."""
    if psm.can_sweep(usual):
        needed = psm.bytes_needed(table, usual.flips, asked.queries, stream)
        yield replace(usual, pass_from=0), needed



# -- ISSL ------------------------------------------------------------------------------------------


def by_lists(table: Table, asked: Conditions) -> Iterable[TablePlan]:
    """The table's slice lists, if they were counted; exact by the pigeonhole principle.

    Of s slices of two fingerprints within h, one differs in at most h // s bits.
    """
    if asked.found is None or table.slices is None:
        return
    slices, rows, (lists, listed) = table.slices.slices, len(table), asked.found
    cost = issl_within_ns(asked.machine, rows, lists, listed, slices=slices, h=asked.h)
    yield TablePlan(
        issl.NAME, 0, 0, True, cost, max_error=asked.h // slices, probes=lists,
        compared=min(listed, rows),
    )


def lists_available(carried: Carried, method: str, h: int) -> Sequence[BlockDesign]:
    """Refuses an index without slice lists, if they are asked for, with InvalidOption."""
    if method == issl.NAME and not carried.sliced and len(carried.unlisted) == carried.segments:
        raise InvalidOption(
            'method="issl" needs slice lists, but the index has none',
            remedy='add "issl" to the structures with `simindex compact --structures` or '
            'Index.compact(structures=...), or use method="auto"', option="method", found=method,
            lacks="structures",
        )
    return ()


def listed_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of all tables and their slice lists, and of header directories where they have none.
    """
    return sum(
        probed_bytes([table], design) if table.slices is None
        else table.fingerprints.nbytes + table.slices.record.file_bytes
        for table in tables
    )



# -- nearest documents -----------------------------------------------------------------------------


def top_scans(table: Table, asked: TopConditions) -> TopTablePlan:
    """All rows are compared."""
    rows, words = table.fingerprints.shape
    cost = top_scanning_ns(asked.machine, rows, words, asked.queries)
    return TopTablePlan(scan.NAME, True, cost, compared=rows)


def top_by_lists(table: Table, asked: TopConditions) -> TopTablePlan | None:
    """The rows of highest score by the table's slice lists, if they were counted."""
    rows, words = table.fingerprints.shape
    slices, rerank = table.slices, asked.rerank
    if slices is None or asked.found is None or rows == 0:
        return None
    if rerank is None:
        rerank = issl.default_rerank(
            rows, asked.k, asked.max_error, width=slices.width, slices=slices.slices
        )
    rerank = min(rerank, rows)
    lists, scored = asked.found
    cost = issl_ns(asked.machine, rows, words, lists, scored, rerank)
    return TopTablePlan(
        issl.NAME, rerank >= rows, cost, rerank, asked.max_error, lists, rerank, scored
    )


def check_lists(carried: Carried) -> None:
    """Refuses an index whose segments are not all listed with InvalidOption."""
    without, segments = len(carried.unlisted), carried.segments
    if not without and (segments or carried.sliced):
        return
    found = "the index has none"
    if 0 < without < segments:
        found = f"{without} of {segments} segments have none"
    raise InvalidOption(
        f'method="issl" needs slice lists, but {found}',
        remedy='add "issl" to the structures with `simindex compact --structures` or '
        'Index.compact(structures=...), or use method="auto"', option="method", found=issl.NAME,
        lacks="structures", segments=carried.unlisted,
    )
