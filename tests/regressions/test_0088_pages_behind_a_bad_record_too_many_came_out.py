"""A page waits for its text, and what is behind it waits, too. Where a bad record among these was
one too many, the others still came out before its error, and a later bad record was named.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simindex.errors import InvalidInput
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

pytest.importorskip("resiliparse")

PAGE = "<html><body><p>{}</p></body></html>"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_nothing_comes_behind_the_record_that_ends_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("SIMINDEX_THREADS", threads)
    sizes = {"a": 10, "b": 70_000, "c": 30_000, "d": 70_000, "e": 30_000}
    for name, words in sizes.items():
        (tmp_path / f"{name}.html").write_text(PAGE.format("some words " * words))
    got = []
    with pytest.raises(InvalidInput, match=r"b\.html: longer than 500000 bytes"):
        for document in read([str(tmp_path)], ReadOptions(max_record_bytes=500_000), Intake()):
            got.append(Path(document.path).stem)
    assert got == ["a"]
