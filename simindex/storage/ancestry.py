"""Which state of an index another one comes from, so that a backup replaces older states only.

    index      commits 1 .. 5 .. 8        came through nothing
                            |
    backup                  5             came through [a, 5]
                            |
    restored                5 .. 9        came through [a, 5]; its next backup [a, 5] [b, 9]

A backup draws a number for its copy and adds it, with the commit, to the value `backups` of the
copy's catalog. Commits keep the value. So it says of every copy which way it took.

Invariants
1. A backup at whose commit the last entry stands was not written to since it was made.
2. It is an older state of an index if the index has taken the same way up to its commit.
3. A repair may lose rows. It begins a new way, so no backup of before it is replaced.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.storage.catalog.records import Head, counts
from simindex.storage.catalog.sealed_values import pack, unpack

VALUE = "backups"
"""Of the catalog's values."""

ID_BYTES = 8

MOST = 1 << 16
"""More than an index is ever restored."""


class Branch(NamedTuple):
    """A copy that was made of an index."""

    id: bytes
    generation: int
    """The commit that it was made of."""


class State(NamedTuple):
    """What a catalog says of where it is."""

    head: Head
    way: tuple[Branch, ...]
    """The copies that it came through, the first one first."""


def branched(generation: int) -> Branch:
    """A new copy of a commit."""
    return Branch(os.urandom(ID_BYTES), generation)


def repaired() -> Branch:
    """What a repair puts in the place of the way: no older backup is a state that it came from."""
    return branched(0)


def encode(way: tuple[Branch, ...]) -> bytes:
    """The payload of the value."""
    return pack([list(branch) for branch in way])


def decode(payload: bytes | None) -> tuple[Branch, ...]:
    """The way in a payload whose checksum held; an index without one came through no copy."""
    if payload is None:
        return ()
    try:
        found = tuple(Branch(*entry) for entry in unpack(VALUE, payload))
        counts(*(branch.generation for branch in found))
        if len(found) > MOST or not all(
            isinstance(branch.id, bytes) and len(branch.id) == ID_BYTES for branch in found
        ):
            raise ValueError("no branches")
    except (TypeError, ValueError) as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(
            f"the catalog's record meta/{VALUE} cannot be decoded", path=f"meta/{VALUE}"
        ) from error
    return found


def why_not_older(backup: State, index: State) -> str | None:
    """Why a backup is no older state of an index, to be said of the backup; None if it is one."""
    commit = backup.head.generation
    if not backup.way:
        return "was not made by a backup"
    *common, own = backup.way
    if own.generation != commit:
        return f"was written to since it was made (it is at commit {commit}, made of {own[1]})"
    if commit > index.head.generation:
        return f"is at commit {commit}, and the index at the older commit {index.head.generation}"
    shared, further = index.way[: len(common)], index.way[len(common) :]
    if shared != tuple(common):
        return "comes from another copy of the index, or from before a repair of it"
    if further and further[0] != own and further[0].generation < commit:  # 0 after a repair
        return (
            f"has commits after {further[0].generation} that the index does not come from: it was "
            "restored or repaired there"
        )
    # Of two plain copies of a folder that were both written to. What the index has from a commit
    # that the backup has seen, and still has, the backup has, too.
    known = set(backup.head.pending)
    if any(run.horizon <= commit and run not in known for run in index.head.pending):
        return "has other commits than the index"
    if backup.head.appended > index.head.appended:
        return "has other commits than the index"
    return None
