"""Opening an index directory, or making one, as dbm files are."""

from __future__ import annotations

import os

from simindex.errors import IndexExists
from simindex.index.handle import Mode
from simindex.index.index import Index
from simindex.options import IndexOptions, as_flag
from simindex.storage.files.refusals import translated
from simindex.storage.files.verification import Verify
from simindex.storage.location import checked_call
from simindex.writing import creation
from simindex.writing.ownership import exists


def open(
    path: str | os.PathLike[str],
    mode: Mode = "r",
    *,
    options: IndexOptions | None = None,
    overwrite: bool = False,
    refresh: bool = True,
    verify: Verify = "lazy",
) -> Index:
    """An index directory, opened as dbm files are.

    Parameters
    ----------
    mode : str
        ``"r"`` reads an index and creates nothing; ``"w"`` writes one that exists; ``"c"`` writes
        one, creating it if there is none; ``"n"`` creates one, and keeps one that exists unless
        `overwrite` is given, and then, too, if a newer version made it.
    options : IndexOptions
        For an index that is created. For one that exists they must agree with its own.
    refresh : bool
        Whether a reader's calls follow new commits by themselves. False pins the commit it was
        opened at until `Index.refresh` is called.
    verify : str
        When rows and structures are compared with their checksums. ``"lazy"``: each 64 KiB of a
        file when a call first touches them, so that damage on the disk gives CorruptFile, never a
        wrong answer; ``"open"``: whole files when they are opened, too, of this commit and of later
        ones; ``"never"``: damage may give wrong answers. What changes under an open handle after
        its first touch is not noticed: `Index.check` reads everything.

    Raises
    ------
    IndexNotFound, IndexExists, IndexLocked
        As the mode meets no index, one it must keep, or another writer.
    CorruptFile, FormatTooOld, FormatTooNew
        If the index is damaged or of another version.
    InvalidOption
        If options differ from the stored ones; carries the differences. If `verify` is unknown.

    Notes
    -----
    Maps files and reads the catalog's head; unless ``verify="open"`` no row is read, so that the
    cost does not grow with them.
    """
    directory = checked_call(path, mode, options, verify)
    refresh, overwrite = as_flag(refresh, "refresh"), as_flag(overwrite, "overwrite")
    with translated(directory, mode != "r"):
        missing = mode == "n" or (mode == "c" and not exists(directory))
    if missing:
        try:
            with translated(directory, True):
                creation.create(
                    directory, options or IndexOptions(), overwrite=overwrite and mode == "n"
                )
        except IndexExists:
            if mode == "n" or not exists(directory):
                raise
    return Index(directory, mode, options=options, refresh=refresh, verify=verify)
