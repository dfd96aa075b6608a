"""Questions in batches as large as the memory allows: each batch reads the index once.

    --memory-limit    the process as it is | questions of a batch | what the call may hold
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from simindex.errors import InvalidOption
from simindex.records import Batch, Matches, TopMatches

MOST_QUERIES = 1 << 22
LEAST_BYTES = 16 << 20

NAME_BYTES = 160
"""Of a question's name and its share of lists, about."""

CALL_SHARE = 0.6
"""Of what is free, the part that a call may hold; the rest is for questions and matches."""

Questions = tuple[list[str], Any]
"""Names of some queries, and their fingerprints or batch."""


class Budget:
    """What a limit on the whole process leaves for batches."""

    def __init__(self, limit_bytes: int, bits: int) -> None:
        self._limit, self._bits = limit_bytes, bits
        self._base = process_bytes()
        self._free = limit_bytes - self._base
        if self._free < LEAST_BYTES:
            raise self._too_little(LEAST_BYTES)
        self.call_bytes = int(CALL_SHARE * self._free)
        """For `memory_limit` of a call."""
        question = bits // 8 + 4 * bits + NAME_BYTES
        self.queries = min(MOST_QUERIES, int((1 - CALL_SHARE) * self._free / 2) // question)
        """How many questions are asked at a time, at most."""

    def ask(
        self, batch: Any, call: Callable[..., Matches] | Callable[..., TopMatches]
    ) -> Iterator[tuple[int, Matches | TopMatches]]:
        """(number of its first query, matches) of parts of a batch, as large as the limit allows.

        `call` is asked for matches of a part with `memory_limit`.
        """
        start, size = 0, len(batch)
        while start < len(batch):
            part = part_of(batch, start, start + size)
            try:
                yield start, call(part, memory_limit=self.call_bytes)
            except InvalidOption as error:
                if error.data.get("option") != "memory_limit":
                    raise
                if size == 1:
                    raise self._too_little(error.data["expected"]) from None
                size = -(-size // 2)
                continue
            start += size

    def _too_little(self, call_bytes: int) -> InvalidOption:
        least = self._base + int(call_bytes / CALL_SHARE) + (1 << 20)
        return InvalidOption(
            f"--memory-limit {self._limit} is too little, the process takes {self._base} before it "
            f"has asked anything: the least that works is {least}",
            option="memory_limit", found=self._limit, expected=least,
        )


def process_bytes() -> int:
    """The most memory that the process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def gathered(questions: Iterable[Questions], most: int) -> Iterator[Questions]:
    """The same questions in groups of about `most`, those with and without weights apart."""
    names: list[str] = []
    parts: list[Batch] = []
    for some, asked in questions:
        batch = asked if isinstance(asked, Batch) else Batch(asked)
        if parts and (
            len(names) + len(some) > most
            or (parts[0].weights is None) != (batch.weights is None)
        ):
            yield names, _joined(parts)
            names, parts = [], []
        names += some
        parts.append(batch)
    if parts:
        yield names, _joined(parts)


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
    )


def _joined(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights for part in parts if part.weights is not None]
    return Batch(
        np.concatenate([part.rows for part in parts]),
        weights=np.concatenate(weights) if weights else None,
        recipe=parts[0].recipe,
    )
