"""The ways through a table to the nearest documents: all rows, or its slice lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import U64
from simindex.errors import InvalidOption
from simindex.methods import issl, scan
from simindex.methods.base import TopFound, TopTablePlan
from simindex.planning.costs import issl_ns, top_scanning_ns
from simindex.planning.method import TopConditions
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table


def scans(table: Table, asked: TopConditions) -> TopTablePlan:
    """All rows are compared."""
    rows, words = table.fingerprints.shape
    cost = top_scanning_ns(asked.machine, rows, words, asked.queries)
    return TopTablePlan(scan.NAME, True, cost, compared=rows)


def search_rows(
    table: Table, plan: TopTablePlan, queries: U64, k: int,
    dead: NDArray[np.uint8] | None, threads: int,
) -> TopFound:
    """The k nearest documents of a table among all rows."""
    return scan.top(table, queries, k, dead, threads)


def by_lists(table: Table, asked: TopConditions) -> TopTablePlan | None:
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


def search_lists(
    table: Table, plan: TopTablePlan, queries: U64, k: int, dead: NDArray[np.uint8] | None,
    threads: int,
) -> TopFound:
    """The k nearest documents of a table among the rows of highest score."""
    return issl.top(table, queries, k, plan.max_error, max(k, plan.rerank), dead, threads)


def check_lists(snapshot: Snapshot) -> None:
    """Refuses an index whose segments are not all listed with InvalidOption."""
    without = [segment.name for segment in snapshot.segments if segment.slices is None]
    if not without and (snapshot.segments or snapshot.slices is not None):
        return
    found = "the index has none"
    if 0 < len(without) < len(snapshot.segments):
        found = f"{len(without)} of {len(snapshot.segments)} segments have none"
    raise InvalidOption(
        f'method="issl" needs slice lists, and {found}: add "issl" to the structures with '
        '`simindex compact --structures` or Index.compact(structures=...), or use method="auto"',
        option="method", found=issl.NAME, segments=tuple(without),
    )
