"""Where cost may jump as work grows: all cliffs, or those that --cliff names."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from benchmarks import bounded, crowded, deleting, settled, together, wide
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch

Cliff = Callable[[Namespace, Path, Stopwatch], list[Measurement]]

CLIFFS: dict[str, Cliff] = {
    "limited": bounded.limited,
    "shell": bounded.shell,
    "deletion": deleting.one_deletion,
    "replaced": deleting.replaced,
    "followed": deleting.followed,
    "shared-bits": crowded.shared_bits,
    "templates": crowded.templates,
    "wide-radius": wide.wide_radius,
    "threads": together.threads,
    "segments": settled.settled,
}


def limits(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """What they cost."""
    return [
        found
        for name, cliff in CLIFFS.items() if not options.cliff or name in options.cliff
        for found in cliff(options, directory, watch)
    ]
