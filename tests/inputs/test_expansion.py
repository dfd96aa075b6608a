"""Rows that expand without end are refused, as bytes of compressed files are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from simindex.inputs import expansion
from simindex.inputs.expansion import Expansion
from simindex.inputs.streams import Unreadable

Take = Callable[..., Any]


def test_a_file_may_expand_as_far_as_one_that_is_compressed() -> None:
    small, large = Expansion(10), Expansion(1 << 30)
    small.add(expansion.BOMB_BYTES)
    large.add(expansion.MAX_EXPANSION << 30)
    for one in (small, large):
        with pytest.raises(Unreadable, match="expand more than 1,000 times"):
            one.add(1)


TEXT = pa.array(["text " * 2000])


@pytest.mark.parametrize("column", [
    pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], pa.int32()), TEXT),
    pa.DictionaryArray.from_arrays(pa.array([0] * 9000, pa.int8()), TEXT),
])
def test_a_text_that_is_repeated_without_end_ends(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, column: pa.Array
) -> None:
    monkeypatch.setattr(expansion, "BOMB_BYTES", 1 << 25)
    monkeypatch.setattr(expansion, "MAX_EXPANSION", 100)
    path = tmp_path / "a.arrow"
    table = pa.table({"text": column})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    documents, bad, _ = take(path)
    assert 0 < len(documents) < 4000
    assert len(bad) == 1 and bad[0].startswith(f"a.arrow:{len(documents) + 1}: its rows expand")
