"""`data.mdb` had mode 0644 whatever the umask, so one member of a group only could write it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program

ROWS = np.arange(300, dtype=np.uint64)

TEXT = "the quick brown fox jumps over the lazy dog"


@pytest.fixture(params=[0o002, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What the system takes off the modes of new files."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def unlike(index: Path, umask: int) -> dict[str, str]:
    """Files and folders of an index whose modes are not those that the umask leaves."""
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [index, *index.rglob("*")]}
    return {
        str(path): oct(mode) for path, mode in modes.items()
        if mode != (0o777 if path.is_dir() else 0o666) & ~umask
    }


def names(index: Path) -> set[str]:
    """Which kinds of file there are."""
    return {path.suffix or path.name for path in index.rglob("*") if path.is_file()}


def test_the_umask_decides_the_modes_of_all_files(index_path: Path, umask: int) -> None:
    """From creating to compacting, and of what a reader makes."""
    options = simindex.IndexOptions(structures=("psm", "bphs:G=3,g=1,r=2", "issl"), batch_rows=100)
    with simindex.open(index_path, "n", options=options) as index:
        assert unlike(index_path, umask) == {}
        for start in range(0, 300, 100):
            index.append(ROWS[start : start + 100])
            index.commit()
        index.compact(full=True)
        index.compact(structures=["psm", "bphs:G=4,g=1"])
        index.append(ROWS[:7])
    assert names(index_path) >= {"FORMAT", "LOCK", ".mdb", ".rows", ".bphs"}
    assert unlike(index_path, umask) == {}
    (index_path / "catalog" / "lock.mdb").unlink()
    with simindex.open(index_path) as index:
        assert len(index) == 307
        assert unlike(index_path, umask) == {}
        assert index.check() == []


def test_the_umask_decides_the_modes_of_what_a_repair_makes(index_path: Path, umask: int) -> None:
    """A catalog, tables, LOCK and FORMAT."""
    with simindex.open(index_path, "n", options=simindex.IndexOptions(batch_rows=100)) as index:
        index.append(ROWS)
    (index_path / "catalog" / "data.mdb").unlink()
    (index_path / "LOCK").unlink()
    for table in (index_path / "segments").glob("*.bphs"):
        table.unlink()
    (index_path / "FORMAT").unlink()
    simindex.repair(index_path, apply=True)
    assert unlike(index_path, umask) == {}
    with simindex.open(index_path, "w") as index:
        assert len(index) == 300
        assert [Path(found.path).name for found in index.check()] == ["damaged-1"]


def test_the_umask_decides_the_modes_of_what_commands_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    """Also of an index that takes another one's place."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT)
    for call in (
        ["build", "i.sim", "a.txt"], ["build", "i.sim", "a.txt", "--overwrite"],
        ["build", "i.sim", "a.txt", "--append"], ["dedup", "a.txt", "--index", "j.sim"],
    ):
        done = CliRunner().invoke(program, call)
        assert done.exit_code == 0, done.stderr
    for name in ("i.sim", "j.sim"):
        assert unlike(Path(name), umask) == {}


MEMBERS, GROUP, NOT_HERE = (60_001, 60_002), 54_321, 77
"""Numbers that no account of the machine needs to have."""


def as_member(user: int, index: Path, mode: Any) -> int:
    """Appends rows as a user of the group, in a process of its own; returns its exit code."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            try:
                os.setgroups([GROUP])
                os.setgid(user)
                os.setuid(user)
                if not os.access(index.parent, os.W_OK | os.X_OK):
                    status = NOT_HERE
            except OSError:
                status = NOT_HERE
            if status != NOT_HERE:
                os.umask(0o002)
                with simindex.open(index, mode) as opened:
                    opened.append(ROWS)
                status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become two others")
def test_two_members_of_a_group_write_one_index() -> None:
    """In a folder of the group, of which new files are the group's, too."""
    first, second = MEMBERS
    with TemporaryDirectory() as name:  # the folders of pytest are for one user
        shared = Path(name)
        os.chown(shared, -1, GROUP)
        shared.chmod(0o2775)
        for user, mode in ((first, "n"), (second, "w"), (first, "w")):
            code = as_member(user, shared / "i.sim", mode)
            if code == NOT_HERE:
                pytest.skip("root may become nobody else here, or the folder is not for others")
            assert code == 0
        with simindex.open(shared / "i.sim") as index:
            assert len(index) == 900
            assert index.check() == []
