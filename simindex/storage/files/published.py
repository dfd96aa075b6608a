"""The names of published shards: directories of indexes that nobody writes to any more.

    pages.shards/shards.json                                       MAP
    pages.shards/shards/00003-9f3c5a7e12d4b680/51d0c7a94e8b2f36/   FOLDER NAME SEAL

An index at such a place is read only, and what helps where it is damaged is a copy of it. A copy at
another place is an index like all others.
"""

from __future__ import annotations

import re
from pathlib import Path

from simindex.errors import ReadOnlyIndex

MAP = "shards.json"
"""In the folder of a collection: which shards it has."""

FOLDER = "shards"
"""Of the shards of a collection, next to their map."""

NAME = re.compile(r"[0-9]{5,}-[0-9a-f]{16}", re.ASCII)
"""Of the folder of a shard."""

SEAL = re.compile(r"[0-9a-f]{16}", re.ASCII)
"""Of a shard in it."""

RESTORE = "restore the shard from a copy, or build the collection again"
"""What helps where a shard is damaged. If it is built alone, it has another seal than the map says.
"""


def is_published(directory: Path) -> bool:
    """Whether the directory of an index is that of a published shard, by its path."""
    path = directory.absolute()
    return (
        SEAL.fullmatch(path.name) is not None
        and NAME.fullmatch(path.parent.name) is not None
        and path.parent.parent.name == FOLDER
    )


def require_unpublished(directory: Path) -> None:
    """Raises ReadOnlyIndex where a published shard would be written to: its map would not agree
    with it any more, and the collection would refuse it."""
    if is_published(directory) or is_published(directory.resolve()):
        raise ReadOnlyIndex(
            f"{directory} is a published shard, which must not change",
            remedy="change the collection by calls of its own, such as `simindex ray append`, or "
            "copy the folder of the shard to another place, and change the copy",
            path=str(directory),
        )
