"""Segments that are gone are told with their rows, and none is taken twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from repairable import Held, examine, fresh, named, segments, write

import simindex


@pytest.mark.parametrize("how", ["missing", "cut", "swapped"])
def test_a_lost_segment_is_told_with_its_rows(held: Held, tmp_path: Path, how: str) -> None:
    path = fresh(held, tmp_path / "index")
    file = segments(path)[1]
    if how == "missing":
        file.unlink()
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    else:
        file.write_bytes(segments(path)[0].read_bytes())
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 20
    keyed = next(iter(held.live))[1].__class__ is str
    assert examine(path) == held.live - named(range(1000, 1020), keyed=keyed)


def test_what_stands_beside_a_lost_segment_tells_of_its_rows(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    segments(path)[1].unlink()
    shutil.rmtree(path / "catalog")
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 20
    assert report.rows == 40


def test_a_merge_stands_in_for_an_input_that_is_damaged(unkeyed: Held, tmp_path: Path) -> None:
    """It was written, not installed, when the process ended."""
    path = fresh(unkeyed, tmp_path / "index")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != "LOCK"}
    with simindex.open(path, "w") as index:
        index.compact(full=True)
    merged = {p: p.read_bytes() for p in (path / "segments").iterdir() if p not in before}
    fresh(unkeyed, path)
    for file, content in merged.items():
        file.write_bytes(content)
    file = segments(unkeyed.path)[0]
    (path / "segments" / file.name).write_bytes(file.read_bytes()[:-200])
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == unkeyed.live


def test_copy_of_a_segment_under_another_name_is_no_second_one(tmp_path: Path) -> None:
    held = write(tmp_path / "index", keyed=False)
    file = segments(held.path)[0]
    (file.parent / f"{file.name[:17]}00000000.rows").write_bytes(file.read_bytes())
    (held.path / "catalog" / "data.mdb").unlink()
    simindex.repair(held.path, apply=True)
    assert examine(held.path) == held.sealed
