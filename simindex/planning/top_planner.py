"""How each table is searched for the nearest documents: compared whole, or by its slice lists.

    asked        k, max_error, rerank, method, recall            checked once
    table        scan, or issl if it has lists                   the cheaper, by the model
    promise      exact, or what is looked at and what was measured of it

A search by slice lists is approximate, and its recall is not known beforehand: a plan with a fixed
max_error says so, and one with a recall to reach is measured on rows of the index
(`nearest_recall`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import index as whole
from threading import Lock
from typing import Any

from simindex.errors import CorruptFile, InvalidOption
from simindex.methods import issl
from simindex.planning.costs import issl_ns, listed, top_scanning_ns
from simindex.planning.machine import Machine
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

METHODS = ("auto", "scan", "issl")

USUAL_RECALL = 0.95
"""The recall to reach where `max_error="auto"` comes without one."""

REMEMBERED = 256
"""Plans that are kept for one commit, at most."""


@dataclass(frozen=True, slots=True)
class TopTablePlan:
    """How one table is searched."""

    method: str
    """`"scan"` or `"issl"`."""
    exact: bool
    nanoseconds: float
    """Expected time of one query, by the model."""
    rerank: int = 0
    """Rows compared of a query, at most, where slice lists are searched."""
    other: str | None = None
    """The other way that was open, if one was."""
    other_nanoseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What rows of the index found of their own nearest documents; see `nearest_recall`."""

    max_error: int
    rerank: int | None
    """Rows of a segment that are compared; None for the usual ones."""
    recall: float
    """Mean share of the true nearest documents that was found."""
    low: float
    """Of which it is certain by 95%, one-sided."""
    rows: int
    """Rows asked."""


@dataclass(frozen=True, slots=True)
class TopPlan:
    """How every table of a snapshot is searched in one call, and what that promises."""

    tables: tuple[TopTablePlan, ...]
    guarantee: str
    method: str
    exact: bool
    max_error: int | None
    """None where no table is searched by slice lists, as `rerank`."""
    rerank: int | None
    """The most of all tables."""
    recall: float | None


@dataclass(frozen=True, slots=True)
class TopQuestion:
    """Checked options of a call."""

    k: int
    max_error: int | None
    """None to choose it by a recall."""
    rerank: int | None
    """None for the usual ones; see `methods.issl.default_rerank`."""
    method: str
    recall: float | None


def slice_bits(bits: int) -> int:
    """Width of the slices of an index that says nothing else."""
    return 16 if bits >= 128 else 8


def checked_options(
    *, k: object, max_error: object, rerank: object, method: object, recall: object, bits: int,
    width: int,
) -> TopQuestion:
    """The options of a search for the nearest documents, once they are in range.

    Parameters
    ----------
    width : int
        Of the slices, in bits.

    Raises
    ------
    InvalidOption
        Names the option that is not, and what may be given.
    """
    count = _whole(k)
    if count is None or count < 1:
        raise InvalidOption(
            f"k={k!r} is no number of documents: give a whole number from 1 on",
            option="k", found=k, expected="1 or more",
        )
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidOption(
            f"method={method!r} is unknown here: give one of {', '.join(METHODS)}",
            option="method", found=method, expected=METHODS,
        )
    errors = None if isinstance(max_error, str) and max_error == "auto" else _whole(max_error)
    if not (isinstance(max_error, str) and max_error == "auto") and (
        errors is None or not 0 <= errors <= width
    ):
        raise InvalidOption(
            f'max_error={max_error!r}: give a whole number from 0 to {width}, the bits of a slice, '
            'or "auto" with a recall to reach',
            option="max_error", found=max_error, expected=f"0 to {width}",
        )
    rows = None if rerank is None else _whole(rerank)
    if rerank is not None and (rows is None or rows < count):
        raise InvalidOption(
            f"rerank={rerank!r} is no number of rows to compare: give a whole number from k={count}"
            " on, or leave it out",
            option="rerank", found=rerank, expected=f"{count} or more",
        )
    return TopQuestion(
        count, errors, rows, str(method), _checked_recall(recall, errors, str(method))
    )


def _checked_recall(recall: object, max_error: int | None, method: str) -> float | None:
    if recall is None:
        return USUAL_RECALL if max_error is None else None
    share = _share(recall)
    if share is None:
        raise InvalidOption(
            f"recall={recall!r} is not a share: give more than 0 and at most 1",
            option="recall", found=recall,
        )
    if share == 1.0 and method == "issl":
        raise InvalidOption(
            'recall=1 is exact, which slice lists are not: give method="scan" or "auto", or a '
            "recall below 1",
            option="recall", found=recall,
        )
    if share < 1.0 and max_error is not None and method != "scan":
        raise InvalidOption(
            f"recall={recall!r} is reached by choosing max_error, and max_error={max_error} is "
            'given: give max_error="auto", or no recall',
            option="recall", found=recall,
        )
    return share


def _share(value: object) -> float | None:
    """The number above 0 and at most 1, of Python or numpy; None for what is none."""
    number: Any = value
    if isinstance(value, bool | str | complex) or not hasattr(value, "__float__"):
        return None
    try:
        share = float(number)
    except (TypeError, ValueError, OverflowError):
        return None
    return share if 0 < share <= 1 else None


def _whole(value: object) -> int | None:
    """The number, of Python or numpy; None for what is none."""
    number: Any = value
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return None
    try:
        return whole(number)
    except TypeError:
        return None


def check_count(k: int, snapshot: Snapshot) -> None:
    """Refuses more documents than there are rows with InvalidOption."""
    rows = snapshot.live_rows
    if k <= rows:
        return
    raise InvalidOption(
        f"k={k} is more than the index holds, {rows:,} rows"
        + (f": give at most {rows}" if rows else ": append some first"),
        option="k", found=k, expected=rows,
    )


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
        option="method", found="issl", segments=tuple(without),
    )


def plan(
    tables: Sequence[Table],
    question: TopQuestion,
    *,
    max_error: int,
    rerank: int | None,
    queries: int,
    machine: Machine,
    measured: Measured | None = None,
) -> TopPlan:
    """A plan for each table, with a max_error that is known by now."""
    plans = [
        _plan_table(
            table, question, max_error=max_error, rerank=rerank, queries=queries, machine=machine
        )
        for table in tables
    ]
    compared = max((one.rerank for one in plans), default=0)
    methods = "+".join(sorted({one.method for one in plans})) or "none"
    listed = any(one.method == "issl" for one in plans)
    exact = all(one.exact for one in plans)
    guarantee, recall = "exact", 1.0 if exact else None
    if not exact:
        guarantee = _guarantee(question, max_error, compared, measured)
        recall = None if measured is None else measured.recall
    return TopPlan(
        tuple(plans), guarantee, methods, exact, max_error if listed else None,
        compared if listed else None, recall,
    )


def scanned(tables: Sequence[Table], *, queries: int, machine: Machine) -> TopPlan:
    """All rows of all tables are compared."""
    question = TopQuestion(1, 0, None, "scan", None)
    return plan(tables, question, max_error=0, rerank=None, queries=queries, machine=machine)


def _guarantee(
    question: TopQuestion, max_error: int, rerank: int, measured: Measured | None
) -> str:
    looked = f"max_error {max_error}, at most {rerank:,} rows of a segment compared"
    if measured is None:
        return f"recall below 1 and not measured: {looked}"
    return (
        f"recall {measured.recall:.4f} (at least {measured.low:.4f}, by 95%) of the {question.k} "
        f"nearest, measured on {measured.rows:,} rows of the index, {question.recall:g} asked: "
        f"{looked}"
    )


def _plan_table(
    table: Table, question: TopQuestion, *, max_error: int, rerank: int | None, queries: int,
    machine: Machine,
) -> TopTablePlan:
    rows, words = table.fingerprints.shape
    scan_ns = top_scanning_ns(machine, rows, words, queries)
    scan = TopTablePlan("scan", True, scan_ns)
    slices = table.slices
    if question.method == "scan" or slices is None or rows == 0:
        return scan
    if rerank is None:
        rerank = issl.default_rerank(
            rows, question.k, max_error, width=slices.width, slices=slices.slices
        )
    rerank = min(rerank, rows)
    try:
        slices.check()
        lists, scored = listed(table, max_error)
    except CorruptFile as error:
        if question.method == "issl":
            raise
        log.warning("all rows are compared in place of slice lists: %s", error)
        return scan
    cost = issl_ns(machine, rows, words, lists, scored, rerank)
    if question.method == "auto" and scan_ns <= cost:
        return replace(scan, other="issl", other_nanoseconds=cost)
    return TopTablePlan("issl", rerank >= rows, cost, rerank, "scan", scan_ns)


Measure = Callable[[Snapshot, TopQuestion, Machine], Measured | None]
"""Finds the least max_error that reaches a recall, or none; `nearest_recall.measure`."""


class TopPlanner:
    """The plans of one handle, remembered for the commit they are of; safe from many threads."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._known: tuple[Any, Any, dict[tuple[Any, ...], TopPlan]] = (None, None, {})
        self._checked: dict[tuple[Any, ...], TopQuestion] = {}
        self._measured: dict[tuple[Any, ...], Measured | None] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Plans anew, since something that plans went by has changed."""
        self._known = (None, None, {})

    def plan(
        self, snapshot: Snapshot, *, k: Any, max_error: Any, rerank: Any, method: Any, recall: Any,
        queries: int, bits: int, machine: Machine,
    ) -> tuple[TopPlan, TopQuestion]:
        """How a call is answered.

        Raises
        ------
        InvalidOption
            If an option is out of range, or method="issl" has segments without lists.
        """
        width = snapshot.slice_bits
        if width is None:
            width = slice_bits(bits) if snapshot.slices is None else snapshot.slices.width
        question = self._question(k, max_error, rerank, method, recall, bits, width)
        known_for, machine_for, plans = self._known
        if known_for is not snapshot or machine_for is not machine:
            plans = {}
            self._known = (snapshot, machine, plans)
        asked = (question, queries.bit_length())
        found = plans.get(asked)
        if found is not None:
            return found, question
        if queries:
            check_count(question.k, snapshot)
        if question.method == "issl":
            check_lists(snapshot)
        found = self._planned(snapshot, question, 1 << queries.bit_length() >> 1, machine)
        if len(plans) >= REMEMBERED:
            plans.clear()
        plans[asked] = found
        return found, question

    def _question(
        self, k: Any, max_error: Any, rerank: Any, method: Any, recall: Any, bits: int, width: int
    ) -> TopQuestion:
        given = (k, max_error, rerank, method, recall, bits, width)
        check = partial(
            checked_options, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            bits=bits, width=width,
        )
        # Equal values of other types, such as True, are no whole numbers.
        key = (*given, *map(type, given))
        try:
            found = self._checked.get(key)
        except TypeError:  # arrays of one number, which have no hash, or what cannot be right
            return check()
        if found is None:
            found = check()
            if len(self._checked) >= REMEMBERED:
                self._checked.clear()
            self._checked[key] = found
        return found

    def _planned(
        self, snapshot: Snapshot, question: TopQuestion, queries: int, machine: Machine
    ) -> TopPlan:
        tables = snapshot.tables
        if question.recall == 1.0 or question.method == "scan" or not queries:
            return scanned(tables, queries=queries, machine=machine)
        max_error, rerank, measured = question.max_error, question.rerank, None
        if max_error is None:
            measured = self._reached(snapshot, question, machine)
            if measured is None:
                return scanned(tables, queries=queries, machine=machine)
            max_error, rerank = measured.max_error, measured.rerank
        return plan(
            tables, question, max_error=max_error, rerank=rerank, queries=queries,
            machine=machine, measured=measured,
        )

    def _reached(
        self, snapshot: Snapshot, question: TopQuestion, machine: Machine
    ) -> Measured | None:
        """Measured once for the segments at hand: pending rows are compared anyway."""
        listed = tuple(sorted(snapshot.head.segments.items()))
        key = (listed, question, machine)
        with self._lock:
            if key not in self._measured:
                found = self._measure(snapshot, question, machine)
                others = [known for known in self._measured if known[0] != listed]
                for known in others:
                    del self._measured[known]
                self._measured[key] = found
            return self._measured[key]
