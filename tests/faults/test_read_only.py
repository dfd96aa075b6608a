"""An index opened for reading is not written to: not a byte, not a name, not a time.

But for LMDB's table of readers, which is made where it is missing and may be.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions

READ = """
import sys, numpy, simindex
values = numpy.arange(1, 41, dtype=numpy.uint64) * 0x9E3779B97F4A7C15
octets = values.astype(">u8").view(numpy.uint8).reshape(-1, 8)
weights = numpy.where(numpy.unpackbits(octets, axis=1) == 1, 1, -1).astype(numpy.float32)
for refresh in (True, False):
    with simindex.open(sys.argv[1], refresh=refresh) as index:
        for method in ("auto", "psm", "scan", "bphs", "issl"):
            assert len(index.query(values, h=2, method=method)) == 40
        index.query(simindex.Batch(values, weights=weights), recall=0.9)
        index.query(values, memory_limit=1 << 26)
        for method in ("auto", "scan", "issl"):
            index.top(values, k=2, method=method)
        list(index.pairs(h=3)), index.clusters(h=3), list(index.rows())
        index.explain(values[:1]), index.explain_top(values[:1], k=1)
        index.audit(), index.tune(machine=False), index.stats(skew=True), index.refresh()
        assert index.check() == []
        for call in (index.commit, index.compact, lambda: index.append(values),
                     lambda: index.delete(ids=[1]), lambda: index.ingest(values),
                     lambda: index.seen_or_add(simindex.Batch(values[:1]))):
            try: call()
            except simindex.ReadOnlyIndex: pass
            else: raise AssertionError("written to")
print("read")
"""

SPARED = "lock.mdb"
"""LMDB's table of readers, in which each takes a place: that of a file that is not part of the data
and may be missing. Where nothing can be written it is left alone, too; see `test_ownership`."""


@pytest.fixture
def filled(index_path: Path) -> Path:
    """An index with every kind of file, pending rows, tombstones, a stray and a temporary file."""
    options = IndexOptions(
        batch_rows=64, min_merge=0, structures=("psm", "bphs:G=3,g=1,r=2", "issl"),
        reservoir_rows=16,
    )
    values = np.arange(1, 41, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    octets = values.astype(">u8").view(np.uint8).reshape(-1, 8)
    weights = np.where(np.unpackbits(octets, axis=1) == 1, 1, -1).astype(np.float32)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(Batch(values[:20], ids=np.arange(20), weights=weights[:20]))
        index.append(Batch(~values[:3], ids=np.arange(100, 103)))
        index.commit()
        index.delete(ids=np.arange(100, 103))
        index.append(Batch(values[20:36], ids=np.arange(20, 36)))
        index.commit()
        index.append(Batch(values[36:], ids=np.arange(36, 40)))
    return index_path


def traces(path: Path) -> dict[str, tuple[int, ...]]:
    """Inode, size, times of change and of content, and permissions of everything."""
    return {
        str(inside.relative_to(path)): (
            (status := inside.lstat()).st_ino, status.st_size, status.st_mtime_ns,
            status.st_ctime_ns, status.st_mode,
        )
        for inside in [path, *path.rglob("*")] if inside.name != SPARED
    }


def read(path: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """A process that reads an index in every way there is."""
    finished = subprocess.run(
        [*before, sys.executable, "-c", READ, str(path)], capture_output=True, text=True,
        timeout=120, check=False,
    )
    assert finished.stdout == "read\n", finished.stderr
    return finished


def test_reading_leaves_no_trace(filled: Path) -> None:
    """Times of change tell of writing and renaming even where the bytes are the same."""
    before = traces(filled)
    assert {Path(name).suffix for name in before} >= {".rows", ".bphs", ".issl", ".mdb"}
    read(filled)
    assert traces(filled) == before


def test_copy_without_a_table_of_readers_gets_one_and_nothing_else(
    filled: Path, tree: Callable[[Path], Any]
) -> None:
    table = filled / "catalog" / SPARED
    before = tree(filled)
    table.unlink()
    read(filled)
    assert table.stat().st_size == 1 << 16 | 128
    assert tree(filled) == before


def test_reading_opens_nothing_for_writing(filled: Path, tmp_path: Path) -> None:
    """As the system sees it: every call that could change a file or a name, of all threads."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("1 test: there is no strace to look at system calls")
    log = tmp_path / "calls"
    changing = (
        "openat,open,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,rename,"
        "renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,link,linkat,symlink,symlinkat,chmod,"
        "fchmod,fchmodat,utimensat"
    )
    command = [strace, "-f", "-qq", "-y", "-o", str(log), "-e", f"trace={changing}"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"1 test: strace cannot trace here: {tried.stderr.strip()}")
    read(filled, *command)
    lines = [line for line in log.read_text().splitlines() if str(filled) in line]
    assert sum("O_RDONLY" in line for line in lines) > 10
    opened = re.compile(r"open(at)?\(.*O_RDONLY")
    harmful = [
        line for line in lines
        if not opened.search(line.partition(" = ")[0]) and SPARED not in line
    ]
    assert harmful == []


def test_writer_is_seen_by_what_looks_for_readers_that_write(filled: Path) -> None:
    """The test above could fail: opening for writing alone leaves a trace."""
    before = traces(filled)
    (filled / "segments" / ".tmp-0123456789abcdef").write_bytes(b"left by a crash")
    with simindex.open(filled) as index:
        assert len(index) == 40
    assert (filled / "segments" / ".tmp-0123456789abcdef").exists()
    simindex.open(filled, "w").close()
    assert not (filled / "segments" / ".tmp-0123456789abcdef").exists()
    assert traces(filled) != before
