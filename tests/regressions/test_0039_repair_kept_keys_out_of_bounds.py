"""What fuzzing found: a repair counted rows whose keys lie nowhere as gone, and kept their file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fuzzing import envelopes

import simindex
from simindex import IndexOptions


def test_rows_whose_keys_lie_nowhere_are_left_out(index_path: Path) -> None:
    """Their checksums hold: somebody made them so."""
    keys = [f"key {number}" for number in range(10)]
    with simindex.open(index_path, "n", options=IndexOptions(keys="str")) as index:
        index.append(np.arange(10, dtype=np.uint64), keys=keys)
        index.compact(full=True)
    (file,) = (index_path / "segments").glob("*.rows")
    content = bytearray(file.read_bytes())
    place = content.index((5 * np.arange(11)).astype("<i8").tobytes())
    content[place + 24 : place + 32] = np.int64(1 << 40).tobytes()
    file.write_bytes(envelopes.repair(bytes(content)))

    report = simindex.repair(index_path, apply=True)
    assert (report.rows, report.lost_rows) == (8, 2)
    with simindex.open(index_path) as index:
        assert [f.severity for f in index.check()] == ["note"]
        assert len(index) == sum(len(batch) for batch in index.rows()) == 8
        assert sorted(str(match.key) for match in index.query(np.zeros(1, np.uint64), h=4)) == [
            key for number, key in enumerate(keys) if number not in (2, 3)
        ]
