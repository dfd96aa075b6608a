"""The folder that names of files start from: the shell stores it with the index that it makes.

    run in /home/ann    docs/a.txt     origin /home/ann; the key is docs/a.txt
    run in /home/bob    docs/a.txt     the key is ../bob/docs/a.txt

So a key that was made of a path leads to one file only, whatever folder a run is started in.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simindex.index.index import Index

ORIGIN = "origin"
"""Of the catalog's values: a path as bytes, absolute."""


def origin_of(index: Index) -> str | None:
    """The folder that names of files in an index start from; None if nobody has stored one."""
    with index._handle.catalog.reading() as reading:
        _, head = reading.head()
        stored = reading.value(head, ORIGIN)
    return None if stored is None else os.fsdecode(stored)


def keep_origin(index: Index, origin: str | None = None) -> None:
    """Has the next commit store an origin unless there is one: by default the working directory."""
    with suppress(FileNotFoundError):  # of a working directory that was removed
        if origin_of(index) is None:
            stored = os.getcwd() if origin is None else origin  # noqa: PTH109
            index._changes.keep("origin", ORIGIN, os.fsencode(stored))
