"""The message about a compressed file that was cut named no byte, as that about a damaged one does.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from simindex.inputs.document import BadRecord, Intake
from simindex.inputs.reading import read


def zst(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return packed


@pytest.mark.parametrize(
    ("compression", "packed"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zst)],
)
@pytest.mark.parametrize("left", [40, 200])
def test_the_byte_is_named(
    tmp_path: Path, compression: str, packed: Callable[[bytes], bytes], left: int
) -> None:
    lines = [json.dumps({"text": f"{number * 7919 % 997} words"}) for number in range(500)]
    path = tmp_path / f"a.jsonl.{compression}"
    path.write_bytes(packed("\n".join(lines).encode())[:left])
    bad: list[BadRecord] = []
    list(read([str(path)], None, Intake(max_errors=None, report=bad.append)))
    assert bad[-1].reason.startswith("truncated: ")
    assert bad[-1].reason.endswith(f"(compressed byte {left})")
