"""Rows of a segment that no damage reaches come back.

Which rows a damaged chunk reaches is worked out from docs/reference/format.md.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repairable import segments

import simindex
from simindex import Batch, IndexOptions


@pytest.fixture(scope="module", params=["ids", "keys", "wide"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One segment of several chunks."""
    bits = 192 if request.param == "wide" else 64
    path = tmp_path_factory.mktemp("large") / "index"
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**64, (20_000, bits // 64), dtype=np.uint64)
    names = [f"page {i} {'x' * (i % 9)}" for i in range(len(words))]
    keyed = request.param == "keys"
    options = IndexOptions(
        bits=bits, keys=keyed, batch_rows=1 << 16, structures=("psm",), recipe=None
    )
    with simindex.open(path, "c", options=options) as index:
        index.append(Batch(words, keys=names) if keyed else Batch(words))
    return path


SECTIONS = np.dtype(
    [("kind", "<u4"), ("item", "<u4"), ("offset", "<u8"), ("count", "<u8"), ("chunks", "<u8")]
)


def reached(file: bytes, at: int) -> set[int]:
    """Numbers of the rows whose chunks the byte at a place of a `.rows` file stands in."""
    table = np.frombuffer(file, SECTIONS, int.from_bytes(file[28:32], "little"), 104)
    rows = int.from_bytes(file[72:80], "little")
    sections = {int(entry["kind"]): entry for entry in table}
    ends = None
    if 3 in sections:
        ends = np.frombuffer(file, "<i8", rows + 1, int(sections[3]["offset"]))
    for kind, entry in sections.items():
        start, size = int(entry["offset"]), int(entry["item"]) * int(entry["count"])
        if not start <= at < start + size or kind == 5:
            continue
        low = (at - start) // 65536 * 65536
        high = min(size, low + 65536)
        found = set()
        for row in range(rows):
            if kind == 4:
                assert ends is not None
                first, last = int(ends[row]), int(ends[row + 1])
            elif kind == 3:
                first, last = 8 * row, 8 * row + 16
            else:
                first, last = int(entry["item"]) * row, int(entry["item"]) * (row + 1)
            if first < high and last > low and first < last:
                found.add(row)
        return found
    return set()


@pytest.mark.slow
@settings(max_examples=8)
@given(share=st.floats(0.0045, 1), count=st.integers(1, 3), data=st.data())
def test_rows_that_no_damage_reaches_come_back(
    large: Path, tmp_path_factory: pytest.TempPathFactory, share: float, count: int, data: Any
) -> None:
    path = tmp_path_factory.mktemp("rows") / "index"
    shutil.copytree(large, path, ignore=shutil.ignore_patterns("lock.mdb"))
    with simindex.open(path) as index:
        before = [row for part in index.rows() for row in zip(
            map(tuple, part.rows.tolist()), part.keys or part.ids.tolist(), strict=True
        )]
    (file,) = segments(path)
    content = bytearray(file.read_bytes())
    lost: set[int] = set()
    for _ in range(count):
        at = 4096 + int(share * (len(content) - 4097))
        lost |= reached(bytes(content), at)
        content[at] ^= 1 << data.draw(st.integers(0, 7))
        share = share * 0.6 + 0.002
    file.write_bytes(content)
    report = simindex.repair(path, apply=True)
    assert report.lost_rows == len(lost)
    assert (report.losses != ()) == bool(lost)
    with simindex.open(path) as index:
        after = [row for part in index.rows() for row in zip(
            map(tuple, part.rows.tolist()), part.keys or part.ids.tolist(), strict=True
        )]
        assert [f for f in index.check() if f.severity == "error"] == []
    assert after == [row for number, row in enumerate(before) if number not in lost]
    if report.needed:
        assert report.kept is not None
        assert (Path(report.kept) / "segments" / file.name).read_bytes() == content
    shutil.rmtree(path)
