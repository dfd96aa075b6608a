"""An index that a command makes, and removes again where nothing was committed to it.

A replacement is built next to the old index, which stays until the new one is complete; see
`simindex.writing.replacement`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import simindex
from simindex.cli.app import uninterrupted
from simindex.cli.lock_wait import LockWait
from simindex.cli.opening import open_index
from simindex.errors import IndexNotFound, SimindexError
from simindex.values import dataclass
from simindex.writing.creation import discard, replaceable
from simindex.writing.ownership import require_nothing_else
from simindex.writing.replacement import folder_beside, led_to, remove_beside, take_the_place

FIRST = LockWait()


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
        """Makes it; `overwrite` also where an index was that has no FORMAT file."""
        was_there = path.exists()
        index = open_index(path, "n", options=options, overwrite=overwrite)
        return cls(path, index, was_there)

    def removed(self) -> bool:
        """Removes it, once it is closed, unless something was committed to it; whether it did."""
        with suppress(OSError, SimindexError):
            return discard(self.path, made=not self.was_there)
        return False


@contextmanager
def replacing(path: Path, wait: LockWait = FIRST) -> Iterator[Path]:
    """Where to build an index that takes the place of the one at `path` on a clean exit.

    The old index is held as by a writer meanwhile, so nobody adds to what will be gone; a damaged
    one cannot be held and is replaced all the same. An exception leaves it as it was. Where there
    is no index, the place is `path` itself.

    Raises IndexLocked when another process writes the old index, FormatTooNew when a newer version
    made it, IndexExists when there is anything in its directory that is of no index.
    """
    with ExitStack() as held:
        try:
            with replaceable(path):
                held.callback(wait.open(path).close)
        except IndexNotFound:
            yield path
            return
        path = led_to(path)
        require_nothing_else(path)
        given_up = ExitStack()
        with uninterrupted():
            beside, folder = folder_beside(path)
            held.enter_context(folder)
            held.enter_context(given_up).callback(remove_beside, beside, path)
        yield beside / "new"
        with uninterrupted():
            require_nothing_else(path)  # that came there meanwhile
            given_up.pop_all()  # an error may leave the only name of an index there
            take_the_place(path, beside)
            remove_beside(beside, path)
