"""Streams as files that are read at any place."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import pytest

from simindex.inputs import unpacked_files
from simindex.inputs.streams import Unreadable
from simindex.inputs.unpacked_files import at_any_place


class Pipe(io.BytesIO):
    def peek(self, size: int) -> bytes:
        return self.getvalue()[:size]

    def seekable(self) -> bool:
        return False

    def seek(self, *place: Any) -> int:
        raise io.UnsupportedOperation


def test_a_file_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"bytes")
    with (tmp_path / "a").open("rb") as file:
        file.read(2)
        with at_any_place(file, (b"by",)) as (placed, size):
            assert placed is file
            assert (placed.read(), size) == (b"bytes", 5)


def test_a_pipe_is_read_into_a_file_that_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacked_files.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(unpacked_files, "PIECE_BYTES", 2)
    with at_any_place(Pipe(b"bytes"), (b"by",)) as (placed, size):
        assert size == 5
        placed.seek(3)
        assert placed.read() == b"es"
        assert not list(tmp_path.iterdir())  # it has no name
    assert placed.closed


def test_a_folder_that_takes_no_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacked_files.tempfile, "tempdir", str(tmp_path / "none"))
    with (
        pytest.raises(Unreadable, match=r"temporary file in .*none: No such file") as caught,
        at_any_place(Pipe(b"bytes"), (b"by",)),
    ):
        pass
    assert "TMPDIR" in str(caught.value.remedy)


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(unpacked_files, "_temporary_file", Full)
    with (
        pytest.raises(Unreadable, match="No space left on device"),
        at_any_place(Pipe(b"bytes"), (b"by",)),
    ):
        pass


def test_what_begins_otherwise_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked_files, "_temporary_file", None)
    with at_any_place(Pipe(b"text" * 10_000), (b"by",)) as (placed, size):
        assert placed.read() == (b"text" * 10_000)[:size]
