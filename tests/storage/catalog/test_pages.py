"""A damaged catalog is an error, never a signal, and never passes for a whole one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lmdb
import numpy as np
import pytest

import simindex
from simindex.errors import CorruptFile
from simindex.storage.catalog import environment as module
from simindex.storage.catalog.pages import META, Meta, preflight

pytestmark = pytest.mark.usefixtures("nothing_left_open")

ROWS = np.arange(30, dtype=np.uint64)
CHILD = """
import sys, simindex
from simindex.errors import CorruptFile
for path in sys.stdin.read().split():
    for mode in "rw":
        try:
            with simindex.open(path, mode) as index:
                print(path, "open", len(index))
        except CorruptFile:
            print(path, "corrupt")
"""


def metas_of(raw: bytes | bytearray) -> list[Meta]:
    """The meta pages of a file, the newest last."""
    starts = {page: bytes(raw[4096 * page :][: META.itemsize]) for page in (0, 1)}
    metas = [meta for page, start in starts.items() if (meta := Meta.read(start, page)) is not None]
    return sorted(metas, key=lambda meta: meta.commit)


def end_of_use(data: Path) -> int:
    """Where the last page ends that the file's meta pages count; what lies behind is empty."""
    return max((meta.last_page + 1) * meta.page_bytes for meta in metas_of(data.read_bytes()))


@pytest.mark.slow
def test_cut_catalog_is_an_error_and_never_a_signal(filled: Path, tmp_path: Path) -> None:
    """In a child process, since LMDB would end in SIGBUS."""
    data = filled / "catalog" / "data.mdb"
    size = end_of_use(data)
    os.truncate(data, size)
    lengths = sorted({0, 1, 100, 151, 152, 4095, 4096, 4247, 8191, 8192, size - 1, size - 4096,
                      *range(0, size, max(1, size // 25))} - {size})
    paths = []
    for length in lengths:
        copy = tmp_path / f"cut{length}"
        shutil.copytree(filled, copy)
        os.truncate(copy / "catalog" / "data.mdb", length)
        paths.append(copy)
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input="\n".join(map(str, paths)), capture_output=True,
        text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{path} corrupt" for path in paths for _ in "rw"]


@pytest.mark.slow
def test_random_damage_of_the_catalog_is_an_error_or_read_by_nobody(
    filled: Path, tmp_path: Path
) -> None:
    """The child opens and counts; a wrong count, a signal or another error would show."""
    rng = np.random.default_rng(8)
    data_file = filled / "catalog" / "data.mdb"
    clean = data_file.read_bytes()[: end_of_use(data_file)]
    paths = []
    for number in range(240):  # most bytes are empty
        copy = tmp_path / f"flip{number}"
        shutil.copytree(filled, copy)
        data = bytearray(clean)
        # Not the first bytes of a page: what LMDB makes of those is its own matter.
        at = int(rng.integers(0, len(data) // 4096)) * 4096 + int(rng.integers(200, 4096))
        data[at] ^= 1 << int(rng.integers(0, 8))
        (copy / "catalog" / "data.mdb").write_bytes(data)
        paths.append(copy)
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input="\n".join(map(str, paths)), capture_output=True,
        text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    assert set(seen) == {"corrupt", "open 30"}


@pytest.mark.slow
def test_missing_and_linked_catalogs_are_damage(filled: Path, tmp_path: Path) -> None:
    data = filled / "catalog" / "data.mdb"
    data.rename(tmp_path / "moved")
    for mode in ("r", "w"):
        with pytest.raises(CorruptFile, match="missing"):
            simindex.open(filled, mode)  # type: ignore[arg-type]
        assert not data.exists(), "an empty catalog must not take its place"
    data.symlink_to(tmp_path / "moved")
    with pytest.raises(CorruptFile, match="link"):
        simindex.open(filled)


@pytest.mark.slow
def test_catalog_of_something_else_is_damage(filled: Path) -> None:
    data = filled / "catalog" / "data.mdb"
    data.write_bytes(b"not a database, but long enough. " * 1000)
    with pytest.raises(CorruptFile, match="no valid meta page"):
        preflight(data)


@pytest.mark.slow
def test_preflight_looks_at_the_length_last(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer makes the file longer, then says so in a meta page: never the other way round."""
    order: list[str] = []
    real_fstat, real_pread = os.fstat, os.pread
    monkeypatch.setattr(module.os, "fstat", lambda fd: (order.append("size"), real_fstat(fd))[1])
    monkeypatch.setattr(
        module.os, "pread", lambda *args: (order.append("meta"), real_pread(*args))[1]
    )
    preflight(filled / "catalog" / "data.mdb")
    assert order == ["meta", "meta", "size"]


@pytest.mark.slow
def test_one_damaged_meta_page_is_damage(filled: Path) -> None:
    """LMDB refuses the file, whichever of the two it is."""
    data = filled / "catalog" / "data.mdb"
    with data.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))
    with pytest.raises(CorruptFile, match="meta page 1 is not valid"):
        preflight(data)
    with pytest.raises(lmdb.InvalidError):
        lmdb.open(str(filled / "catalog"), readonly=True, lock=False)


def grown(path: Path) -> tuple[Path, bytes, int]:
    """(file, the bytes before its last commit, the meta page of that one), of an index whose last
    commit made the file longer, and has a number of which one bit makes two less."""
    data = path / "catalog" / "data.mdb"
    with simindex.open(path, "w") as index:
        while True:
            before = data.read_bytes()
            index.append(np.arange(500, dtype=np.uint64))
            index.commit()
            metas = [np.frombuffer(data.read_bytes(), META, 1, at)[0] for at in (0, 4096)]
            page = int(metas[1]["commit"] > metas[0]["commit"])
            if metas[page]["commit"] & 2 and metas[page]["last"] > metas[1 - page]["last"]:
                return data, before, page


@pytest.mark.slow
def test_last_commit_does_not_pass_for_the_one_before_the_last(filled: Path) -> None:
    data, _, page = grown(filled)
    with data.open("r+b") as file:
        at = 4096 * page + META.itemsize - 8
        number = np.frombuffer(data.read_bytes(), "<u8", 1, at)[0]
        os.pwrite(file.fileno(), int(number ^ 2).to_bytes(8, "little"), at)
    with pytest.raises(CorruptFile, match="looks older than the one before it"):
        preflight(data)


@pytest.mark.slow
def test_meta_page_that_could_not_be_written_is_no_damage(filled: Path) -> None:
    """LMDB leaves it with its new roots, and puts back the number and the last page it had."""
    data, before, page = grown(filled)
    with simindex.open(filled) as index:
        rows = len(index)
    file = bytearray(data.read_bytes())
    at = 4096 * page + META.itemsize - 16
    assert file[at - 96 : at] != before[at - 96 : at]
    file[at : at + 16] = before[at : at + 16]
    data.write_bytes(file)
    preflight(data)
    with simindex.open(filled) as index:
        assert len(index) == rows - 500


def fail_commit(
    path: Path, add: Callable[[simindex.Index], object], *, torn: bool = False
) -> None:
    """Changes an index by a commit that cannot write its meta page.

    LMDB then writes the old number and the old last page back, but not the old roots; if both
    writes are `torn`, only the root of the free list is new.
    """
    data = path / "catalog" / "data.mdb"
    before = data.read_bytes()
    with simindex.open(path, "w") as index:
        add(index)
    after = bytearray(data.read_bytes())
    at = 4096 * metas_of(after)[-1].page
    old = np.frombuffer(before, META, 1, at)[0]
    record = np.frombuffer(after, META, 1, at)[0].copy()
    assert int(record["commit"]) == int(old["commit"]) + 2
    record["commit"], record["last"] = old["commit"], old["last"]
    if torn:
        record["main"] = old["main"]
    after[at : at + META.itemsize] = record.tobytes()
    other = 4096 - at
    after[other : other + META.itemsize] = before[other : other + META.itemsize]
    data.write_bytes(after)


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.slow
def test_a_commit_that_could_not_be_written_is_no_damage(filled: Path, torn: bool) -> None:
    """The commit in use is whole, and a repair has nothing to do."""
    fail_commit(filled, lambda index: index.append(ROWS + np.uint64(1 << 40)), torn=torn)
    with simindex.open(filled) as index:
        assert len(index) == len(ROWS)
        assert index.check() == []
    report = simindex.repair(filled)
    assert (report.findings, report.steps, report.losses) == ((), (), ())
    with simindex.open(filled, "w") as index:
        index.append(ROWS[:5] + np.uint64(1 << 50))
    with simindex.open(filled) as index:
        assert len(index) == len(ROWS) + 5
        assert index.check() == []


@pytest.mark.slow
def test_a_lost_commit_is_not_taken_for_one_that_could_not_be_written(filled: Path) -> None:
    """Its last page is its own: so its number was made lower after it was written."""
    data = filled / "catalog" / "data.mdb"
    with simindex.open(filled, "w") as index:
        index.append(ROWS + np.uint64(1 << 40))
    raw = bytearray(data.read_bytes())
    at = 4096 * metas_of(raw)[-1].page
    record = np.frombuffer(raw, META, 1, at)[0].copy()
    record["commit"] -= 2
    raw[at : at + META.itemsize] = record.tobytes()
    data.write_bytes(raw)
    findings = simindex.repair(filled).findings
    assert [finding.severity for finding in findings] == ["error"]
