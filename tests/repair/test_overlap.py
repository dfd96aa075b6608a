"""Rows that stand in a merged segment and in its inputs come back once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from repairable import Held, examine, fresh, rows_of

import simindex
from simindex.storage import segment_files


@pytest.mark.parametrize("named_inputs", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("catalog", ["kept", "lost", "before"])
def test_a_merged_segment_and_its_inputs_are_not_both_taken(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_inputs: bool,
    catalog: str,
) -> None:
    """Also where the merged one was written by a version that did not name its inputs."""
    path = fresh(unkeyed, tmp_path / "index")
    if not named_inputs:
        pack = segment_files.describe
        monkeypatch.setattr(
            segment_files, "describe", lambda options, inputs, **more: pack(options, (), **more)
        )
    inputs = {p: p.read_bytes() for p in (path / "segments").iterdir()}
    before = (path / "catalog" / "data.mdb").read_bytes()
    with simindex.open(path, "w") as index:
        index.compact(full=True)
        assert rows_of(index) == unkeyed.live
    for file, content in inputs.items():
        file.write_bytes(content)
    if catalog != "kept":
        shutil.rmtree(path / "catalog")
        (path / "catalog").mkdir()
    if catalog == "before":
        (path / "catalog" / "data.mdb").write_bytes(before)
    simindex.repair(path, apply=True)
    assert examine(path) == unkeyed.live
