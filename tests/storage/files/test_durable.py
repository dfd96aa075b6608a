"""A new file has its name once it is durable, and leaves nothing where it fails."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from simindex._kernels import _native
from simindex.errors import StorageFull
from simindex.storage.files import disk, durable
from simindex.storage.files.durable import NewFile


def test_unpublished_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), NewFile(tmp_path) as file:
        file.write(b"abc", 0)
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call", ["posix_fallocate", "pwrite", "fsync", "open"], ids=lambda call: f"{call} fails"
)
@pytest.mark.parametrize("number", [28, 122, 27], ids=["ENOSPC", "EDQUOT", "EFBIG"])
def test_no_space_is_typed_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(number, "no space")

    monkeypatch.setattr(disk.os, call, fail)
    with pytest.raises(StorageFull, match="free some"), NewFile(tmp_path) as file:
        file.reserve(10)
        file.write(b"0123456789", 0)
        file.publish("x", lambda fd: None)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_failed_directory_sync_takes_the_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(durable, "sync_directory", fail)
    with pytest.raises(OSError, match="input"), NewFile(tmp_path) as file:
        file.publish("x", lambda fd: None)
    assert list(tmp_path.iterdir()) == []


def test_file_is_durable_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 1: written, verified, synced, renamed, and then the directory synced."""
    steps: list[str] = []
    real_fsync, real_rename = os.fsync, Path.rename
    monkeypatch.setattr(
        disk.os, "fsync",
        lambda fd: (steps.append("directory" if Path(f"/proc/self/fd/{fd}").resolve().is_dir()
                                 else "file"), real_fsync(fd))[1],
    )
    monkeypatch.setattr(
        Path, "rename", lambda self, to: (steps.append("rename"), real_rename(self, to))[1]
    )
    with NewFile(tmp_path) as file:
        file.write(b"x", 0)
        file.publish("x", lambda fd: steps.append("verify"))
    assert steps == ["verify", "file", "rename", "directory"]


def test_large_file_goes_to_the_disk_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole pieces, each once, none waited for before two further ones were sent."""
    piece = durable.WRITE_BACK_BYTES
    sent: list[tuple[int, bool]] = []
    real = _native.write_back

    def write_back(fd: int, offset: int, size: int, wait: bool) -> int:
        assert size == piece
        sent.append((offset // piece, wait))
        return real(fd, offset, size, wait)

    monkeypatch.setattr(disk._native, "write_back", write_back)
    data = np.random.default_rng(3).bytes(5 * piece + 1000)
    with NewFile(tmp_path) as file:
        file.write(data[100:], 100)  # begins and ends within a piece
        file.write(data[:100], 0)
        path = file.publish("large", lambda fd: None)
    assert path.read_bytes() == data
    assert [number for number, wait in sent if not wait] == [1, 2, 3, 4]
    for number in (1, 2):
        assert sent.index((number, True)) == sent.index((number + 2, False)) + 1


@pytest.mark.parametrize(
    ("code", "raised"),
    [(errno.EIO, OSError), (errno.ENOSPC, StorageFull), (errno.EINVAL, None)],
)
def test_error_of_writing_back_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, raised: type[Exception] | None
) -> None:
    """Where the file system cannot write back, fsync does it."""
    monkeypatch.setattr(disk._native, "write_back", lambda *arguments, **named: code)
    with NewFile(tmp_path) as file:
        if raised is None:
            file.write(bytes(durable.WRITE_BACK_BYTES), 0)
        else:
            with pytest.raises(raised):
                file.write(bytes(durable.WRITE_BACK_BYTES), 0)
    assert list(tmp_path.iterdir()) == []
