"""What follows from the rows is built anew where its file is not good."""

from __future__ import annotations

from pathlib import Path

import pytest
from repairable import Held, examine, fresh, segments

import simindex


@pytest.mark.parametrize("suffix", [".bphs", ".issl"])
@pytest.mark.parametrize("how", ["missing", "damaged", "cut", "swapped"])
def test_what_follows_from_the_rows_is_built_anew(
    held: Held, tmp_path: Path, suffix: str, how: str
) -> None:
    path = fresh(held, tmp_path / "index")
    file, other = segments(path, suffix)[:2]
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    elif how == "swapped":
        file.write_bytes(other.read_bytes())
    else:
        file.write_bytes(content[:4097] + b"?" + content[4098:] if how == "damaged" else b"")
    report = simindex.repair(path, apply=True)
    assert (report.losses, report.lost_rows) == ((), 0)
    assert examine(path) == held.live
