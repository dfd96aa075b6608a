"""What a method is to the engine: what it can answer, what that takes, and how it is run.

    asked by name       `name`, or "auto" among all others
    before planning     `available` refuses, `survey` reads what sizes do not tell
    planning            `plans` for a table, the cheapest is taken; `held_bytes` and `passes` for a
                        call whose memory is bounded
    running             `search` some queries on one thread, `whole` in a pass over the table
    nearest documents   `top`, if it can

How it is explained stands in its plans: `TablePlan.widths`, `probes`, `compared`, `nanoseconds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import U64
from simindex.bits.design import BlockDesign
from simindex.methods.base import Found, TablePlan, TopFound, TopTablePlan
from simindex.methods.searches import Asked
from simindex.methods.stream import Stream
from simindex.planning.machine import USUAL, Machine
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the plans of a table depend on beside its size."""

    h: int
    queries: int
    """Of a call, rounded down to a power of two."""
    recall: float = 1.0
    method: str = "auto"
    """As asked for."""
    flips: Callable[[int, int, float], int] | None = None
    """Flip sets that reach a recall by (header width, h, recall); None: only exact plans are."""
    designs: Sequence[BlockDesign] = ()
    """Block designs that may be used."""
    machine: Machine = USUAL
    found: Any = None
    """What the method's `survey` found in the table."""

    @property
    def named(self) -> bool:
        """Whether the method was asked for, and not chosen among others."""
        return self.method != "auto"


@dataclass(frozen=True, slots=True)
class TopConditions:
    """What the plan of a table for the nearest documents depends on."""

    k: int
    max_error: int
    rerank: int | None
    queries: int
    machine: Machine
    found: Any = None
    """What the method's `survey` found in the table."""


@dataclass(frozen=True, slots=True)
class TopMethod:
    """How a method finds the nearest documents."""

    exact: bool
    plan: Callable[[Table, TopConditions], TopTablePlan | None]
    """None where a table has not what that takes."""
    search: Callable[
        [Table, TopTablePlan, U64, int, NDArray[np.uint8] | None, int], TopFound
    ]
    """The k nearest of each query, by (table, plan, queries, k, dead rows, threads)."""
    available: Callable[[Snapshot], None] = lambda snapshot: None
    """Refuses an index without what it takes with InvalidOption."""
    survey: Callable[[Table, int], Any] | None = None
    """What a table holds for a max_error, read before planning; raises CorruptFile."""


def scanned_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of the rows of all tables."""
    return sum(table.fingerprints.nbytes for table in tables)


def no_designs(
    snapshot: Snapshot, method: str, h: int
) -> Sequence[BlockDesign]:
    """Of a method that needs nothing beside the rows."""
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
    lossy: bool = False
    """Whether it finds less below a recall of 1, of queries that have weights."""
    has_designs: bool = False
    """Whether calls may ask for it by the name of a block design."""
    available: Callable[[Snapshot, str, int], Sequence[BlockDesign]] = no_designs
    """Designs of the index that (snapshot, method as asked for, h) may use. Raises InvalidOption
    where it is asked for by name, and the index has not what it takes."""
    survey: Callable[[Table, int], Any] | None = None
    """What a table holds for h, read before planning; raises CorruptFile."""
    held_bytes: Callable[[Sequence[Table], BlockDesign | None], int] = scanned_bytes
    """Least memory of all tables and directories it looks into, with a design or at all."""
    passes: (
        Callable[[Table, TablePlan, Conditions, Stream], Iterable[tuple[TablePlan, int]]] | None
    ) = None
    """Plans that read the table in chunks, and the bytes they need beside those of a chunk's
    matches; the plan given is that of a call without a limit."""
    top: TopMethod | None = None
