"""Where the other columns are asked for, each row of an Arrow file with a union in one of them was
refused as too long.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

VALUES = [1, "one", 2, "two"]


@pytest.mark.parametrize("mode", ["sparse", "dense"])
@pytest.mark.parametrize("nested", [False, True])
def test_rows_with_a_union_are_read(tmp_path: Path, mode: str, nested: bool) -> None:
    codes = pa.array([0, 1, 0, 1], pa.int8())
    if mode == "sparse":
        union = pa.UnionArray.from_sparse(
            codes, [pa.array([1, 0, 2, 0]), pa.array(["", "one", "", "two"])]
        )
    else:
        union = pa.UnionArray.from_dense(
            codes, pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["one", "two"])]
        )
    column = pa.ListArray.from_arrays(list(range(5)), union) if nested else union
    path = tmp_path / "a.feather"
    table = pa.table({"id": list("abcd"), "text": ["some words"] * 4, "any": column})
    feather.write_feather(table.slice(1), path)
    found = list(read([str(path)], ReadOptions(all_fields=True), Intake()))
    assert [(one.key, one.text) for one in found] == [(key, "some words") for key in "bcd"]
    expected = [[one] if nested else one for one in VALUES[1:]]
    assert [one.row["any"] for one in found if one.row is not None] == expected
