"""What plans depend on in addition to the table: what the index has, and what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simindex.bits.design import BlockDesign
from simindex.planning.machine import USUAL, Machine
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.planning.calibration import Calibration


@dataclass(frozen=True, slots=True)
class Carried:
    """What an index has in addition to its rows. It decides whether a method is refused."""

    designs: Sequence[BlockDesign] = ()
    sliced: bool = False
    """Whether segments to come get slice lists."""
    segments: int = 0
    unlisted: tuple[str, ...] = ()
    """Names of the segments that have none."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the plans of a table depend on in addition to its size."""

    h: int
    queries: int
    """Of a call, rounded down to a power of two."""
    method: str = "auto"
    """As asked for."""
    first: bool = False
    """Whether one match of a query is enough: permuted tables are then looked into one by one."""
    flips: Mapping[int, int] | None = None
    """Flip sets that reach the recall, by header width; None where only exact plans do."""
    recall: float = 1.0
    """What flips must reach."""
    each: Calibration | None = None
    """Says how many flip sets reach the recall in each table of a design; None where that is not
    known."""
    designs: Sequence[BlockDesign] = ()
    """Block designs that may be used."""
    machine: Machine = USUAL
    found: Any = None
    """What the method's `survey` found in the table; see `query.surveys`."""

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
