"""Questions in batches as large as the memory allows: each batch reads the index once.

    --memory-limit    the process as it is | questions of a batch | what the call may hold
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from simindex.cli.chunks import joined
from simindex.cli.numbers import as_size
from simindex.errors import InvalidOption
from simindex.records.batch import Batch
from simindex.records.matches import Matches, TopMatches

MOST_QUERIES = 1 << 22
LEAST_BYTES = 16 << 20

NAME_BYTES = 160
"""Of a question's name and its share of lists, about."""

MOST_NEAREST = 1 << 21
"""Places of the nearest documents that are filled at a time."""

THREAD_BYTES = 16 << 20
"""What a thread reserves and hardly uses, on top of a limit: its stack, and the heap's own."""

CALL_SHARE = 0.6
"""Of what is free, the part that a call may hold; the rest is for questions and lines."""

Name = TypeVar("Name")
"""What a query is called."""

Answer = tuple[int, Matches | TopMatches]
"""Of a part of a batch: the number of its query 0 among those of the batch, and what it has."""

Ask = Callable[..., Iterator[Answer]]
"""Asks a batch, with `memory_limit` where there is one."""

Questions = tuple[list[Name], Any]
"""Names of some queries, and their fingerprints or batch."""


class Budget:
    """What a limit on the whole process leaves for batches."""

    def __init__(self, limit_bytes: int, bits: int) -> None:
        self._limit, self._bits = limit_bytes, bits
        self._base = process_bytes()
        self._free = limit_bytes - self._base
        if self._free < LEAST_BYTES:
            raise self._too_little(LEAST_BYTES)
        self.call_bytes: int = int(CALL_SHARE * self._free)
        """For `memory_limit` of a call."""
        question = bits // 8 + 4 * bits + NAME_BYTES
        share = int((1 - CALL_SHARE) * self._free / 2)
        self.queries: int = min(MOST_QUERIES, share // question)
        """How many questions are asked at a time, at most."""

    def ask(
        self, batch: Any, call: Callable[..., Iterator[Answer]]
    ) -> Iterator[Answer]:
        """The answer to a batch in parts as large as the limit allows.

        `call` is asked for them with `memory_limit`.
        """
        try:
            yield from call(batch, memory_limit=self.call_bytes)
        except InvalidOption as error:
            if error.data.get("option") != "memory_limit":
                raise
            raise self._too_little(error.data["expected"]) from None
        except MemoryError:
            raise InvalidOption(
                f"--memory-limit {as_size(self._limit)} is too little for the matches of one query",
                remedy="give more, or limit the matches with --first or --limit N",
                option="memory_limit",
                found=self._limit,
            ) from None

    def enforced(self) -> AbstractContextManager[None]:
        """Has what would take more memory fail in the block, see `allocations_within`."""
        return allocations_within(self._free)

    def _too_little(self, call_bytes: int) -> InvalidOption:
        least = self._base + int(call_bytes / CALL_SHARE) + (1 << 20)
        return InvalidOption(
            f"--memory-limit {as_size(self._limit)} is too little: the process takes "
            f"{as_size(self._base)} before it looks anything up",
            remedy=f"give at least {as_size(least)}", option="memory_limit",
            found=self._limit, expected=least,
        )


def near_in_parts(
    call: Callable[..., Iterator[Matches]], batch: Any, **limit: int
) -> Iterator[Answer]:
    """What `Index.query_stream`, the call, answers."""
    return ((0, matches) for matches in call(batch, **limit))


def nearest_in_parts(
    call: Callable[..., TopMatches], k: int, batch: Any
) -> Iterator[Answer]:
    """What `Index.top` answers about parts of a batch, at most `MOST_NEAREST` places in each."""
    size = max(1, MOST_NEAREST // max(1, k))
    for start in range(0, len(batch), size):
        yield start, call(part_of(batch, start, start + size))


@contextmanager
def allocations_within(free_bytes: int | None) -> Iterator[None]:
    """Has allocations raise MemoryError where the process would take so much more than it does.

    Only Linux does: the limit is on what programs write to, so that mapped files do not count. By
    default the limit is what the system has to give, without taking it from others.
    """
    free_bytes = _available_bytes() if free_bytes is None else free_bytes
    try:
        held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except OSError:
        held = None
    if held is None or free_bytes is None:
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + free_bytes + THREAD_BYTES * (os.cpu_count() or 1)
    limits = [limit for limit in (wanted, before, most) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def _available_bytes() -> int | None:
    """Memory that the system can give without writing any of it to a disk, if it says so."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0][1]) if found else None


def process_bytes() -> int:
    """The most memory that the process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def answers_of(
    questions: Iterable[Questions[Name]], ask: Ask, bits: int, limit: int | None
) -> Generator[tuple[list[Name], Any, Iterator[Answer]]]:
    """The names of some questions, these, and what is found for them.

    `limit` is how much memory the process may take.
    """
    if limit is None:
        with allocations_within(None):
            for names, batch in questions:
                yield names, batch, ask(batch)
        return
    budget = Budget(limit, bits)
    with budget.enforced():
        for names, batch in gathered(questions, budget.queries):
            yield names, batch, budget.ask(batch, ask)


def gathered(
    questions: Iterable[Questions[Name]], most: int
) -> Iterator[Questions[Name]]:
    """The same questions in groups of about `most`, those with and without weights apart."""
    names: list[Name] = []
    parts: list[Batch] = []
    for some, asked in questions:
        batch = asked if isinstance(asked, Batch) else Batch(asked)
        if parts and (
            len(names) + len(some) > most
            or (parts[0].weights is None, parts[0].sketches is None)
            != (batch.weights is None, batch.sketches is None)
        ):
            yield names, joined(parts)
            names, parts = [], []
        names += some
        parts.append(batch)
    if parts:
        yield names, joined(parts)


def part_of(batch: Any, start: int, stop: int) -> Any:
    """Queries start to stop of a batch."""
    if start == 0 and stop >= len(batch):
        return batch
    if not isinstance(batch, Batch):
        return batch[start:stop]
    return Batch(
        batch.rows[start:stop],
        weights=None if batch.weights is None else batch.weights[start:stop],
        recipe=batch.recipe,
        sketch=None if batch.sketches is None else batch.sketches[start:stop],
    )
