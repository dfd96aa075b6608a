"""The head: all that is part of the index, as of one commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.storage.catalog.values import pack, unpack
from simindex.storage.tables.record import NAME

MAX_COUNT = 1 << 63
"""More than there are commits, rows or bytes; what is added to it still fits 64 bits."""

LAST_GENERATION = 1 << 48
"""No index gets as far; what says it has is damaged, or made to leave no numbers for more."""


@dataclass(frozen=True, slots=True)
class Run:
    """A pending run or a set of tombstones, as the head names it."""

    number: int
    rows: int
    horizon: int
    checksum: int

    @property
    def key(self) -> bytes:
        """Its key in the database."""
        return self.number.to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class Head:
    """All that is live, as of one commit."""

    generation: int
    appended: int
    """Rows ever appended: the next automatic id."""
    next_run: int
    """Number the next pending or tombstone run gets."""
    segments: dict[str, int] = field(default_factory=dict)
    pending: tuple[Run, ...] = ()
    tombstones: tuple[Run, ...] = ()
    values: dict[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The head's payload."""
        return pack(
            [
                1,
                [self.generation, self.appended, self.next_run],
                list(self.segments.items()),
                [[r.number, r.rows, r.horizon, r.checksum] for r in self.pending],
                [[r.number, r.rows, r.horizon, r.checksum] for r in self.tombstones],
                list(self.values.items()),
            ]
        )

    @classmethod
    def decode(cls, payload: bytes) -> Head:
        """The head of a payload whose checksum held."""
        value = unpack("head", payload)
        try:
            version, (generation, appended, next_run), segments, pending, tombstones, values = value
            if version != 1 or not all(NAME.fullmatch(name) for name, _ in segments):
                raise ValueError("not a head of version 1")
            runs = [number for number, *_ in (*pending, *tombstones)]
            names = [[name for name, _ in segments], [name for name, _ in values], runs]
            if any(len(set(of_a_kind)) < len(of_a_kind) for of_a_kind in names):
                raise ValueError("a name twice")
            if count(generation) >= LAST_GENERATION:
                raise ValueError("a commit that is never reached")
            return cls(
                count(generation), count(appended), count(next_run),
                {str(name): count(crc) for name, crc in segments},
                tuple(Run(*map(count, run)) for run in pending),
                tuple(Run(*map(count, run)) for run in tombstones),
                {str(name): count(crc) for name, crc in values},
            )
        except (TypeError, ValueError) as error:
            if raised_by_a_handler(error):
                raise
            raise CorruptFile("the catalog's head is not one this version wrote") from error

    @property
    def pending_rows(self) -> int:
        """Rows in pending runs."""
        return sum(run.rows for run in self.pending)


def count(value: Any) -> int:
    """A number of commits, rows or bytes; ValueError if the value is none."""
    if not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise ValueError("no count")
    return value
