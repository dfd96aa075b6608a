"""Sections of the one file of rows of an index: where they are, and one byte of them changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SECTION = np.dtype(
    [("kind", "<u4"), ("item", "<u4"), ("offset", "<u8"), ("count", "<u8"), ("chunks", "<u8")]
)

def section(path: Path, kind: int) -> tuple[Path, int, int]:
    """A file of rows, and where one of its sections begins and ends."""
    (file,) = (path / "segments").glob("*.rows")
    raw = file.read_bytes()
    table = np.frombuffer(raw, SECTION, int.from_bytes(raw[28:32], "little"), 104)
    (entry,) = table[table["kind"] == kind]
    start = int(entry["offset"])
    return file, start, start + int(entry["item"]) * int(entry["count"])


def flip(file: Path, place: int) -> None:
    """Changes one byte of a file."""
    raw = bytearray(file.read_bytes())
    raw[place] ^= 0xFF
    file.write_bytes(raw)
