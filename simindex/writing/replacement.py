"""A new index in the place of an old one, at once: it is built in a folder next to the old one.

    pages.sim                  the old index; the new one once they have exchanged their names
    .pages.sim.XXXXXXXX/       held (flock) by the run that made it, while it lives
        new                    the new index while it is built, the old one after the exchange
        old                    the old one, on file systems that exchange no names

1. Where names can be exchanged, there is an index at the path at every moment, old or new.
2. Where not, a kill between two renames leaves both indexes in the folder and none at the path:
   the next run finishes it, see `clear_up`.
3. What is replaced is removed once the new one's name is durable; what repairs had kept in it
   goes over to the new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simindex.errors import raised_by_a_handler
from simindex.storage.files import durable, locks, removal
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.file_names import KEPT_PREFIX, is_directory, is_numbered, next_numbered
from simindex.writing.ownership import strangers


def led_to(path: Path) -> Path:
    """The index itself: of a link what it leads to is replaced, and the link stays."""
    return Path(os.path.realpath(path))


def clear_up(path: Path) -> None:
    """Removes what replacements of `path` that were killed have left next to it.

    One that was killed between its two renames is finished. Left alone are the folders of runs
    that live, whatever does not look as if a replacement had made it, a folder with both indexes if
    there is a third at `path`, and one with the old index if there is none.
    """
    path = led_to(path)
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")
    with left_to_the_next_run():
        for beside in [inner for inner in path.parent.iterdir() if name.fullmatch(inner.name)]:
            with left_to_the_next_run():
                _finish(path, beside)


@contextmanager
def left_to_the_next_run() -> Iterator[None]:
    """Passes over what the system refuses, for the next run to clear up."""
    try:
        yield
    except OSError as error:
        if raised_by_a_handler(error):
            raise


def folder_beside(path: Path) -> tuple[Path, Descriptor]:
    """A new folder and the descriptor that holds it."""
    while True:
        beside = path.parent / f".{path.name}.{os.urandom(4).hex()}"
        durable.make_directory(beside)
        held = locks.hold(beside)
        if held is not None:  # else another run took it for a dead one's
            return beside, held


def take_the_place(path: Path, beside: Path) -> None:
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
        remove_beside(beside, path)


def _is_of_an_index(path: Path) -> bool:
    """Whether it is a link, which is removed alone, or a directory of nothing but an index."""
    return path.is_symlink() or (path.is_dir() and not strangers(path))


def remove_beside(beside: Path, path: Path) -> None:
    """Removes what was replaced; what repairs had kept in it goes to the index in its place."""
    with left_to_the_next_run():
        inner = [*filter(is_directory, beside.iterdir())]
        if any(map(strangers, inner)):
            return  # somebody was quick to put something there
        for replaced in inner:
            for kept in sorted(replaced.iterdir()):
                if is_numbered(kept.name, KEPT_PREFIX):
                    durable.move(kept, next_numbered(path, KEPT_PREFIX))
        removal.remove_tree(beside)
