"""Files are linked, kept or copied, and what is no longer wanted goes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from backups import filled

from simindex.backup.files import Files
from simindex.errors import CorruptFile
from simindex.storage.files import disk


class NoLinks(disk.System):
    """A file system without hard links."""

    def link(self, path: Path, to: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(path))


@pytest.fixture
def segments(index_path: Path) -> Path:
    filled(index_path)
    return index_path / "segments"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_another_commit_takes_other_files(segments: Path, target: Path) -> None:
    first, *others = sorted(names(segments))
    files = Files(segments, None, target, verify=False)
    files.take([first, others[0]])
    assert names(target) == files.linked == {first, others[0]}
    files.take(others)
    assert names(target) == files.linked == set(others)


def test_a_missing_file_leaves_the_others(segments: Path, target: Path) -> None:
    files = Files(segments, None, target, verify=False)
    with pytest.raises(FileNotFoundError):
        files.take([*names(segments), "zzz"])
    assert names(target) == names(segments)


@pytest.mark.parametrize("system", [disk.System(), NoLinks()])
def test_nothing_is_taken_for_a_file_but_a_file(
    system: disk.System, segments: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link would be to whatever somebody has put there; the index does not open it either."""
    monkeypatch.setattr(disk, "system", system)
    (segments / "link").symlink_to(segments / min(names(segments)))
    files = Files(segments, None, target, verify=False)
    try:
        files.take(["link"])
    except OSError as error:
        assert error.errno == errno.ELOOP
    assert all(path.is_symlink() for path in target.iterdir())


@pytest.mark.slow
def test_copies_are_whole(segments: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "system", NoLinks())
    monkeypatch.setattr("simindex.backup.files.COPY_BYTES", 5000)
    files = Files(segments, None, target, verify=False)
    files.take(names(segments))
    assert names(target) == set()
    for path in segments.iterdir():
        path.rename(path.with_name("gone-" + path.name))
    files.copy(None)
    assert files.copied == names(target)
    for name in names(target):
        assert (target / name).read_bytes() == (segments / f"gone-{name}").read_bytes()
    assert files.bytes_copied == sum(path.stat().st_size for path in target.iterdir())


def test_a_damaged_file_is_not_copied(
    segments: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "system", NoLinks())
    path = next(segments.glob("*.rows"))
    data = bytearray(path.read_bytes())
    data[4100] ^= 1
    path.write_bytes(data)
    files = Files(segments, None, target, verify=False)
    files.take([path.name])
    with pytest.raises(CorruptFile, match=path.name):
        files.copy(None)
    assert names(target) == set()


def test_another_file_of_that_name_is_not_kept(
    segments: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Size, header and footer must be those of the index's file."""
    monkeypatch.setattr(disk, "system", NoLinks())
    older = tmp_path / "older"
    older.mkdir()
    for path in segments.iterdir():
        (older / path.name).write_bytes(path.read_bytes()[:-1])
    files = Files(segments, older, target, verify=False)
    files.take(names(segments))
    assert files.kept == set()
    files.copy(None)
    assert files.copied == names(segments)
