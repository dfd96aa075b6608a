"""A damaged header page is made again, if it is that of the file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from repairable import Held, examine, fresh, segments, write

import simindex


@pytest.mark.parametrize("catalog", [True, False], ids=["", "and no catalog"])
def test_a_header_that_is_damaged_costs_no_row(
    held: Held, tmp_path: Path, catalog: bool
) -> None:
    """The catalog, or a file beside the segment, tells what stood in it."""
    path = fresh(held, tmp_path / "index")
    file = segments(path)[0]
    file.write_bytes(os.urandom(4096) + file.read_bytes()[4096:])
    if not catalog:
        shutil.rmtree(path / "catalog")
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == (held.live if catalog else held.sealed)


def test_segment_of_another_index_is_none_though_its_header_is_gone(tmp_path: Path) -> None:
    """All that stands beside it tells what its header held."""
    mine, other = (write(tmp_path / name, keyed=False) for name in ("mine", "other"))
    file = segments(other.path)[0]
    for path in (file, *segments(other.path, ".bphs"), *segments(other.path, ".issl")):
        if path.name.startswith(file.name[:25]):
            (mine.path / "segments" / path.name).write_bytes(path.read_bytes())
    foreign = mine.path / "segments" / file.name
    foreign.write_bytes(bytes(4096) + foreign.read_bytes()[4096:])
    (mine.path / "catalog" / "data.mdb").unlink()
    simindex.repair(mine.path, apply=True)
    assert examine(mine.path) == mine.sealed
