"""Damaged headers of arrays of numpy ended in tracebacks, and in no row or some of them without a
word; what followed an array was passed over.
"""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from fingerprint_inputs import take_rows

ROWS = np.arange(5, dtype=np.uint64)


def saved(*arrays: object) -> bytes:
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


def array(shape: str, data: bytes = ROWS.tobytes(), version: int = 1) -> bytes:
    header = f"{{'descr': '<u8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (array("(" * 3000), "its header is damaged (TokenError)"),
        (array("(5,"), "not an array of numpy: "),
        (array("(" + "-" * 9000 + "5,)"), "not an array of numpy: "),
        (array("{{}: 5}"), "not an array of numpy: "), (array("5,\0"), "not an array of numpy: "),
        (array("(-5,)"), "its shape holds -5"), (array("(5, -1)"), "its shape holds -1"),
        (array("(True,)"), "its shape holds True"),
        (array("(0x" + "f" * 5000 + ",)"), "its shape holds a number of more than 63 bits"),
        (array("(" + "9" * 5000 + ",)"), "not an array of numpy: "),
        (array("(" + "1," * 3000 + ")"), "not uint64 of shape (n,) or (n, W)"),
        (array("()"), "save an array of one row, as numpy.atleast_1d makes of a number"),
    ],
)
def test_a_damaged_header_is_one_bad_record(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    read = take_rows(tmp_path / "a.npy")
    assert read.parts == [] and len(read.bad) == 1
    assert told in read.bad[0] and len(read.bad[0]) < 500


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (saved(ROWS), "another array follows the first, and was not read"),
        (bytes(24), "other bytes follow its array"), (b"x", "other bytes follow its array"),
    ],
)
def test_what_follows_an_array_is_told(tmp_path: Path, more: bytes, told: str) -> None:
    data = saved(ROWS) + more
    for name in ("a.npy", "a.npy.gz"):
        (tmp_path / name).write_bytes(gzip.compress(data) if name[-1] == "z" else data)
        read = take_rows(tmp_path / name)
        assert read.values == ROWS.tolist()
        assert len(read.bad) == 1 and told in read.bad[0]
    (tmp_path / "b.npy").write_bytes(array("(0,)", more))
    assert told in take_rows(tmp_path / "b.npy").bad[0]


def test_a_header_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    packed = gzip.compress(array("(5,)", version=2)[:8] + b"\xff\xff\xff\xff" + bytes(1 << 26), 1)
    (tmp_path / "a.npy.gz").write_bytes(packed)
    tracemalloc.start()
    try:
        read = take_rows(tmp_path / "a.npy.gz")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert read.parts == [] and "its header has 4,294,967,295 bytes" in read.bad[0]


def test_damage_of_a_header_raises_nothing_else(tmp_path: Path) -> None:
    draw = np.random.default_rng(9)
    whole = saved(ROWS)
    for _ in range(1000):
        damaged = bytearray(whole)
        for _ in range(int(draw.integers(1, 5))):
            damaged[int(draw.integers(6, 90))] = int(draw.integers(0, 256))
        (tmp_path / "a.npy").write_bytes(damaged)
        read = take_rows(tmp_path / "a.npy")
        assert read.bad or read.values == ROWS.tolist()
