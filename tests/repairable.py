"""An index to be damaged and repaired, and what it holds as plain lists.

Several segments, waiting rows, deletions and a sample: tests copy it, damage the copy in one way
and repair it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oracle

import simindex
from simindex import Batch, IndexOptions
from simindex.storage.files import disk

STRUCTURES = ("psm", "bphs:G=2,g=1", "issl:w=8")

OPTIONS = IndexOptions(batch_rows=32, min_merge=0, reservoir_rows=4, structures=STRUCTURES)

Rows = Counter[tuple[int, Any]]
"""(fingerprint, id or key) -> how often."""


@dataclass(frozen=True)
class Held:
    """An index and what it holds."""

    path: Path
    live: Rows
    sealed: Rows
    """Rows in segments, deleted ones included."""
    generation: int


def batch(values: Any, *, keyed: bool) -> Batch:
    values = np.asarray(values, np.uint64)
    weights = np.ones((len(values), 64), np.float32)
    if keyed:
        return Batch(values, keys=[f"k{value}" for value in values], weights=weights)
    return Batch(values, ids=values + np.uint64(7), weights=weights)


def rows_of(index: simindex.Index) -> Rows:
    found: Rows = Counter()
    for part in index.rows():
        names = part.keys if part.keys is not None else part.ids.tolist()
        found.update(zip(part.fingerprints.tolist(), names, strict=True))
    return found


def named(values: Any, *, keyed: bool) -> Rows:
    return Counter((value, f"k{value}" if keyed else value + 7) for value in values)


def write(path: Path, *, keyed: bool) -> Held:
    """Three segments, a pending run, and deletions of rows in both."""
    options = IndexOptions(
        batch_rows=32, min_merge=0, reservoir_rows=4, structures=STRUCTURES, keys=keyed,
        recipe=simindex.Recipe(),
    )
    sealed: list[int] = []
    with simindex.open(path, "c", options=options) as index:
        for first in (0, 1000, 2000):
            index.append(batch(range(first, first + 20), keyed=keyed))
            index.commit()
            sealed += range(first, first + 20)
        for gone in ([1, 1001], [2, 2002]):
            if keyed:
                index.delete(keys=[f"k{value}" for value in gone])
            else:
                index.delete(ids=[value + 7 for value in gone])
            index.commit()
        index.append(batch([3000], keyed=keyed))
        index.commit()
        index.commit()
        generation = index.generation
        live = rows_of(index)
        pending = index.stats().pending_rows
    assert live == named({*sealed, 3000} - {1, 2, 1001, 2002}, keyed=keyed)
    assert pending == 1
    return Held(path, live, named(sealed, keyed=keyed), generation)


def fresh(held: Held, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(held.path, path, ignore=shutil.ignore_patterns("lock.mdb"))
    return path


def segments(path: Path, suffix: str = ".rows") -> list[Path]:
    return sorted((path / "segments").glob(f"*{suffix}"))


def examine(path: Path) -> Rows:
    """The repaired index is whole, answers as brute force does, and a writer goes on with it."""
    with simindex.open(path) as index:
        found = rows_of(index)
        assert [f for f in index.check() if f.severity == "error"] == []
        generation, keyed = index.generation, index.options.keyed
        stored = np.array([value for value, _ in found], np.uint64)
        queries = np.array([0, 1001, 2003, 3000, 9999], np.uint64)
        for recall in (1.0,):
            matches = index.query(queries, h=2, recall=recall)
            expected = {
                (q, d, name) for q, row, d in oracle.matches(stored, queries, 2).tolist()
                for name in [[name for value, name in found][row]]
            }
            assert {(m.query, m.distance, m.key if keyed else m.id) for m in matches} == expected
    names = {p.name for p in segments(path)}
    assert all(int(name[:16], 16) <= generation for name in names)
    with simindex.open(path, "w") as index:
        index.append(batch(range(5000, 5050), keyed=keyed))
        index.commit()
        assert index.generation > generation
        index.append(batch([6000], keyed=keyed))
        name = {"keys": ["k6000"]} if keyed else {"ids": [6007]}
        index.commit()
        index.delete(**name)
        index.compact(full=True)
        assert rows_of(index) == found + named(range(5000, 5050), keyed=keyed)
        assert [f for f in index.check() if f.severity == "error"] == []
    return found


LAST_PAGE = (136, 4096 + 136)
"""Where the meta pages name the last page in use."""


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def with_field(content: bytes, at: int, value: bytes, size: int) -> bytes:
    """A header with another field, and the checksum of it."""
    content = content[:at] + value + content[at + len(value) :]
    crc = disk._native.crc32c(np.frombuffer(content[: size - 4], np.uint8))
    return content[: size - 4] + crc.to_bytes(4, "little") + content[size:]


def put_aside(path: Path) -> Path:
    """Moves what is at a path next to it, and returns the new place."""
    aside = path.with_name(f"{path.name}-aside")
    if path.exists():
        path.rename(aside)
    return aside


def a_link(path: Path) -> None:
    path.symlink_to(put_aside(path).name)


def a_directory(path: Path) -> None:
    put_aside(path)
    path.mkdir()


def a_fifo(path: Path) -> None:
    put_aside(path)
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    put_aside(path)
    os.mknod(path, stat.S_IFSOCK | 0o600)


def hurt(path: Path) -> None:
    """Damages FORMAT, the catalog's tree, a segment and tables beside another."""
    (path / "FORMAT").unlink()
    data = path / "catalog" / "data.mdb"
    content = data.read_bytes()
    data.write_bytes(content[:100] + b"\xff" * 40 + content[140:])
    file = segments(path)[0]
    file.write_bytes(file.read_bytes()[:-10] + b"0123456789")
    segments(path, ".bphs")[2].write_bytes(b"")
