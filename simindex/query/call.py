"""One call on one snapshot: the plan of all its queries, and what is searched for at a time.

    room       how many matches a search may hold; with a limit its plan says (`room_bytes`)
    a limit    read past, each table once (`limited.plan_within`)
    first      with a limit: looked up as without one where the tables take half of it at most
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from simindex._kernels._native import Room
from simindex.errors import InvalidOption
from simindex.methods.base import Asked, QueryPlan
from simindex.planning.memory_limit import HEADROOM_BYTES, MATCH_SHARE
from simindex.query.arrangement import match_bytes
from simindex.query.parts import FIRST_QUERIES, MOST_QUERIES, PART_MATCHES
from simindex.query.search import THREADED_QUERIES
from simindex.query.sketch_filter import Sketched
from simindex.query.windows import windows
from simindex.resources.memory import answer_bytes
from simindex.resources.threads import thread_count

if TYPE_CHECKING:
    from simindex.arrays import F32, U8, U64
    from simindex.options import IndexOptions
    from simindex.planning.question import Question
    from simindex.query.plans import Plans
    from simindex.records.matches import Matches
    from simindex.storage.snapshot import Snapshot

FIRST_MATCHES, FOUND_EACH = 1 << 21, 4
"""For which a search for the first matches has room: in all, and of each query, of some of which it
finds several."""

HELD_SHARE = 2
"""Tables may take one part in so many of a limit where they are looked up at random."""

PROBE_BYTES = 32
"""Of a probe that is partitioned with others, and of what is beside it."""


class Part(NamedTuple):
    """Some queries of a call, and how they are searched for."""

    rows: U64
    weights: F32 | None
    plan: QueryPlan
    threads: int
    room: Room | None
    """For matches; None where there is enough for all."""
    sketched: Sketched | None


class Call:
    """Checked queries, asked on one snapshot by one plan.

    With `in_parts` a search has room for a part only; else for an answer, beside `taken` bytes of
    what the caller holds.
    """

    def __init__(
        self, plans: Plans, snapshot: Snapshot, rows: U64, weights: F32 | None, question: Question,
        options: IndexOptions, *, in_parts: bool = False, taken: int = 0,
        sketches: U8 | None = None,
    ) -> None:
        self.snapshot: Snapshot = snapshot
        self.rows: U64 = rows
        self.question: Question = question
        self._plans, self._weights, self._options = plans, weights, options
        similar = question.similar
        self._sketched: Sketched | None = None
        if similar is not None and similar.sketch_bits:
            assert sketches is not None
            self._sketched = Sketched(sketches, similar)
        self._plan: QueryPlan | None = None
        self._match_bytes = match_bytes(rows.shape[1])
        self._taken = taken
        if question.first:
            self.room_matches: int = max(FIRST_MATCHES, FOUND_EACH * len(rows))
        elif in_parts:
            self.room_matches = PART_MATCHES
        else:
            self.room_matches = max(0, answer_bytes() - taken) // self._match_bytes
        """For which a search has room; within a limit, for which the last one had."""

    def forget(self) -> None:
        """Plans again: a structure that the plan used is damaged."""
        self._plan = None

    def first_size(self) -> int:
        """Queries of the first part of a stream: few, unless the queries share a pass."""
        most = self.most_queries()
        if self.question.memory_limit is not None or self._shared():
            return most
        return min(FIRST_QUERIES, most)

    def most_queries(self) -> int:
        """Queries that a part may have."""
        queries, limit = max(1, len(self.rows)), self.question.memory_limit
        plan = None if limit is None else self._looked_up()
        if limit is not None and plan is not None:
            held = limit // (4 * PROBE_BYTES * (plan.flips + 4))
            return max(1, min(queries, held, plan.room_bytes // self._match_bytes))
        if limit is not None or self.question.limit is not None or self._shared():
            return queries
        return min(queries, MOST_QUERIES)

    def part(self, start: int, stop: int) -> Part:
        """The queries from one number up to another.

        Raises InvalidOption where the limit is too little.
        """
        rows, weights = self.rows[start:stop], self._weights
        weights = None if weights is None else weights[start:stop]
        threads = thread_count(self.question.threads, len(rows), worth=THREADED_QUERIES)
        plan = self._planned(rows, weights, threads)
        return Part(
            rows, weights, plan, threads if plan.stream is None else plan.stream.threads,
            self._room(len(rows), plan),
            None if self._sketched is None else self._sketched.slice(start, stop),
        )

    def alone(self, number: int) -> Generator[Matches, None, None]:
        """The matches of one query for which there is no room at once."""
        rows, weights = self.rows[number : number + 1], self._weights
        weights = None if weights is None else weights[number : number + 1]
        plan = self._planned(rows, weights, 1)
        room = self._room(1, plan)
        most = self.room_matches if room is None else room.left
        asked = Asked(
            rows, self.question.h, False, weights, plan.volatility, stream=plan.stream,
            tombstones=self.snapshot.tombstones,
        )
        return windows(
            self.snapshot.tables, plan, asked, most=max(1, most // 4),
            limit=1 if self.question.first else self.question.limit, options=self._options,
            similar=self.question.similar, sketched=None if self._sketched is None else (
                self._sketched.slice(number, number + 1)
            ),
        )

    def _planned(self, rows: U64, weights: F32 | None, threads: int) -> QueryPlan:
        if self.question.memory_limit is None:
            return self._usual()
        plan = self._looked_up()
        if plan is not None:
            return plan
        return self._plans.plan_within(
            self.snapshot, self.question, len(rows), weights, threads=threads,
            among=len(self.rows), match_bytes=self._match_bytes, taken=self._taken,
        )

    def _usual(self) -> QueryPlan:
        """That of all queries together."""
        if self._plan is None:
            self._plan = self._plans.plan(
                self.snapshot, self.question, len(self.rows), self._weights
            )
        return self._plan

    def _looked_up(self) -> QueryPlan | None:
        """Without a pass, for first matches within a limit; None where the tables are too large."""
        question, limit = self.question, self.question.memory_limit
        if not question.first or limit is None:
            return None
        if self._plan is None:
            left = max(0, limit - self._taken)
            within = replace(question, memory=left // HELD_SHARE, memory_limit=None)
            try:
                plan = self._plans.plan(self.snapshot, within, len(self.rows), self._weights)
            except InvalidOption:
                return None
            queries = len(self.rows)
            if any(table.design and table.takes_a_pass(queries) for table in plan.tables):
                return None  # tables over the queries are only counted where a pass is planned
            self._plan = replace(plan, room_bytes=left // MATCH_SHARE)
        return self._plan

    def _shared(self) -> bool:
        """Whether all queries share a pass over the rows, without a limit."""
        queries = len(self.rows)
        return any(table.takes_a_pass(queries) for table in self._usual().tables)

    def _room(self, queries: int, plan: QueryPlan) -> Room | None:
        """None where no answer can be too large."""
        if self.question.memory_limit is not None:
            matches = plan.room_bytes // self._match_bytes
            if self.question.first and plan.stream is not None:
                matches -= queries  # of the answer, which are given no room
            self.room_matches = max(HEADROOM_BYTES // self._match_bytes, matches)
        matches = self.room_matches
        return None if queries * self.snapshot.stored_rows <= matches else Room(matches)
