"""Parquet and Arrow files were refused from a pipe, and if they were compressed as a whole, where
all other formats were read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simindex.inputs.document import BadRecord, Intake
from simindex.inputs.reading import read

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

TEXTS = [f"the text of number {number}, which is one of many here" for number in range(50)]


def table(path: Path) -> bytes:
    from pyarrow import feather, parquet

    rows = pa.table({"id": [str(number) for number in range(len(TEXTS))], "text": TEXTS})
    if path.suffix == ".parquet":
        parquet.write_table(rows, path, row_group_size=20)
    elif path.suffix == ".feather":
        feather.write_feather(rows, path)
    else:
        with pa.ipc.new_stream(path, rows.schema) as stream:
            stream.write_table(rows, max_chunksize=20)
    return path.read_bytes()


def zst(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return packed


def taken(*inputs: Path) -> tuple[list[str], list[str]]:
    bad: list[BadRecord] = []
    intake = Intake(max_errors=None, report=bad.append)
    return [one.text for one in read(list(map(str, inputs)), None, intake)], list(map(str, bad))


KINDS = pytest.mark.parametrize("suffix", ["parquet", "feather", "arrows"])


@KINDS
@pytest.mark.parametrize(
    ("compression", "packed"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zst)],
)
def test_a_compressed_table_is_read(
    tmp_path: Path, suffix: str, compression: str, packed: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.{suffix}.{compression}"
    path.write_bytes(packed(table(tmp_path / f"b.{suffix}")))
    assert taken(path) == (TEXTS, [])


@KINDS
def test_a_cut_compressed_table_is_damaged(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}.gz"
    data = gzip.compress(table(tmp_path / f"b.{suffix}"))
    path.write_bytes(data[: len(data) // 2])
    documents, (bad,) = taken(path)
    assert not documents
    assert f"a.{suffix}.gz: truncated" in bad


@KINDS
def test_what_is_none_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}.gz"
    path.write_bytes(gzip.compress(b"id,text\n1,one two three\n"))
    documents, (bad,) = taken(path)
    assert not documents
    assert ": it looks like text" in bad


@KINDS
@pytest.mark.slow
def test_a_table_is_read_from_a_pipe(tmp_path: Path, suffix: str) -> None:
    data = table(tmp_path / f"b.{suffix}")
    done = subprocess.run(
        [sys.executable, "-m", "simindex", "fingerprint", "-"], input=data, capture_output=True,
        timeout=60, env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (0, len(TEXTS)), done.stderr
