"""Of a .zst, .xz or .bz2 the format was told by the first frame or stream alone. Where that held
some bytes only, as where files were joined, JSON lines were refused as a JSON document, and a table
was read without a look at how it is quoted.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".zst": zstandard.compress, ".xz": lzma.compress, ".bz2": bz2.compress,
}
LINES = b'{"id": "1", "text": "some words"}\n{"id": "2", "text": "other words"}\n'
ARRAY = b'[{"id": "1", "text": "some words"}, {"id": "2", "text": "other words"}]'
TABLE = b'id,text\n1,some words\n2,"other \\"words\\" now"\n'


def taken(path: Path, data: bytes) -> tuple[list[str], list[str]]:
    path.write_bytes(data)
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.reason))
    return [one.text for one in read([str(path)], ReadOptions(), intake)], bad


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("cuts", [(0,), (1,), (5,), (1, 2, 3, 40), tuple(range(40))])
@pytest.mark.parametrize(("name", "data"), [("a.json", LINES), ("a.json", ARRAY)])
def test_the_format_is_told_by_several_members(
    tmp_path: Path, name: str, data: bytes, cuts: tuple[int, ...], suffix: str
) -> None:
    edges = [0, *cuts, len(data)]
    made = b"".join(COMPRESS[suffix](data[start:end]) for start, end in pairwise(edges))
    assert taken(tmp_path / f"{name}{suffix}", made) == (["some words", "other words"], [])


@pytest.mark.parametrize("suffix", COMPRESS)
def test_how_a_table_is_quoted_is_told_by_several_members(tmp_path: Path, suffix: str) -> None:
    made = COMPRESS[suffix](TABLE[:5]) + COMPRESS[suffix](TABLE[5:])
    assert taken(tmp_path / f"a.csv{suffix}", made) == (["some words", 'other "words" now'], [])


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("cut", [1, 10, 20])
def test_what_comes_before_damage_is_read(tmp_path: Path, suffix: str, cut: int) -> None:
    compress = COMPRESS[suffix]
    first, second = LINES[:34], LINES[34:]
    made = compress(first) + compress(second)[:cut]
    texts, bad = taken(tmp_path / f"a.jsonl{suffix}", made)
    assert texts == ["some words"] and len(bad) == 1
