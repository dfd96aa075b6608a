"""A measurement, and the Markdown table of some."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one engine did on one workload, repeated."""

    workload: str
    engine: str
    rows: int
    rates: tuple[float, ...]
    """One for each repetition, in `unit`."""
    unit: str
    """Such as `queries/s`; a unit of time means that less is better."""
    bytes_per_row: float | None = None
    recall: float | None = None
    notes: str = ""

    @property
    def median(self) -> float:
        """The middle repetition."""
        return statistics.median(self.rates)

    @property
    def less_is_better(self) -> bool:
        """Whether `rates` are times."""
        return self.unit in ("s", "ms", "µs", "ns")

    def times_better_than(self, peer: Measurement) -> float:
        """How many times better than a peer's of the same unit this one is."""
        ours, theirs = self.median, peer.median
        return theirs / ours if self.less_is_better else ours / theirs

    def to_dict(self) -> dict[str, Any]:
        """The measurement as plain values."""
        return {**asdict(self), "rates": list(self.rates), "median": self.median}


HEADINGS = (
    "workload", "engine", "rows", "median", "min - max", "bytes a row", "recall", "times peer",
    "notes",
)


def markdown(measurements: Sequence[Measurement]) -> str:
    """A table, a line for each; ratios are to the first peer of the same workload and unit."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---|---|---:|---:|---:|---:|---:|---:|---|"]
    for one in measurements:
        peers = [
            other
            for other in measurements
            if is_peer(other) and (other.workload, other.unit) == (one.workload, one.unit)
        ]
        ratio = ""
        if peers and not is_peer(one):
            ratio = f"{one.times_better_than(peers[0]):.3g}x"
        cells = (
            one.workload,
            one.engine,
            count(one.rows),
            f"{quantity(one.median)} {one.unit}",
            f"{quantity(min(one.rates))} - {quantity(max(one.rates))}",
            "" if one.bytes_per_row is None else f"{one.bytes_per_row:.2f}",
            "" if one.recall is None else f"{one.recall:.4f}",
            ratio,
            one.notes,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def is_peer(one: Measurement) -> bool:
    """Whether the measurement is of somebody else's engine."""
    return not one.engine.startswith("simindex")


def count(number: int) -> str:
    """10 M, 450 k or 1,234."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size and number % (size // 10) == 0:
            return f"{number / size:g} {letter}"
    return f"{number:,}"


def quantity(value: float) -> str:
    """Three digits, with a k or an M where that is shorter."""
    for size, letter in ((1e6, " M"), (1e3, " k"), (1.0, "")):
        if value >= size:
            return f"{value / size:#.3g}".rstrip(".") + letter
    return f"{value:.3g}"
