"""An index several times larger than the memory is searched, exactly, and read once.

    this process     writes the index, plants near rows, starts a child, compares what it found
    child            opens the index, is given a limit, asks by one of WAYS, says what it used

Run as a program this file is the child: `test_memory_limit.py WAY DIRECTORY QUERIES LIMIT_GROUP`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import simindex
from simindex import Batch, IndexOptions
from simindex.bits.design import BlockDesign
from simindex.methods import query_tables, scan
from simindex.methods.base import Asked, Found, TablePlan, joined
from simindex.methods.stream import Stream

H = 3
BITS = 256
ROWS = 4 << 20
"""128 MiB of fingerprints, and 32 of ids."""
QUERIES = {"tables": 20_000, "scan": 40, "query": 20_000}
STREAM = Stream(chunk_bytes=2 << 20, window_bytes=8 << 20, release=True, threads=2)
SCAN = TablePlan("scan", 0, 0, True, 0.0)
DESIGN = BlockDesign.flat(4, 1, bits=BITS)
QUERY_LIMIT_BYTES = 24 << 20
SLACK_BYTES = 6 << 20
"""Stacks and arenas of threads, the allocator's own, and what 20,000 matches take."""


class Hits(NamedTuple):
    """Columns of what was found, in order."""

    query: NDArray[np.int64]
    id: NDArray[np.uint64]
    distance: NDArray[np.int64]


def in_order(query: Any, ids: Any, distance: Any) -> Hits:
    order = np.lexsort((ids, query))
    return Hits(
        np.asarray(query, np.int64)[order], np.asarray(ids, np.uint64)[order],
        np.asarray(distance, np.int64)[order],
    )


def by_tables(index: simindex.Index, queries: Any) -> Hits:
    tables = query_tables.build(queries, DESIGN, h=H)
    return together(
        query_tables.search(tables, table, Asked(queries, H, stream=STREAM))
        for table in index._current().tables
    )


def by_scan(index: simindex.Index, queries: Any) -> Hits:
    return together(
        scan.streamed(table, SCAN, Asked(queries, H, stream=STREAM))
        for table in index._current().tables
    )


def by_query(index: simindex.Index, queries: Any) -> Hits:
    found = index.query(queries, h=H, memory_limit=limit_bytes("query"), threads=2)
    return in_order(found.query, found.id, found.distance)


def together(parts: Iterable[Found]) -> Hits:
    found = joined(list(parts))
    return in_order(found.query, found.id, found.distance)


WAYS: dict[str, Callable[[simindex.Index, Any], Hits]] = {
    "tables": by_tables, "scan": by_scan, "query": by_query,
}


def limit_bytes(way: str) -> int:
    """Memory that the method says it needs, and SLACK_BYTES; of `query`, what it is allowed."""
    words = BITS // 64
    if way == "query":
        return QUERY_LIMIT_BYTES
    if way == "scan":
        return STREAM.resident_bytes(words) + SLACK_BYTES
    return SLACK_BYTES + query_tables.bytes_needed(
        QUERIES[way], words, DESIGN, h=H, stream=STREAM
    )


# -- the child -----------------------------------------------------------------------------------


def status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


def read_bytes() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["read_bytes"])


def child(way: str, directory: str, queries: str, group: str) -> None:
    """Searches under the limit and prints what it found and used."""
    if group:
        (Path(group) / "cgroup.procs").write_text("0")
    batch = np.load(queries)
    with simindex.open(directory) as index:
        limit = limit_bytes(way)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = status("VmRSS")
        if group:
            one = Path(group) / "memory.limit_in_bytes"
            held = Path(group) / "memory.usage_in_bytes"
            if not one.exists():
                one, held = Path(group) / "memory.max", Path(group) / "memory.current"
            one.write_text(str(int(held.read_text()) + limit))
        read = read_bytes()
        found = WAYS[way](index, batch)
        print(
            json.dumps(
                {
                    "grown": status("VmHWM") - before,
                    "read": read_bytes() - read,
                    "hits": [column.tolist() for column in found],
                }
            )
        )


# -- the tests -----------------------------------------------------------------------------------


class Stored(NamedTuple):
    path: Path
    rows: NDArray[np.uint64]
    """By id."""
    ends: tuple[int, int]
    """Ids of the rows stored first and last."""


def near_queries(stored: Stored, queries: int) -> tuple[Any, Hits]:
    """Queries, half of which are near rows, and what they must find.

    Rows are random: with 256 bits no other pair comes within a hundred bits.
    """
    rows = stored.rows
    rng = np.random.default_rng(11)
    batch = rng.integers(0, 1 << 64, (queries, BITS // 64), dtype=np.uint64)
    near = np.arange(0, queries, 2)
    # The first and last rows as stored are among them, as is a row asked about twice.
    chosen = rng.integers(0, len(rows), len(near))
    chosen[:4] = *stored.ends, chosen[5], chosen[5]
    batch[near] = rows[chosen]
    distance = np.arange(len(near)) % (H + 2)
    for wrong in range(H + 1):
        bit = (np.arange(len(near)) * 7 + wrong * 61) % BITS
        flipped = np.flatnonzero(distance > wrong)
        at = near[flipped], bit[flipped] // 64
        batch[at] ^= np.uint64(1) << (bit[flipped] % 64).astype(np.uint64)
    found = distance <= H
    return batch, in_order(near[found], chosen[found], distance[found])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """An index of some segments."""
    path = tmp_path_factory.mktemp("limit") / "large.sim"
    rows = np.random.default_rng(3).integers(0, 1 << 64, (ROWS, BITS // 64), dtype=np.uint64)
    options = IndexOptions(bits=BITS, min_merge=0)  # they stay several
    with simindex.open(path, "n", options=options) as index:
        index.append(Batch(rows, ids=np.arange(ROWS, dtype=np.uint64)))
        index.commit()
    return Stored(path, rows, (int(rows[:, 0].argmin()), int(rows[:, 0].argmax())))


@pytest.fixture
def group() -> Iterator[str]:
    """A memory cgroup of our own, version 1 or 2."""
    name = f"simindex-test-{os.getpid()}"
    controllers = Path("/sys/fs/cgroup/cgroup.controllers")
    root = Path("/sys/fs/cgroup") if controllers.exists() else Path("/sys/fs/cgroup/memory")
    made = root / name
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made here: {error}")
    try:
        if not any((made / one).exists() for one in ("memory.max", "memory.limit_in_bytes")):
            pytest.skip("cgroups do not limit memory here")
        yield str(made)
    finally:
        made.rmdir()


def forget(path: Path) -> None:
    """Takes a file out of the system's cache, where the file system has one of its own."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(way: str, stored: Stored, tmp_path: Path, group: str) -> None:
    path = stored.path
    batch, expected = near_queries(stored, QUERIES[way])
    np.save(tmp_path / "queries.npy", batch)
    files = list(path.glob("**/*.rows"))
    for file in files:
        forget(file)
    ran = subprocess.run(
        [sys.executable, __file__, way, str(path), str(tmp_path / "queries.npy"), group],
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:] or f"ended by {ran.returncode}"
    said = json.loads(ran.stdout)
    assert np.array_equal(said["hits"], np.stack([c.astype(np.float64) for c in expected]))
    limit = limit_bytes(way)
    stored_bytes = sum(file.stat().st_size for file in files)
    assert stored_bytes >= 4 * limit, "the index is to be several times larger"
    assert said["grown"] <= limit
    assert said["read"] <= stored_bytes


@pytest.mark.parametrize("way", WAYS)
def test_memory_stays_within_what_the_method_says(
    way: str, stored: Stored, tmp_path: Path
) -> None:
    """Resident memory grows by no more than the estimate, and the file is read at most once."""
    run(way, stored, tmp_path, "")


@pytest.mark.parametrize("way", WAYS)
def test_a_cgroup_smaller_than_the_index_is_enough(
    way: str, stored: Stored, tmp_path: Path, group: str
) -> None:
    """The limit includes the system's cache of the file; nothing is thrown out and read again."""
    run(way, stored, tmp_path, group)


if __name__ == "__main__":
    child(*sys.argv[1:])
