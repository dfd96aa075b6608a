"""A compressed Parquet or Arrow file was unpacked to a thousand times its size: 20 MB filled a disk
with 20 GB."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from simindex.inputs import unpacked_files
from simindex.inputs.document import BadRecord, Intake
from simindex.inputs.reading import read

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.mark.parametrize("magic", [b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"])
def test_what_is_unpacked_is_bounded(
    magic: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacked_files, "FREE_BYTES", 1 << 20)
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(magic + bytes(1 << 24)))
    bad: list[BadRecord] = []
    assert not list(read([str(path)], None, Intake(max_errors=None, report=bad.append)))
    (one,) = map(str, bad)
    assert "expands more than 100 times, beyond 1 MiB" in one
