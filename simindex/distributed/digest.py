"""Digests of the rows of a shard, whatever their order, and of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from simindex.arrays import U64
from simindex.bits.splitmix import mixed
from simindex.errors import CorruptFile

MASK = (1 << 64) - 1

NOT_PART = frozenset({"LOCK", "catalog/lock.mdb"})
"""Files of an index that say who has it open."""


def rows_digest(ids: U64, rows: U64) -> int:
    """Of rows, uint64 (n,) and (n, W), in any order; of several batches the sum modulo 2**64.

    It tells copies apart that were mixed up, not those that somebody forged. O(n W).
    """
    states = mixed(ids)
    for word in rows.T:
        states = mixed(states ^ word)
    return int(states.sum(dtype=np.uint64)) if len(ids) else 0


def joined_digest(digests: Iterable[int]) -> int:
    """The digest of the rows of several batches."""
    return sum(digests) & MASK


def file_sizes(index: Path) -> dict[str, int]:
    """Bytes of each file of an index that is not open for writing, by its path in the index."""
    found = {}
    for path in sorted(index.rglob("*")):
        name = path.relative_to(index).as_posix()
        if path.is_file() and name not in NOT_PART:
            found[name] = path.stat().st_size
    return found


def files_digest(index: Path, names: Iterable[str]) -> str:
    """32 hexadecimal digits of the names and bytes of some files of an index. Reads all of them.

    Raises CorruptFile if one is missing.
    """
    whole = hashlib.blake2b(digest_size=16)
    for name in sorted(names):
        path = index / name
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        except FileNotFoundError as error:
            raise CorruptFile(f"{path} is missing", path=str(path)) from error
        whole.update(f"{name}\0{content.hexdigest()}\n".encode())
    return whole.hexdigest()
