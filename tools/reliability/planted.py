"""Faults that are planted on purpose, so that a trial shows that it finds such ones.

Each changes what an interrupted `Index.compact` leaves behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import simindex
from simindex.errors import InvalidOption

KEPT: list[Any] = []


def _lose_rows(index: Any) -> None:
    """Removes committed rows, and check() stays clean; as once the removal of merged segments did
    whose merge had been cancelled. The handle forgets that it was interrupted."""
    index._handle.note = index._handle.writer.committer.failed = None
    keys = index.options.keyed
    names = [name for part in index.rows() for name in (part.keys if keys else part.ids.tolist())]
    index.delete(**{"keys" if keys else "ids": names[1:]})
    index.commit()


def _stick(index: Any) -> None:
    """Leaves a handle that can neither be used nor closed."""
    def refuse(*arguments: Any, **named: Any) -> None:
        raise InvalidOption("progress: nothing may change meanwhile", option="progress")

    index.append = index.close = refuse


def _leak(index: Any) -> None:
    """Keeps a descriptor."""
    KEPT.append(os.open(index.path / "FORMAT", os.O_RDONLY))


def _litter(index: Any) -> None:
    """Writes a file among those of the index."""
    (index.path / "merged.tmp").write_bytes(b"half")


FAULTS: dict[str, tuple[str, Callable[[Any], None]]] = {
    # name: (what the trial is to count, what is done)
    "loses rows": ("lost", _lose_rows),
    "sticks": ("wrong", _stick),
    "keeps a descriptor": ("leaked", _leak),
    "leaves a file": ("leaked", _litter),
}


def plant(name: str) -> None:
    """For the rest of this process."""
    _, damage = FAULTS[name]
    compact = simindex.Index.compact

    def faulty(index: Any, **named: Any) -> None:
        try:
            compact(index, **named)
        except BaseException:
            damage(index)
            raise

    changed: Any = simindex.Index
    changed.compact = faulty
