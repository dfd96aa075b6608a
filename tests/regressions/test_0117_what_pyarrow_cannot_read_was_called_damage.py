"""A Parquet file was called damaged where pyarrow has no decoder for the encoding that it wrote: a
column of categories in an encoding that makes texts of parts.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_the_message_says_that_it_is_not_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": pa.array(["some words", "other words"]).dictionary_encode()})
    parquet.write_table(table, path, use_dictionary=False, column_encoding={"text": encoding})
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(str(one)))
    found = [one.text for one in read([str(path)], ReadOptions(), intake)]
    if found:  # a later pyarrow
        assert (found, bad) == (["some words", "other words"], [])
        return
    assert len(bad) == 1
    assert bad[0].startswith(f"{path}:1: pyarrow cannot read it: Not yet implemented: ")
    assert bad[0].endswith("with other encodings, or its texts as strings")
