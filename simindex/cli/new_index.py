"""An index that a command makes, and removes again where nothing was committed to it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import simindex
from simindex.errors import SimindexError
from simindex.writing.creation import discard


@dataclass(frozen=True, slots=True)
class NewIndex:
    """An index that was just made, open for writing."""

    path: Path
    index: simindex.Index
    was_there: bool
    """Whether there was a directory, without an index, in its place."""

    @classmethod
    def at(
        cls, path: Path, options: simindex.IndexOptions, *, overwrite: bool = False
    ) -> NewIndex:
        """Makes it; `overwrite` also where an index was that has lost its FORMAT."""
        was_there = path.exists()
        index = simindex.open(path, "n", options=options, overwrite=overwrite)
        return cls(path, index, was_there)

    def removed(self) -> bool:
        """Removes it, once it is closed, unless something was committed to it; whether it did."""
        with suppress(OSError, SimindexError):
            return discard(self.path, made=not self.was_there)
        return False
