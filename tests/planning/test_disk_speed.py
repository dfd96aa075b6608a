"""The speed of a disk is told from what else slows reading down, and from memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simindex.planning import disk_speed
from simindex.planning.disk_speed import DiskSpeed, read_bytes_s


class Disk:
    """A clock that a fake disk moves on; each piece takes the next of some times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: list[float]) -> None:
        self.now = 0.0
        self._seconds: Iterator[float] = iter(seconds)
        self.pieces: list[tuple[int, int]] = []
        self.in_memory: set[int] = set()
        monkeypatch.setattr(disk_speed, "PIECE_BYTES", 1 << 20)
        monkeypatch.setattr(disk_speed, "PIECES", 8)
        monkeypatch.setattr(disk_speed, "bring_file_in", self.bring_in)
        monkeypatch.setattr(
            disk_speed, "in_memory", lambda number, start, length: start in self.in_memory
        )

    def clock(self) -> float:
        return self.now

    def bring_in(self, number: int, start: int, length: int) -> None:
        self.pieces.append((start, length))
        self.now += next(self._seconds)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(bytes(8 << 20))
    return path


def measured(disk: Disk, file: Path, rounds: int) -> float | None:
    found = DiskSpeed(file, disk.clock)
    for _ in range(rounds):
        found.read()
    return found.bytes_s()


def test_pieces_are_spread_over_the_file(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    disk = Disk(monkeypatch, [1.0] * 8)
    assert measured(disk, file, 1) == 1 << 20
    assert disk.pieces == [(at << 20, 1 << 20) for at in range(8)]


def test_a_disk_busy_for_a_while_is_measured_as_a_free_one(
    monkeypatch: pytest.MonkeyPatch, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One of two rounds reads a hundred times slower."""
    free = measured(Disk(monkeypatch, [0.001] * 16), file, 2)
    assert not caplog.records
    busy = measured(Disk(monkeypatch, [0.1] * 9 + [0.001] * 7), file, 2)
    assert busy == pytest.approx(free)
    assert "the disk was busy while it was measured" in caplog.text
    assert "simindex tune" in caplog.text


def test_what_is_in_memory_is_left_out(
    monkeypatch: pytest.MonkeyPatch, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(monkeypatch, [0.001] * 2)
    disk.in_memory = {at << 20 for at in range(6)}
    assert measured(disk, file, 1) == pytest.approx(1e3 * (1 << 20))
    assert [start >> 20 for start, _ in disk.pieces] == [6, 7]
    disk.in_memory = {at << 20 for at in range(8)}
    assert measured(disk, file, 2) is None
    assert "was not measured" in caplog.text


def test_a_short_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(disk_speed.LEAST_BYTES - 1))
    assert read_bytes_s(path) is None
    path.write_bytes(bytes(2 * disk_speed.LEAST_BYTES))
    speed = read_bytes_s(path)
    assert speed is None or speed > 1e5  # None on a file system in memory
