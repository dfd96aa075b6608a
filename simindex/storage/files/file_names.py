"""The names of what is in an index's directory.

    pages.sim/
      FORMAT                      64 bytes, the last file written by create
      LOCK                        flock of the one writer
      catalog/data.mdb lock.mdb   LMDB
      segments/<name>.rows        sorted rows, never changed once named
      segments/<name>-….bphs      permuted tables, and
      segments/<name>-….issl      slice lists of a segment, as its record names them
      segments/<name>.dead        a long run of tombstones, as the head names it
      catalog.repair-<n>/         a catalog that a repair is making
      damaged-<n>/                what a repair has replaced

A name in `segments/` means nothing until the catalog's head names it too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

TEMPORARY_PREFIX = ".tmp-"

TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}")

REPAIRED_CATALOG = "catalog.repair-"
"""A repair makes a catalog under this name and a number, then gives it the old one's."""

KEPT_PREFIX = "damaged-"
"""What a repair replaces goes into a directory of this name and a number; nothing else touches it.
"""

CATALOG_FILES = {"data.mdb", "lock.mdb"}
"""All that a catalog's directory holds."""

_NUMBER = re.compile(r"[0-9]{1,9}")


def is_directory(path: Path) -> bool:
    """Whether a directory has this name itself: a link to one is none."""
    return path.is_dir() and not path.is_symlink()


def is_file(path: Path) -> bool:
    """Whether a regular file has this name itself."""
    return path.is_file() and not path.is_symlink()


def is_numbered(name: str, prefix: str) -> bool:
    """Whether a repair may have given a name that begins so, and ends with a number."""
    return name.startswith(prefix) and _NUMBER.fullmatch(name, len(prefix)) is not None


def next_numbered(directory: Path, prefix: str) -> Path:
    """The path of the next number that begins so."""
    taken = [
        int(path.name[len(prefix) :]) for path in directory.glob(f"{prefix}*")
        if is_numbered(path.name, prefix)
    ]
    number = max(taken, default=0) + 1
    while os.path.lexists(directory / f"{prefix}{number}"):
        number += 1
    return directory / f"{prefix}{number}"


def repaired_catalogs(directory: Path) -> list[Path]:
    """Catalogs that repairs have made and not put in place, the last one first."""
    found = [
        path for path in directory.glob(f"{REPAIRED_CATALOG}*")
        if is_numbered(path.name, REPAIRED_CATALOG) and is_directory(path)
    ]
    return sorted(found, key=lambda path: -int(path.name[len(REPAIRED_CATALOG) :]))
