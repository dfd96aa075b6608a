"""What takes the place of calls that only Linux, or only its usual C library, has.

`tests/faults/test_other_systems.py` does without all of them at once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from simindex.storage.files import disk, removal
from simindex.storage.files.descriptor import Descriptor

SIZE = (5 << 20) + 3


def refuse(number: int) -> Callable[..., None]:
    def refused(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    return refused


@pytest.fixture
def file(tmp_path: Path) -> Descriptor:
    (tmp_path / "file").write_bytes(b"kept")
    return Descriptor(tmp_path / "file", os.O_RDWR)


@pytest.mark.parametrize("number", [None, errno.EOPNOTSUPP, errno.EINVAL])
def test_space_is_taken_by_zeros_where_it_cannot_be_asked_for(
    file: Descriptor, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    if number is None:  # as on macOS
        monkeypatch.delattr(disk.os, "posix_fallocate")
    else:  # as musl says on some file systems
        monkeypatch.setattr(disk.os, "posix_fallocate", refuse(number))
    disk.system.allocate(file.fileno(), SIZE)
    status = os.fstat(file.fileno())
    assert status.st_size == SIZE
    assert 512 * status.st_blocks >= SIZE
    assert os.pread(file.fileno(), 8, 0) == b"kept\0\0\0\0"
    disk.system.allocate(file.fileno(), 3)
    assert os.fstat(file.fileno()).st_size == SIZE


def test_a_full_disk_is_not_taken_for_a_missing_call(
    file: Descriptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk.os, "posix_fallocate", refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        disk.system.allocate(file.fileno(), SIZE)
    assert os.fstat(file.fileno()).st_size == 4


@pytest.mark.parametrize("directory", [False, True])
def test_a_full_flush_takes_the_place_of_fsync(
    file: Descriptor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: bool
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(disk, "FULL_FLUSH", 51)
    monkeypatch.setattr(disk.fcntl, "fcntl", lambda fd, command: flushed.append(command))
    monkeypatch.setattr(disk.os, "fsync", refuse(errno.EIO))
    if directory:
        disk.system.sync_directory(tmp_path)
    else:
        disk.system.sync(file.fileno())
    assert flushed == [51]


def test_a_file_system_without_full_flushes_gets_an_fsync(
    file: Descriptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(disk, "FULL_FLUSH", 51)
    monkeypatch.setattr(disk.fcntl, "fcntl", refuse(errno.ENOTSUP))
    monkeypatch.setattr(disk.os, "fsync", synced.append)
    disk.system.sync(file.fileno())
    assert synced == [file.fileno()]
    monkeypatch.setattr(disk.fcntl, "fcntl", refuse(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):  # fsync would not say it again
        disk.system.sync(file.fileno())
    assert synced == [file.fileno()]


def test_removal_leaves_a_directory_that_macos_says_it_may_not_unlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(Path, "unlink", refuse(errno.EPERM))
    removal.remove(tmp_path)
    with pytest.raises(PermissionError):
        removal.remove(tmp_path / "file")


def test_a_file_is_closed_at_once_where_no_lease_says_who_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(bytes(3 * removal.FREE_BYTES))
    monkeypatch.delattr(removal.fcntl, "F_SETLEASE")
    monkeypatch.setattr(disk.os, "ftruncate", refuse(errno.EIO))
    file = removal.unlink_held(tmp_path / "file")
    assert file is not None
    removal.free(file)
    assert file.closed
