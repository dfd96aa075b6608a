"""One wrong bit of a .bz2 was hundreds of bad records: the bytes of a block were given before its
checksum was compared. And how many documents before damage of a .bz2 or .xz were read depended on
how many bytes the reader asked for.
"""

from __future__ import annotations

import bz2
import json
import lzma
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from simindex.inputs.document import Document, Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, read_in_columns

CHANCE = random.Random(7)
TEXTS = [
    " ".join(str(CHANCE.randrange(10**CHANCE.randrange(1, 9))) for _ in range(40))
    for _ in range(16_000)
]
LINES = b"".join(
    json.dumps({"id": f"k{number}", "text": text}).encode() + b"\n"
    for number, text in enumerate(TEXTS)
)


def taken(
    reader: Callable[..., Iterable[Any]], path: Path
) -> tuple[list[tuple[str, str]], list[str]]:
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.reason))
    found: list[tuple[str, str]] = []
    for some in reader([str(path)], ReadOptions(), intake):
        documents = [some] if isinstance(some, Document) else some
        found += [(one.key, one.text) for one in documents]
    return found, bad


@pytest.mark.parametrize("share", [0.3, 0.55, 0.99])
@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_damage_is_one_bad_record(tmp_path: Path, suffix: str, share: float) -> None:
    made = bytearray(bz2.compress(LINES) if suffix == ".bz2" else lzma.compress(LINES, preset=0))
    made[int(share * len(made))] ^= 4
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(made)
    found, bad = taken(read, path)
    if suffix == ".bz2":  # a .xz has one checksum
        assert found == [(f"k{at}", text) for at, text in enumerate(TEXTS[: len(found)])]
        assert len(bad) == 1 and bad[0].startswith("damaged compressed data: ")
    others, also_bad = taken(read_in_columns, path)
    assert abs(len(others) - len(found)) < 150
    assert bad[-1].startswith("damaged compressed data: ") and len(also_bad) <= len(bad) + 150


@pytest.mark.parametrize("cut", [1, 10, 100_000])
@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_what_comes_before_a_cut_is_read(tmp_path: Path, suffix: str, cut: int) -> None:
    made = bz2.compress(LINES) if suffix == ".bz2" else lzma.compress(LINES, preset=0)
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(made[:-cut])
    for reader in (read, read_in_columns):
        found, bad = taken(reader, path)
        assert found == [(f"k{at}", text) for at, text in enumerate(TEXTS[: len(found)])]
        assert len(found) >= (len(TEXTS) if cut == 1 else len(TEXTS) // 3)
        assert len(bad) == 1 and bad[0].startswith("truncated: ")
