"""An index with an older backup, what it is made on, and what a stopped backup may leave of it.

What may be left is no backup, the older one whole, or the new one whole. The index is as it was.
The next backup succeeds, and leaves nothing else.
"""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simindex
from reliability.trials import Fault, Say, forked
from reliability.workloads import SKETCHED, Rows, deterministic, rows_of, sizes_of
from simindex import Batch
from simindex.errors import SimindexError

VARIANTS = ("first", "update", "renamed", "elsewhere", "elsewhere, update", "no links, update")
"""A new backup or one over an older one; where names cannot be exchanged, on another file system,
and where that has no links."""

LACKING = ("first", "elsewhere", "renamed")
"""Where a stopped backup may leave none: there was none, or it is between two renames."""


def refuse_link(variant: str, index: Path, path: Path) -> None:
    """Raises OSError where a variant has no link of a file: to another file system, or at all."""
    if "no links" in variant:
        raise OSError(errno.EPERM, "no links", str(path))
    if "elsewhere" in variant and path.is_relative_to(index):
        raise OSError(errno.EXDEV, "another file system", str(path))


def refuse_exchange(variant: str, path: Path) -> None:
    """Raises OSError where a variant exchanges no names."""
    if variant == "renamed":
        raise OSError(errno.EINVAL, "no exchange", str(path))


@dataclass(frozen=True, slots=True)
class Scene:
    """An index with an older backup, and its rows at both commits."""

    root: Path
    older: Rows
    newer: Rows

    @property
    def index(self) -> Path:
        """The index."""
        return self.root / "index"

    @property
    def backup(self) -> Path:
        """Where the backup goes."""
        return self.root / "backup"


def made(root: Path) -> Scene:
    """Makes an index of several segments with deletions, rows that wait, and an older backup."""
    index = simindex.open(root / "index", "c", options=SKETCHED)
    _append(index, 0, 20)
    index.delete(ids=[3, 4])
    _append(index, 20, 5)
    older = rows_of(index)
    index.backup(root / "backup")
    _append(index, 25, 30)
    index.delete(ids=[7, 30])
    index.commit()
    newer = rows_of(index)
    index.close()
    return Scene(root, older, newer)


def _append(index: simindex.Index, first: int, count: int) -> None:
    numbers = np.arange(first, first + count, dtype=np.uint64)
    values = numbers * np.uint64(0x9E3779B97F4A7C15)
    index.append(Batch(values, ids=numbers, sketch=~values[:, None], features=sizes_of(numbers)))
    index.commit()


def copied(scene: Scene, root: Path, variant: str) -> Scene:
    """The scene once more, with an older backup if the variant has one."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    shutil.copytree(scene.index, root / "index")
    if "update" in variant or variant == "renamed":
        shutil.copytree(scene.backup, root / "backup")
        for file in (root / "backup" / "segments").iterdir():
            if "," not in variant and (root / "index" / "segments" / file.name).exists():
                file.unlink()  # as on one file system, where both share it
                file.hardlink_to(root / "index" / "segments" / file.name)
    return Scene(root, scene.older, scene.newer)


def examine(scene: Scene, *, may_lack: bool) -> None:
    """Raises Fault unless the index is whole, the backup too, and the next one succeeds."""
    whole(scene.index, scene.newer)
    if (scene.backup / "FORMAT").exists():
        whole(scene.backup, scene.older, scene.newer)
    elif not may_lack:
        raise Fault("lost", "no backup is left")
    elif scene.backup.exists():
        raise Fault("wrong", f"half a backup: {sorted(scene.backup.rglob('*'))}")
    with simindex.open(scene.index) as index:
        index.backup(scene.backup)
    whole(scene.backup, scene.newer)
    nothing_beside(scene.root)


def whole(path: Path, *states: Rows) -> None:
    """Raises Fault unless an index is undamaged and holds one of some states."""
    try:
        with simindex.open(path) as index:
            found, findings = rows_of(index), index.check()
    except SimindexError as error:
        raise Fault("lost", f"{path.name} cannot be read: {error!r}") from error
    if findings:
        raise Fault("wrong", f"{path.name}: {findings}")
    if found not in states:
        kind = "lost" if len(found) < min(map(len, states)) else "wrong"
        raise Fault(kind, f"{path.name} holds {len(found)} rows")


def nothing_beside(root: Path) -> None:
    """Raises Fault if there is anything next to the index and its backup."""
    left = names(root) - {"index", "backup"}
    if left:
        raise Fault("leaked", f"left behind: {sorted(left)}")


def names(folder: Path) -> set[str]:
    """What is in a folder."""
    return {path.name for path in folder.iterdir()}


def scene_at(root: Path) -> Scene:
    """Made in a child: LMDB does not cross a fork, so no index is opened here."""
    def work(say: Say) -> None:
        with deterministic(0):
            scene = made(root)
        say([[[name, value.hex()] for name, value in rows] for rows in (scene.older, scene.newer)])

    ended = forked(work)
    if ended.code:
        raise AssertionError(f"no scene was made: {ended}")
    older, newer = (
        tuple((name, bytes.fromhex(value)) for name, value in rows) for rows in ended.said[0]
    )
    return Scene(root, older, newer)
