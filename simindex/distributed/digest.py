"""Digests of a shard: of its region and its rows, whatever their order, and of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from simindex.arrays import U8, U64
from simindex.bits.splitmix import mixed
from simindex.errors import CorruptFile
from simindex.records.sketches import sizes_of, words_of

MASK = (1 << 64) - 1

NOT_PART = frozenset({"LOCK", "catalog/lock.mdb"})
"""Files of an index that say who has it open."""


def rows_digest(ids: U64, rows: U64, sketches: U8 | None = None) -> int:
    """Of rows, uint64 (n,) and (n, W), in any order; of several batches the sum modulo 2**64.

    `sketches` are their records, uint8 (n, 8 S + 1), if they have some. It tells copies apart that
    were mixed up, not those that somebody forged. O(n (W + S)).
    """
    states = mixed(ids)
    for word in rows.T:
        states = mixed(states ^ word)
    if sketches is not None:
        for word in words_of(sketches).T:
            states = mixed(states ^ word)
        states = mixed(states ^ sizes_of(sketches).astype(np.uint64))
    return int(states.sum(dtype=np.uint64)) if len(ids) else 0


def region_digest(region: str) -> int:
    """Of what rows a shard may have; 0 if it takes any."""
    if not region:
        return 0
    return int.from_bytes(hashlib.blake2b(region.encode(), digest_size=8).digest(), "little")


def joined_digest(digests: Iterable[int]) -> int:
    """The digest of the rows of several batches, and of their region."""
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
