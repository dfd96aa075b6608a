"""Opening an index directory, or making one, as dbm files are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from simindex.checks import require_seconds
from simindex.errors import ClosedIndex, IndexExists, IndexLocked
from simindex.index.index import Index
from simindex.options import IndexOptions, as_flag
from simindex.storage.files.published import require_unpublished
from simindex.storage.files.refusals import translated
from simindex.storage.location import checked_call

if TYPE_CHECKING:
    from simindex.index.handle import Mode
    from simindex.storage.files.checksums import Verify

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.05
"""Between two looks at an index that another process writes."""

MOST_REPLACED = 10
"""So often an index is opened anew because another one takes its place meanwhile."""


def open(
    path: str | os.PathLike[str],
    mode: Mode = "r",
    *,
    options: IndexOptions | None = None,
    overwrite: bool = False,
    refresh: bool = True,
    verify: Verify = "lazy",
    wait_s: float = 0.0,
) -> Index:
    """Opens an index directory, in the modes of dbm.

    Parameters
    ----------
    mode : str
        ``"r"`` reads an index and creates nothing. ``"w"`` writes an existing index. ``"c"`` writes
        an index and creates it if it is missing. ``"n"`` creates an index; it refuses if there is
        one, unless `overwrite` is given. It never replaces an index of a newer version.
    options : IndexOptions
        For a new index. For an existing one they must agree with its own.
    refresh : bool
        Whether the calls of a reader follow new commits. False pins the handle to the commit at
        which it was opened, until `Index.refresh`.
    verify : str
        When rows and structures are compared with their checksums. ``"lazy"``: each 64 KiB of a
        file when a call first reads it. Damage on the disk then gives CorruptFile, never a wrong
        answer. ``"open"``: also whole files when they are opened, of this commit and of later ones.
        ``"never"``: damage may give wrong answers. Changes under an open handle after the first
        read are not noticed; `Index.check` reads everything.
    wait_s : float
        Seconds to wait for another writer to close the index. By default a second writer is refused
        at once.

    Raises
    ------
    IndexNotFound, IndexExists, IndexLocked
        If there is no index, if there is one with mode ``"n"``, or if another process still writes
        it after `wait_s`.
    CorruptFile, FormatTooOld, FormatTooNew
        If the index is damaged or of another version.
    ReadOnlyIndex
        If a published shard of `simindex.distributed` would be written to.
    InvalidOption
        If options differ from the stored ones, with the differences, if `verify` is unknown, or if
        `wait_s` is no number of seconds.

    Notes
    -----
    Maps files and reads the head of the catalog. Unless ``verify="open"`` it reads no row, so the
    cost does not grow with the rows. Writers that wait look twenty times a second whether
    the index is free. Which of them is next is left to chance.
    """
    return opened(
        path, mode, options=options, overwrite=overwrite, refresh=refresh, verify=verify,
        wait_s=wait_s,
    )


def opened(
    path: str | os.PathLike[str], mode: Mode = "r", *, options: IndexOptions | None = None,
    overwrite: bool = False, refresh: bool = True, verify: Verify = "lazy", wait_s: float = 0.0,
    brief: bool = False,
) -> Index:
    """What `open` gives. `brief` is for a process that ends soon: what a call needs is imported by
    the first such call.

    `open` imports all of that. A process that stays must not leave it out: files of the package may
    change or be out of reach before the call.
    """
    directory = checked_call(path, mode, options, verify)
    if mode != "r":
        require_unpublished(directory)
    refresh, overwrite = as_flag(refresh, "refresh"), as_flag(overwrite, "overwrite")
    patience_s = require_seconds(wait_s, "wait_s", "a number of seconds, 0 or more")
    deadline, pause_s = time.monotonic() + patience_s, FIRST_PAUSE_S
    replaced = 0
    while True:
        try:
            _make_if_missing(directory, mode, options, overwrite=overwrite)
            return Index(
                directory, mode, options=options, refresh=refresh, verify=verify, brief=brief
            )
        except ClosedIndex:  # another index took its place just then, as a new backup does
            replaced += 1
            if mode == "n" or replaced == MOST_REPLACED:
                raise
            continue
        except IndexLocked:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _make_if_missing(
    directory: Path, mode: Mode, options: IndexOptions | None, *, overwrite: bool
) -> None:
    if mode not in ("c", "n"):
        return
    from simindex.writing import creation
    from simindex.writing.ownership import exists

    with translated(directory, True):
        missing = mode == "n" or not exists(directory)
    if missing:
        try:
            with translated(directory, True):
                creation.create(
                    directory, options or IndexOptions(), overwrite=overwrite and mode == "n"
                )
        except IndexExists:
            if mode == "n" or not exists(directory):
                raise
