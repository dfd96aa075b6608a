"""An index that a command makes, and removes again where nothing was committed to it.

A replacement is built next to the old index, which stays until the new one is complete:

    pages.sim                  the old index; the new one once they have exchanged their names
    .pages.sim.XXXXXXXX/       held (flock) by the run that made it, while it lives
        new                    the new index while it is built, the old one after the exchange
        old                    the old one, on file systems that exchange no names

1. Where names can be exchanged, there is an index at the path at every moment, old or new.
2. Where not, a kill between two renames leaves both indexes in the folder and none at the path:
   the next `build` finishes it, see `clear_up`.
3. What is replaced is removed once the new one's name is durable; what repairs had kept in it
   goes over to the new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import simindex
from simindex.cli.app import uninterrupted
from simindex.errors import IndexNotFound, SimindexError
from simindex.storage.files import durable, locks, removal
from simindex.storage.files.names import KEPT_PREFIX, is_directory, is_numbered, next_numbered
from simindex.writing.creation import discard, replaceable
from simindex.writing.ownership import require_nothing_else, strangers

if TYPE_CHECKING:
    from simindex.storage.files.descriptor import Descriptor


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
        index = simindex.open(path, "n", options=options, overwrite=overwrite)
        return cls(path, index, was_there)

    def removed(self) -> bool:
        """Removes it, once it is closed, unless something was committed to it; whether it did."""
        with suppress(OSError, SimindexError):
            return discard(self.path, made=not self.was_there)
        return False


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
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
                held.callback(simindex.open(path, "w").close)
        except IndexNotFound:
            yield path
            return
        path = _led_to(path)
        require_nothing_else(path)
        given_up = ExitStack()
        with uninterrupted():
            beside, folder = _folder_beside(path)
            held.enter_context(folder)
            held.enter_context(given_up).callback(_remove, beside, path)
        yield beside / "new"
        with uninterrupted():
            require_nothing_else(path)  # that came there meanwhile
            given_up.pop_all()  # an error may leave the only name of an index there
            _take_the_place(path, beside)
            _remove(beside, path)


def clear_up(path: Path) -> None:
    """Removes what replacements of `path` that were killed have left next to it.

    One that was killed between its two renames is finished. Left alone are the folders of runs
    that live, whatever does not look as if a replacement had made it, a folder with both indexes if
    there is a third at `path`, and one with the old index if there is none.
    """
    path = _led_to(path)
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")
    with suppress(OSError):
        for beside in [inner for inner in path.parent.iterdir() if name.fullmatch(inner.name)]:
            with suppress(OSError):
                _finish(path, beside)


def _led_to(path: Path) -> Path:
    """The index itself: of a link what it leads to is replaced, and the link stays."""
    return Path(os.path.realpath(path))


def _folder_beside(path: Path) -> tuple[Path, Descriptor]:
    """A new folder and the descriptor that holds it."""
    while True:
        beside = path.parent / f".{path.name}.{os.urandom(4).hex()}"
        durable.make_directory(beside)
        held = locks.hold(beside)
        if held is not None:  # else another run took it for a dead one's
            return beside, held


def _take_the_place(path: Path, beside: Path) -> None:
    """The new index gets the name of the old one; an error leaves the old one its name."""
    if durable.exchange(beside / "new", path):
        return
    durable.move(path, beside / "old")
    try:
        durable.move(beside / "new", path)
    except BaseException:
        if not path.exists():
            durable.move(beside / "old", path)
        raise


def _finish(path: Path, beside: Path) -> None:
    held = locks.hold(beside)
    if held is None:
        return
    with held:
        found = list(beside.iterdir())
        if not all(inner.name in ("new", "old") and _is_of_an_index(inner) for inner in found):
            return
        if len(found) == 2:
            if os.path.lexists(path):
                return
            durable.move(beside / "new", path)
        elif (beside / "old").exists() and not os.path.lexists(path):
            return  # somebody has moved the new one away: this may be the only one
        durable.sync_directory(path.parent)
        _remove(beside, path)


def _is_of_an_index(path: Path) -> bool:
    """Whether it is a link, which is removed alone, or a directory of nothing but an index."""
    return path.is_symlink() or (path.is_dir() and not strangers(path))


def _remove(beside: Path, path: Path) -> None:
    """Removes what was replaced; what repairs had kept in it goes to the index in its place."""
    with suppress(OSError):  # the next build tries again
        inner = [*filter(is_directory, beside.iterdir())]
        if any(map(strangers, inner)):
            return  # somebody was quick to put something there
        for replaced in inner:
            for kept in sorted(replaced.iterdir()):
                if is_numbered(kept.name, KEPT_PREFIX):
                    durable.move(kept, next_numbered(path, KEPT_PREFIX))
        removal.remove_tree(beside)
