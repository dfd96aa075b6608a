"""What a lost catalog held beside the segments is told as lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from repairable import Held, examine, fresh

import simindex


@pytest.mark.parametrize("how", ["directory", "file", "empty", "one page", "garbage"])
def test_rows_of_segments_survive_the_loss_of_the_catalog(
    held: Held, tmp_path: Path, how: str
) -> None:
    """Deleted rows are back, and waiting ones gone: the report says so."""
    path = fresh(held, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    if how == "directory":
        shutil.rmtree(path / "catalog")
    elif how == "file":
        data.unlink()
    else:
        content = {"empty": b"", "one page": bytes(4096), "garbage": os.urandom(40_000)}[how]
        data.write_bytes(content)
    report = simindex.repair(path, apply=True)
    assert any("deletions" in loss for loss in report.losses)
    assert any("recipe" in loss for loss in report.losses)
    assert report.rows == len(held.sealed)
    if how not in ("directory", "file"):
        assert report.kept is not None
        assert (Path(report.kept) / "catalog" / "data.mdb").exists()
    assert examine(path) == held.sealed
    with simindex.open(path) as index:
        assert index.generation > held.generation - 2
