"""Arrow files and streams: no byte of them ends the process, and none hides the rows behind it."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from simindex.inputs import arrow_messages

Take = Callable[..., Any]

TEXTS = [f"document number {row} about things" for row in range(40)]


def stored(column: pa.Array, *, file: bool, compression: str | None = None) -> bytes:
    table = pa.table({"text": column})
    sink = io.BytesIO()
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=20)
    return sink.getvalue()


def test_an_end_in_the_middle_hides_no_rows(tmp_path: Path, take: Take) -> None:
    """Four zeros where a message begins are the end of a stream, as old ones have it."""
    whole = stored(pa.array(TEXTS), file=False)
    path = tmp_path / "a.arrows"
    schema = whole.index(b"\xff\xff\xff\xff", 4)
    for length in (4, 8):
        path.write_bytes(whole[:schema] + bytes(length) + whole[schema + length :])
        documents, bad, _ = take(path)
        assert documents == [] and len(bad) == 1
        assert "damaged: other bytes follow its stream" in bad[0]
    path.write_bytes(whole + bytes(9000))
    documents, bad, _ = take(path)
    assert len(documents) == 40 and not bad


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("column", [
    pa.array(TEXTS), pa.array(TEXTS).dictionary_encode(), pa.array(TEXTS).cast(pa.string_view()),
    pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 41), pa.int32()), pa.array(TEXTS)),
], ids=str)
def test_damage_of_any_byte_is_no_crash(
    tmp_path: Path, take: Take, column: pa.Array, file: bool
) -> None:
    """A text that is still one may have changed, as nothing in the file would tell."""
    whole = stored(column, file=file)
    path = tmp_path / "a.arrow"
    dice = random.Random(len(whole))
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 1, 2])):
            at = dice.randrange(len(damaged) - 8)
            if dice.random() < 0.5:
                damaged[at] = dice.choice([0, 1, 127, 128, 255])
            else:
                at &= ~7
                value = dice.choice([-1, 1, 1 << 31, (1 << 63) - 1, 1 << 40, 1 << 28])
                damaged[at : at + 8] = value.to_bytes(8, "little", signed=True)
        path.write_bytes(damaged)
        documents, bad, _ = take(path)
        assert bad or len(documents) == len(TEXTS) or not documents


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("kind", ["String", "Categorical"])
def test_files_of_polars_are_read(
    tmp_path: Path, take: Take, compression: str, kind: str
) -> None:
    """They do not begin with a stream."""
    polars = pytest.importorskip("polars")
    parts = [
        polars.DataFrame({"id": [f"{start + row}" for row in range(20)], "text": polars.Series(
            TEXTS[start : start + 20], dtype=getattr(polars, kind)
        )}) for start in (0, 20)
    ]
    path = tmp_path / "a.arrow"
    polars.concat(parts, rechunk=False).write_ipc(path, compression=compression)
    documents, bad, _ = take(path)
    assert [(one.key, one.text) for one in documents] == [
        (f"{row}", text) for row, text in enumerate(TEXTS)
    ]
    assert not bad
    whole = path.read_bytes()
    dice = random.Random(len(whole))
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        documents, bad, _ = take(path)
        assert bad or len(documents) == len(TEXTS)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_batch_of_polars_that_would_fill_the_memory_is_refused(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    polars = pytest.importorskip("polars")
    monkeypatch.setattr(arrow_messages, "FREE_BYTES", 1 << 20)
    path = tmp_path / "a.arrow"
    texts = [f"{row} {'a ' * 50_000}" for row in range(60)]
    polars.DataFrame({"text": texts}).write_ipc(path, compression=compression)
    documents, bad, _ = take(path)
    assert documents == [] and "a batch expands more than 100 times" in bad[0]
