"""An index that is built in the place of another is durable there before the other is removed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex._kernels import _native
from simindex.cli.new_index import replacing
from simindex.storage.files import disk, durable, locks
from simindex.storage.files.descriptor import Descriptor
from simindex.writing.replacement import clear_up

Run = Callable[..., Any]
Spawn = Callable[..., subprocess.Popen[bytes]]


class Noted(disk.System):
    """Notes what happens to names, those within an index left out; `refused` calls fail."""

    def __init__(self, **refused: int) -> None:
        self.refused = refused
        self.calls: list[tuple[str, str]] = []

    def _note(self, call: str, name: str) -> None:
        self.calls.append((call, name))
        if call in self.refused:
            raise OSError(self.refused[call], os.strerror(self.refused[call]))

    def exchange(self, path: Path, other: Path) -> None:
        self._note("exchange", other.name)
        super().exchange(path, other)

    def rename(self, path: Path, to: Path) -> None:
        self._note("rename", to.name)
        super().rename(path, to)

    def sync_directory(self, path: Path) -> None:
        self._note("sync", path.name)
        super().sync_directory(path)

    def remove_directory(self, path: Path) -> None:
        if path.name not in ("catalog", "segments"):
            self._note("remove", path.name)
        super().remove_directory(path)


def make(path: Path, rows: int) -> None:
    with simindex.open(path, "c") as index:
        index.append(np.arange(rows, dtype=np.uint64))


def rows_of(path: Path) -> int:
    with simindex.open(path) as index:
        assert index.check() == []
        return len(index)


def replace(path: Path, rows: int, system: disk.System) -> str:
    """Builds an index in the place of another; `system` sees the end. Where it was built."""
    with pytest.MonkeyPatch.context() as patch, replacing(path) as place:
        make(place, rows)
        patch.setattr(disk, "system", system)
    return place.parent.name


def names(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.iterdir())


def test_old_index_goes_when_the_new_one_has_its_name_for_good(index_path: Path) -> None:
    make(index_path, 3)
    noted = Noted()
    beside, parent = replace(index_path, 5, noted), index_path.parent.name
    assert noted.calls == [
        ("exchange", index_path.name), ("sync", beside), ("sync", parent),
        ("remove", "new"), ("remove", beside),
    ]
    assert rows_of(index_path) == 5
    assert names(index_path) == [index_path.name]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.EPERM])
def test_two_renames_where_names_are_not_exchanged(index_path: Path, code: int) -> None:
    make(index_path, 3)
    noted = Noted(exchange=code)
    beside, parent = replace(index_path, 5, noted), index_path.parent.name
    assert noted.calls == [
        ("exchange", index_path.name),
        ("rename", "old"), ("sync", beside), ("sync", parent),
        ("rename", index_path.name), ("sync", parent), ("sync", beside),
        ("remove", "old"), ("remove", beside),
    ]
    assert rows_of(index_path) == 5
    assert names(index_path) == [index_path.name]


@pytest.mark.parametrize("refused", [
    {"exchange": errno.EIO}, {"sync": errno.EIO}, {"exchange": errno.EINVAL, "rename": errno.EIO},
])
def test_failed_replacement_leaves_the_old_index(
    index_path: Path, refused: dict[str, int]
) -> None:
    make(index_path, 3)
    with pytest.raises(OSError, match="Input/output"):
        replace(index_path, 5, Noted(**refused))
    assert rows_of(index_path) == 3
    clear_up(index_path)
    assert names(index_path) == [index_path.name]
    assert rows_of(index_path) == 3


def test_failed_second_rename_is_undone(index_path: Path) -> None:
    class Once(Noted):
        def rename(self, path: Path, to: Path) -> None:
            if path.name == "new":
                raise OSError(errno.EIO, "Input/output error")
            super().rename(path, to)

    make(index_path, 3)
    with pytest.raises(OSError, match="Input/output"):
        replace(index_path, 5, Once(exchange=errno.EINVAL))
    assert rows_of(index_path) == 3


def test_folder_of_a_killed_replacement_is_removed(
    index_path: Path, run: Run, spawn: Spawn
) -> None:
    """By the next build of the path, of any kind; a folder that a run holds stays."""
    documents = index_path.parent / "docs.jsonl"
    documents.write_text('{"id": "1", "text": "one text of some words"}\n')
    run("build", index_path.name, documents.name)
    for options in (["--overwrite"], ["--append"]):
        killed = _started(spawn, index_path)
        left = [name for name in names(index_path) if name.startswith(".pages.sim.")]
        assert len(left) == 1
        run("build", index_path.name, documents.name, *options, code=3)  # locked
        assert set(left) < set(names(index_path))
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=30)
        assert set(left) < set(names(index_path))
        run("build", index_path.name, documents.name, *options)
        assert names(index_path) == ["docs.jsonl", "pages.sim"]


def test_terminated_replacement_removes_its_folder(
    index_path: Path, run: Run, spawn: Spawn
) -> None:
    documents = index_path.parent / "docs.jsonl"
    documents.write_text('{"id": "1", "text": "one text of some words"}\n')
    run("build", index_path.name, documents.name)
    process = _started(spawn, index_path)
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 143
    assert complaint.startswith(b"simindex: interrupted: ")
    assert complaint.endswith(b"pages.sim is as it was\n")
    assert names(index_path) == ["docs.jsonl", "pages.sim"]


def _started(spawn: Spawn, path: Path) -> subprocess.Popen[bytes]:
    """A replacement that has its folder and waits for documents."""
    options = ("--max-errors", 1, "--weighting", "tf")  # which needs no learning first
    process = spawn("build", path.name, "-", "--overwrite", *options)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"oops\n")
    process.stdin.flush()
    assert b"not JSON" in process.stderr.readline()  # reading begins once all is ready
    return process


def test_kill_between_the_renames_is_finished(index_path: Path) -> None:
    beside = index_path.parent / ".pages.sim.0123abcd"
    beside.mkdir()
    make(beside / "old", 3)
    make(beside / "new", 5)
    held = locks.hold(beside)
    assert held is not None
    clear_up(index_path)
    assert names(index_path) == [beside.name]  # its run lives
    held.close()
    clear_up(index_path)
    assert names(index_path) == [index_path.name]
    assert rows_of(index_path) == 5


def test_what_nobody_replaced_is_left_alone(
    index_path: Path, tree: Callable[[Path], Any]
) -> None:
    """Other names, other contents, links to others' folders, and two indexes beside a third."""
    make(index_path, 3)
    folder = index_path.parent
    for name in (
        ".pages.sim.backup", ".pages.sim.0123ABCD", ".other.sim.0123abcd", "pages.sim.0123abcd",
    ):
        (folder / name / "new").mkdir(parents=True)
    for name in (".pages.sim.00000001", ".pages.sim.00000002/new", ".pages.sim.00000003/new"):
        (folder / name).mkdir(parents=True)
    (folder / ".pages.sim.00000001" / "notes").touch()
    (folder / ".pages.sim.00000002" / "new" / "notes").touch()
    (folder / ".pages.sim.00000003" / "old").touch()
    (folder / ".pages.sim.00000004").symlink_to(folder / ".other.sim.0123abcd")
    (folder / ".pages.sim.00000005").write_text("mine")
    (folder / ".pages.sim.00000006").mkdir()
    make(folder / ".pages.sim.00000006" / "old", 3)
    make(folder / ".pages.sim.00000006" / "new", 5)
    before = tree(folder)
    clear_up(index_path)
    assert tree(folder) == before


def test_the_old_index_stays_where_there_is_no_other(
    index_path: Path, tree: Callable[[Path], Any]
) -> None:
    """Somebody moved the new one away before what it replaced was removed."""
    (index_path.parent / ".pages.sim.00000001").mkdir()
    make(index_path.parent / ".pages.sim.00000001" / "old", 3)
    before = tree(index_path.parent)
    clear_up(index_path)
    assert tree(index_path.parent) == before


def test_empty_and_half_removed_folders_go(index_path: Path) -> None:
    make(index_path, 3)
    (index_path.parent / ".pages.sim.00000001").mkdir()
    (index_path.parent / ".pages.sim.00000002" / "new" / "segments").mkdir(parents=True)
    (index_path.parent / ".pages.sim.a_z90000").mkdir()
    clear_up(index_path)
    assert names(index_path) == [index_path.name]


def test_folder_that_another_run_took_for_a_dead_ones_is_made_again(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making it and holding it, it looks like one of a killed run."""
    real = locks.hold

    def hold(folder: Path) -> Descriptor | None:
        monkeypatch.setattr(locks, "hold", real)
        clear_up(index_path)
        assert not folder.exists()
        return real(folder)

    make(index_path, 3)
    monkeypatch.setattr(locks, "hold", hold)
    with replacing(index_path) as place:
        make(place, 5)
    assert rows_of(index_path) == 5
    assert names(index_path) == [index_path.name]


def test_interrupt_after_the_replacement_says_that_it_is_done(
    run: Run, index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = index_path.parent / "docs.jsonl"
    documents.write_text('{"id": "1", "text": "one text of some words"}\n')
    run("build", "pages.sim", "docs.jsonl")
    real = durable.exchange

    def exchange(path: Path, other: Path) -> bool:
        signal.raise_signal(signal.SIGINT)
        return real(path, other)

    monkeypatch.setattr(durable, "exchange", exchange)
    said = run("build", "pages.sim", "docs.jsonl", "--overwrite", code=130)
    assert "1 document of this run are committed in pages.sim" in said.stderr
    assert names(index_path) == ["docs.jsonl", "pages.sim"]


def test_index_of_a_newer_version_is_kept(
    run: Run, index_path: Path, tree: Callable[[Path], Any]
) -> None:
    """But one whose FORMAT looks so by its damage is replaced."""
    documents = index_path.parent / "docs.jsonl"
    documents.write_text('{"id": "1", "text": "one text of some words"}\n')
    run("build", "pages.sim", "docs.jsonl")
    file = index_path / "FORMAT"
    data = np.frombuffer(file.read_bytes(), np.uint8).copy()
    data[12] += 1  # the major version
    damaged = data.tobytes()
    data[-4:] = np.frombuffer(np.uint32(_native.crc32c(data[:-4])).tobytes(), np.uint8)
    file.write_bytes(data.tobytes())
    before = tree(index_path.parent)
    said = run("build", "pages.sim", "docs.jsonl", "--overwrite", code=3)
    assert "has format 2.0" in said.stderr
    assert "install a newer simindex; or remove pages.sim by hand" in said.stderr
    assert tree(index_path.parent) == before
    file.write_bytes(damaged)
    run("build", "pages.sim", "docs.jsonl", "--overwrite")
    assert rows_of(index_path) == 1
