"""Messages of Arrow streams: where they end is found, and what they would take is known before."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.inputs import arrow_messages
from simindex.inputs.arrow_messages import Messages
from simindex.inputs.streams import Unreadable

pa = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")

TEXTS = [f"document number {row} about things" for row in range(40)]
COLUMNS = {
    "text": pa.array(TEXTS), "dictionary": pa.array(TEXTS).dictionary_encode(),
    "lists": pa.array([[text] for text in TEXTS]), "views": pa.array(TEXTS).cast(pa.string_view()),
}


def streamed(columns: dict[str, Any] = COLUMNS, rows: int = 20, **options: Any) -> bytes:
    table = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def looked(data: bytes) -> tuple[io.BytesIO, Messages]:
    """A stream whose schema has been read."""
    file = io.BytesIO(data)
    pa.ipc.read_schema(file)
    return file, Messages(file, len(data))


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("legacy", [False, True])
def test_each_batch_is_announced_and_the_end_is_behind_the_stream(
    compression: str | None, legacy: bool
) -> None:
    data = streamed(compression=compression, use_legacy_format=legacy)
    file = io.BytesIO(data + b"behind")
    parts, messages = pa.ipc.open_stream(file), Messages(file, len(data) + 6)
    for _ in range(2):
        before = file.tell()
        assert messages.look() and file.tell() == before
        assert parts.read_next_batch().num_rows == 20
    assert not messages.look() and file.read() == b"behind"


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_batch_that_would_fill_the_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    texts = ["a " * 500_000] * 20
    data = streamed({"text": pa.array(texts)}, compression=compression)
    taken = len(texts) * len(texts[0])
    monkeypatch.setattr(arrow_messages, "FREE_BYTES", taken + 1000)
    assert looked(data)[1].look()
    monkeypatch.setattr(arrow_messages, "FREE_BYTES", taken - 1)
    with pytest.raises(Unreadable, match="expands more than 100 times") as refused:
        looked(data)[1].look()
    assert refused.value.remedy is not None and "smaller batches" in refused.value.remedy


def test_dictionaries_count_until_the_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone is small, and all are held."""
    columns = {f"text{n}": pa.array(["a " * 50_000 + str(n)]).dictionary_encode() for n in range(9)}
    data = streamed(columns, compression="zstd")
    monkeypatch.setattr(arrow_messages, "FREE_BYTES", 500_000)
    with pytest.raises(Unreadable, match="expands"):
        looked(data)[1].look()


@pytest.mark.parametrize("size", [-1, 1])
def test_a_stream_that_was_cut_has_no_end(size: int) -> None:
    data = streamed()
    messages = looked(data[:-8])[1] if size < 0 else looked(data[:-7])[1]
    with pytest.raises(Unreadable, match="truncated"):
        while messages.look():
            messages._opened.seek(0, io.SEEK_END)


def test_a_body_that_is_not_there_is_not_asked_for() -> None:
    data = streamed()
    with pytest.raises(Unreadable, match="truncated: a message has"):
        looked(data[: len(data) // 2])[1].look()


def test_what_is_neither_a_batch_nor_a_dictionary_is_refused() -> None:
    data = streamed()
    file = io.BytesIO(data)
    messages = Messages(file, len(data))  # the schema comes first
    with pytest.raises(Unreadable, match="neither a batch nor a dictionary"):
        messages.look()


@given(st.data())
def test_damage_is_an_error_or_passed_on(data: st.DataObject) -> None:
    """No other error, and no place beyond the stream."""
    held = bytearray(streamed(compression=data.draw(st.sampled_from([None, "zstd"]))))
    for _ in range(data.draw(st.integers(1, 4))):
        held[data.draw(st.integers(600, len(held) - 1))] = data.draw(st.integers(0, 255))
    try:
        file, messages = looked(bytes(held))
    except pa.ArrowException:
        return
    try:
        messages.look()
    except Unreadable:
        return
    assert 0 <= file.tell() <= len(held)
