"""Every run of a script takes the same steps: background work runs within the script instead."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from simindex.index import settling
from simindex.storage.files import removal
from simindex.writing import merges, releasing, writer


class AtOnce:
    """A thread that runs to its end within `start`."""

    ident = None

    def __init__(self, *, target: Callable[[], None], **named: object) -> None:
        self._target: Callable[[], None] | None = target

    def is_alive(self) -> bool:
        """It has ended before anybody asks."""
        return False

    def join(self) -> None:
        """Nothing is left to wait for."""

    def start(self) -> None:
        """Runs it."""
        target, self._target = self._target, None  # as a thread does, so that nothing is kept
        assert target is not None
        target()


def settle() -> None:
    """For the rest of this process; trials call it in a child, or in an interpreter of theirs."""
    changed: Any
    for changed in (merges, releasing):
        changed.Thread = AtOnce
    settling.IDLE_S = inf  # however slow the machine is
    writer.STAGED_PAGES = 1  # directories are stored ahead of the segment
    removal.FREE_PAUSE_S = 0.0
