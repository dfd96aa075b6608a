"""What must hold of an index whose writer has died, or met an error, at any moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simindex
from reliability.story import OPTIONS, Story, difference, number, rows_in, wrong_answers
from reliability.trials import Fault
from simindex.errors import SimindexError


def open_descriptors(root: Path) -> list[str]:
    """Files below a folder that this process has open or mapped."""
    found = [line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines()
             if f" {root}/" in line]
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:  # the one that lists them
            continue
        if target.startswith(f"{root}/") or target == str(root):
            found.append(target)
    return found


def holds(index: simindex.Index, story: Story, acknowledged: int) -> int:
    """The step that an index holds, whole: the last acknowledged one, or the one in flight."""
    rows = rows_in(index)
    found = number(rows)
    if found < acknowledged:
        raise Fault("lost", f"step {found} instead of {acknowledged}")
    if found > acknowledged + 1:
        raise Fault("wrong", f"step {found} where {acknowledged} was the last acknowledged")
    wrong = difference(rows, story.state(found))
    if wrong:
        raise Fault("wrong", f"step {found}, acknowledged {acknowledged}: {wrong}")
    return found


def examine(path: Path, story: Story, acknowledged: int) -> int:
    """Reads and checks an index, lets a writer go on with it, and returns the step it held.

    Changes the index; raises Fault for what is lost, wrong or left behind.
    """
    try:
        return _examined(path, story, acknowledged)
    except SimindexError as error:
        raise Fault("lost", f"after step {acknowledged}: {error!r}") from error


def _examined(path: Path, story: Story, acknowledged: int) -> int:
    rng = np.random.default_rng(acknowledged)
    if acknowledged or (path / "FORMAT").exists():
        with simindex.open(path) as reader:
            found = holds(reader, story, acknowledged)
            damage = [f for f in reader.check() if f.severity == "error"]
            if damage:
                raise Fault("wrong", f"damaged after a crash: {damage[0]}")
            wrong = wrong_answers(reader, story.state(found), rng)
            if wrong:
                raise Fault("wrong", wrong)
    with simindex.open(path, "c", options=None if acknowledged else OPTIONS) as writer:
        found = holds(writer, story, acknowledged)
        clean(writer)
        step = story.step(found + 1)
        wrong = step.commit(writer, story.state(found))
        holds(writer, story, found + 1)
        writer.compact(full=True)
        holds(writer, story, found + 1)
        wrong = wrong or wrong_answers(writer, story.state(found + 1), rng)
        if wrong:
            raise Fault("wrong", f"the next writer answers other than the oracle: {wrong}")
        clean(writer)
    left = open_descriptors(path)
    if left:
        raise Fault("leaked", f"open after close: {left}")
    return found


def clean(writer: simindex.Index) -> None:
    """Raises unless a writer's index is whole and its folder contains nothing else."""
    for finding in writer.check():
        kind = "wrong" if finding.severity == "error" else "leaked"
        raise Fault(kind, f"{finding.severity}: {finding}")
    strays = [path.name for path in writer.path.iterdir() if path.name not in
              {"FORMAT", "LOCK", "catalog", "segments"}]
    strays += [path.name for path in (writer.path / "catalog").iterdir() if path.name not in
               {"data.mdb", "lock.mdb"}]
    if strays:
        raise Fault("leaked", f"left behind: {strays}")
