"""A file that gets its name once it is complete."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from simindex.errors import InvalidOption
from simindex.outputs.whole_file import whole_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_has_its_name_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    with whole_file(path, "-o") as file:
        file.write(b"all")
        assert not path.exists()
    assert (names(tmp_path), path.read_bytes()) == (["found.csv"], b"all")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "found.csv"
    path.write_bytes(b"old")
    with pytest.raises(error), whole_file(path, "-o") as file:
        file.write(b"new" * 100_000)
        raise error
    assert (names(tmp_path), path.read_bytes()) == (["found.csv"], b"old")


def test_a_file_keeps_its_mode_and_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_bytes(b"old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to("real.csv")
    with whole_file(tmp_path / "link.csv", "-o") as file:
        file.write(b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real.csv").stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "a.csv", "-o"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o640


def test_a_named_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole_file(pipe, "-o") as file:
        file.write(b"rows")
    reader.join()
    assert (read, names(tmp_path)) == ([b"rows"], ["pipe.csv"])


@pytest.mark.parametrize("name", ["no/where.csv", "folder", "file/a.csv", "x" * 300])
def test_what_cannot_be_written_is_named_with_the_option(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    said = r"-o .* cannot be written: "
    with pytest.raises(InvalidOption, match=said) as raised, whole_file(tmp_path / name, "-o"):
        pass
    assert raised.value.data["option"] == "o"
    assert names(tmp_path) == ["file", "folder"]


def test_a_full_disk_is_named() -> None:
    full = Path("/dev/full")
    with pytest.raises(OSError, match="No space left") as raised, whole_file(full, "-o") as file:
        file.write(b"rows" * 100_000)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/dev/full")
