"""Damage to an index's files: what tests do to them, and how each bit of one is reached."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simindex.storage.files.envelope import CHUNK_BYTES, open_envelope

Damage = Callable[[Path], None]


def files(index: Path, suffix: str) -> list[Path]:
    """The segment files of a kind, by name."""
    return sorted(path for path in (index / "segments").iterdir() if path.suffix == suffix)


def flip_bit(place: Callable[[int], int]) -> Damage:
    """Inverts a bit of the byte that `place` names for a file of so many bytes."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[place(len(data))] ^= 4
        path.write_bytes(data)

    return damage


def cut(path: Path) -> None:
    """Takes the last 100 bytes away."""
    path.write_bytes(path.read_bytes()[:-100])


def swap(path: Path) -> None:
    """Gives two files of the path's kind each other's content."""
    one, other = files(path.parents[1], path.suffix)
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def replace_by_rows(path: Path) -> None:
    """Puts a file of rows in its place."""
    shutil.copy(files(path.parents[1], ".rows")[0], path)


FOUND_WHEN_OPENED: dict[str, Damage] = {
    "magic": flip_bit(lambda size: 0),
    "header": flip_bit(lambda size: 60),
    "footer": flip_bit(lambda size: size - 30),
    "checksums": flip_bit(lambda size: size - 70),
    "cut": cut,
    "empty": lambda path: os.truncate(path, 0),
    "missing": Path.unlink,
    "swapped": swap,
    "rows": replace_by_rows,
    "link": lambda path: path.symlink_to(path.rename(path.parents[2] / "elsewhere")),
}
"""What the file of a structure is refused for, whatever is asked."""


@contextmanager
def flipped(path: Path, offset: int, bit: int = 0) -> Iterator[None]:
    """The file with one bit inverted, in place, as a disk would do it."""
    fd = os.open(path, os.O_RDWR)
    try:
        (byte,) = os.pread(fd, 1, offset)
        os.pwrite(fd, bytes([byte ^ 1 << bit]), offset)
        try:
            yield
        finally:
            os.pwrite(fd, bytes([byte]), offset)
    finally:
        os.close(fd)


def sections(path: Path) -> list[tuple[int, int, int]]:
    """(kind, offset, bytes) of each section of a whole file that is not empty."""
    table = open_envelope(path)._table
    return [
        (int(entry["kind"]), int(entry["offset"]), int(entry["itemsize"]) * int(entry["count"]))
        for entry in table if int(entry["count"])
    ]


def chunks(path: Path) -> Iterator[tuple[int, int, int]]:
    """(kind of section, offset, bytes) of each checksum chunk of a whole file."""
    for kind, offset, size in sections(path):
        for start in range(0, size, CHUNK_BYTES):
            yield kind, offset + start, min(CHUNK_BYTES, size - start)
