"""The methods there are, and what a method is to the engine. A further one is a module and a row.

    asked by name       `name`, or "auto" among all others
    before planning     `survey` reads facts that sizes do not show; `available` refuses
    planning            `plans` for a table, the cheapest is taken; `held_bytes` and `passes` for a
                        call whose memory is bounded
    running             `search` some queries on one thread, `whole` in a pass over the table
    nearest documents   `top`, if it can

Its plans have the explanation: `TablePlan.widths`, `probes`, `compared`, `nanoseconds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from simindex._kernels import _native
from simindex.arrays import U8, U64
from simindex.bits.design import BlockDesign
from simindex.methods import bphs, crowding, issl, psm, psm_tables, query_tables, scan
from simindex.methods.base import Asked, Found, TablePlan, TopFound, TopTablePlan
from simindex.methods.stream import Stream
from simindex.planning import permuted_plans, table_plans
from simindex.planning.conditions import Carried, Conditions, TopConditions
from simindex.storage.tables.table import Table
from simindex.values import dataclass

Survey = Callable[[Table, int], Any]
"""What a table holds for a radius, or a max_error; raises CorruptFile. See `query.surveys`."""

Surveys = Mapping[str, Sequence[Any]]
"""What the `survey` of a method found in each table, by its name."""


@dataclass(frozen=True, slots=True)
class TopMethod:
    """How a method finds the nearest documents."""

    exact: bool
    plan: Callable[[Table, TopConditions], TopTablePlan | None]
    """None where a table has not what that takes."""
    search: Callable[[Table, TopTablePlan, U64, int, U8 | None, int], TopFound]
    """The k nearest of each query, by (table, plan, queries, k, dead rows, threads)."""
    available: Callable[[Carried], None] = lambda carried: None
    """Refuses an index without what it takes with InvalidOption."""
    survey: Survey | None = None
    """What a table holds for a max_error."""


def scanned_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of the rows of all tables."""
    return sum(table.fingerprints.nbytes for table in tables)


def no_designs(carried: Carried, method: str, h: int) -> Sequence[BlockDesign]:
    """Of a method that needs nothing in addition to the rows."""
    return ()


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the registry."""

    name: str
    plans: Callable[[Table, Conditions], Iterable[TablePlan]]
    """Ways through a table; none where it has not what they take."""
    search: Callable[[Table, TablePlan, Asked], Found]
    """Rows within h of each query, deleted ones included, on one thread."""
    whole: Callable[[Table, TablePlan, Asked], Found] | None = None
    """The same in one pass over the table, where the plan `takes_a_pass`."""
    in_design: Callable[[Table, TablePlan, Asked], Found] | None = None
    """What `search` does, for plans with a design, where these are searched in another way."""
    lossy: bool = False
    """Whether it finds less below a recall of 1, of queries that have weights."""
    has_designs: bool = False
    """Whether calls may ask for it by the name of a block design."""
    available: Callable[[Carried, str, int], Sequence[BlockDesign]] = no_designs
    """Designs of the index that (what it has, method as asked for, h) may use. Raises InvalidOption
    where it is asked for by name, and the index has not what it takes."""
    survey: Survey | None = None
    """What a table holds for h."""
    held_bytes: Callable[[Sequence[Table], BlockDesign | None], int] = scanned_bytes
    """Least memory of all tables and directories it looks into, with a design or at all."""
    passes: (
        Callable[[Table, TablePlan, Conditions, Stream], Iterable[tuple[TablePlan, int]]] | None
    ) = None
    """Plans that read the table in chunks, and the bytes they need in addition to those of a
    chunk's matches; the plan given is that of a call without a limit."""
    top: TopMethod | None = None
    passage: Callable[[Table, TablePlan, int, _native.Passages], bool] | None = None
    """Adds the exact way of a plan through a table, for h, to those that one query by itself takes
    in a call of a kernel; returns False where the plan has none."""


def _flips(table: Table, asked: Conditions) -> Iterable[TablePlan]:
    """Ways of PSM: in the sorted table alone, or in all tables of a design."""
    return chain(table_plans.probed(table, asked), permuted_plans.flipped(table, asked))


METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method(
            psm.NAME, _flips, psm.search, psm.swept, in_design=psm_tables.search, lossy=True,
            available=permuted_plans.flipped_available, survey=crowding.survey,
            held_bytes=table_plans.probed_bytes, passes=table_plans.probed_passes,
            passage=psm.passage,
        ),
        Method(
            bphs.NAME, permuted_plans.permuted, bphs.search, query_tables.whole,
            has_designs=True, available=permuted_plans.designs_available, survey=crowding.survey,
            held_bytes=permuted_plans.permuted_bytes, passes=permuted_plans.query_tables_passes,
            passage=bphs.passage,
        ),
        Method(
            issl.NAME, table_plans.by_lists, issl.within,
            available=table_plans.lists_available, survey=issl.listed_within,
            held_bytes=table_plans.listed_bytes,
            top=TopMethod(
                False, table_plans.top_by_lists, issl.top,
                available=table_plans.check_lists, survey=issl.listed,
            ),
        ),
        Method(
            scan.NAME, table_plans.scans, scan.search, scan.streamed,
            passes=table_plans.scan_passes, passage=scan.passage,
            top=TopMethod(True, table_plans.top_scans, scan.top),
        ),
    )
}
"""By the names that calls may ask for."""

ANY_TABLE = METHODS[scan.NAME]
"""The method that answers every question of every table, exactly, in any memory."""


def of(method: str) -> Method:
    """The method of a plan, which may name a design; or of a call, unless that is "auto".

    Raises LookupError for a plan whose name no row has: its author gave the plan another one.
    """
    name = method.partition(":")[0]
    if name not in METHODS:
        raise LookupError(
            f"a plan names the method {name!r}, and no row of planning.registry.METHODS has that "
            f"name ({', '.join(METHODS)}): give the plan the name of its row"
        )
    return METHODS[name]


def asked(method: str) -> tuple[Method, ...]:
    """What a call may be answered by."""
    return tuple(METHODS.values()) if method == "auto" else (of(method),)


def names() -> tuple[str, ...]:
    """What calls may ask for, in addition to the names of designs."""
    return ("auto", *METHODS)


def top_names() -> tuple[str, ...]:
    """What searches for the nearest documents may ask for."""
    return ("auto", *(name for name, row in METHODS.items() if row.top is not None))


def top_of(method: str) -> TopMethod:
    """How one of these finds them."""
    top = METHODS[method].top
    assert top is not None
    return top


def names_design(method: object) -> bool:
    """Whether a method is asked for by the name of a block design, of the right form or not."""
    if not isinstance(method, str) or ":" not in method:
        return False
    row = METHODS.get(method.partition(":")[0])
    return row is not None and row.has_designs
