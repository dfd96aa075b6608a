"""Arrays of numpy as fingerprints."""

from __future__ import annotations

import gzip
import io
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fingerprint_inputs import take_rows

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read_fingerprints
from simindex.records.batch import Batch

RNG = np.random.default_rng(5)


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("shape", [(0,), (1,), (70_000,), (3, 1), (40_000, 2), (5, 64), (0, 3)])
@pytest.mark.parametrize("squeezed", [False, True])
@pytest.mark.slow
def test_rows_come_as_they_stand_in_the_array(
    tmp_path: Path, shape: tuple[int, ...], squeezed: bool
) -> None:
    array = RNG.integers(0, 2**64, shape, np.uint64)
    data = saved(array)
    path = tmp_path / ("rows.npy.gz" if squeezed else "rows.npy")
    path.write_bytes(gzip.compress(data, 1) if squeezed else data)
    read = take_rows(path)
    assert read.bad == []
    assert read.values == (array[:, 0] if array.shape[1:] == (1,) else array).tolist()
    assert read.names[:2] == [f"{path}[{n}]" for n in range(len(array))][:2]


CODES = RNG.integers(0, 256, (30, 16), np.uint8)
WORDS = np.array([[int.from_bytes(row[:8]), int.from_bytes(row[8:])] for row in CODES], np.uint64)

OTHERS = [
    (WORDS.astype(">u8"), "rows", WORDS),
    (WORDS.view(np.int64), "rows", WORDS),
    (CODES, "codes", WORDS),
    (CODES[:, :12], "codes", np.c_[WORDS[:, 0], WORDS[:, 1] >> np.uint64(32) << np.uint64(32)]),
    (np.unpackbits(CODES, axis=1).astype(np.bool_), "bits", WORDS),
]


@pytest.mark.parametrize(("array", "named", "expected"), OTHERS)
def test_another_array_is_refused_with_what_makes_fingerprints_of_it(
    tmp_path: Path, array: Any, named: str, expected: Any
) -> None:
    """The advice is carried out; a call that begins with a dot is one of the array."""
    (tmp_path / "a.npy").write_bytes(saved(array))
    read = take_rows(tmp_path / "a.npy")
    assert read.parts == []
    (told,) = read.bad
    advice = told.rpartition(": ")[2] if "pad each" not in told else told.rpartition("zeros, ")[2]
    advice = advice.removeprefix("convert them with ")
    call = f"{named}{advice}" if advice.startswith(".") else advice
    made = eval(call, {"numpy": np, named: array})  # noqa: S307 - of the package
    assert (Batch(made).rows == expected).all()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (saved(np.zeros((3, 2), np.float32)), "an array of float32 and shape (3, 2), not uint64"),
        (saved(np.zeros((3, 2, 2), np.uint64)), "shape (3, 2, 2), not uint64 of shape (n,)"),
        (saved(np.zeros(3, object)), "an array of object"),
        (saved(np.asfortranarray(np.zeros((3, 2), np.uint64))), "Fortran order"),
        (saved(np.zeros((3, 0), np.uint64)), "fingerprints of 0 bits"),
        (saved(np.zeros((3, 65), np.uint64)), "fingerprints of 4160 bits"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "not an array of numpy"),
        (b"no array", "not an array of numpy"),
        (b"", "not an array of numpy"),
    ],
)  # fmt: skip
def test_what_is_no_array_of_fingerprints_is_one_bad_record(
    tmp_path: Path, content: bytes, told: str
) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    read = take_rows(tmp_path / "a.npy")
    assert read.parts == []
    assert len(read.bad) == 1 and re.search(re.escape(told), read.bad[0]), read.bad


@pytest.mark.parametrize("lost", [1, 8, 9, 24])
def test_rows_before_a_break_are_read(tmp_path: Path, lost: int) -> None:
    array = np.arange(10, dtype=np.uint64).reshape(5, 2)
    (tmp_path / "a.npy").write_bytes(saved(array)[:-lost])
    read = take_rows(tmp_path / "a.npy")
    whole = (80 - lost) // 16
    assert read.values == array[:whole].tolist()
    assert read.bad == [f"a.npy: truncated: {whole} of its 5 rows are there"]


def test_an_array_is_never_held_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1 << 19, 4), np.uint64))
    tracemalloc.start()
    try:
        parts = read_fingerprints([str(tmp_path / "a.npy")], ReadOptions(), Intake())
        assert sum(len(part.batch) for part in parts) == 1 << 19
        assert tracemalloc.get_traced_memory()[1] < 4 << 20  # of 16 MiB
    finally:
        tracemalloc.stop()
