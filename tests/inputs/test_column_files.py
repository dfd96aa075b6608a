"""Parquet and Arrow files: rows become documents, whatever damage or lie is in the file."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from simindex.errors import InvalidInput
from simindex.inputs import cells

Take = Callable[..., Any]

TABLE = pa.table({
    "id": ["a", "b", None, "d"],
    "text": ["one two", "drei vier", "五六", None],
    "doc": [{"body": "inner one", "n": 1}, {"body": "inner two", "n": 2}, None, {"body": "x"}],
    "number": [1, 2, 3, 4],
})


def written(path: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(table, path, **options)
    else:
        new = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, **options)
    return path


FORMS = ["a.parquet", "a.arrow", "a.feather", "a.arrows"]


@pytest.mark.parametrize("name", FORMS)
def test_rows_are_documents(tmp_path: Path, take: Take, name: str) -> None:
    documents, bad, intake = take(written(tmp_path / name))
    assert [(one.key, one.text, one.line) for one in documents] == [
        ("a", "one two", 1), ("b", "drei vier", 2), (documents[2].key, "五六", 3)
    ]
    assert documents[2].key.endswith(f"{name}:3") and intake.numbered == 1
    assert bad == [f"{name}:4: field 'text' is null, not a string"]
    assert documents[0].fields is None


@pytest.mark.parametrize("name", FORMS)
def test_other_columns_are_read_where_they_are_needed(
    tmp_path: Path, take: Take, name: str
) -> None:
    (first, *_), _, _ = take(written(tmp_path / name), all_fields=True)
    assert first.fields == TABLE.to_pylist()[0]


@given(st.lists(st.tuples(
    st.none() | st.text("aé:/.#0123456789", max_size=6) | st.just("x" * 5000) | st.just("f:2"),
    st.none() | st.text("aé", max_size=3) | st.just("b" * 200),
), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_plain_rows_are_read_as_others_are(
    tmp_path: Path, take: Take, rows: list[tuple[str | None, str | None]]
) -> None:
    """With all fields each row is read field by field."""
    table = pa.table({
        "id": pa.array([key for key, _ in rows], pa.string()),
        "text": pa.array([text for _, text in rows], pa.string()),
    })
    path = written(tmp_path / "f.parquet", table)
    found = []
    for all_fields in (False, True):
        documents, bad, intake = take(path, all_fields=all_fields, max_record_bytes=100)
        named = [(one.key, one.text, one.line, one.numbered) for one in documents]
        found.append((named, bad, intake.id_fields, intake.numbered, intake.looked_for))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", FORMS)
def test_inner_fields_have_dots(tmp_path: Path, take: Take, name: str) -> None:
    documents, bad, _ = take(
        written(tmp_path / name), text_field="doc.body", id_field="number"
    )
    assert [(one.key, one.text) for one in documents] == [
        ("1", "inner one"), ("2", "inner two"), ("4", "x")
    ]
    assert len(bad) == 1 and bad[0].startswith(f"{name}:3: ")


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("field", ["body", "doc.text", "text.inner", "doc.body.more"])
def test_a_missing_column_is_named_with_those_there_are(
    tmp_path: Path, take: Take, name: str, field: str
) -> None:
    documents, bad, _ = take(written(tmp_path / name), text_field=field)
    assert documents == []
    assert bad == [
        f"{name}: has no column '{field}' (it has 'id', 'text', 'doc', 'number'): name the column "
        "of the text with --text-field"
    ]


@pytest.mark.parametrize("name", FORMS)
def test_a_missing_column_ends_the_reading_once(tmp_path: Path, take: Take, name: str) -> None:
    path = written(tmp_path / name)
    with pytest.raises(InvalidInput, match=f"{name}: has no column 'body' ") as caught:
        take(path, text_field="body", max_errors=0)
    assert caught.value.data["bad_records"] == 1


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_texts_of_every_kind_of_column(tmp_path: Path, take: Take, kind: pa.DataType) -> None:
    table = pa.table({"text": pa.array(["one", "two"]).cast(kind)})
    documents, bad, _ = take(written(tmp_path / "a.arrow", table))
    assert ([one.text for one in documents], bad) == (["one", "two"], [])


def test_a_column_of_another_kind_is_no_text(tmp_path: Path, take: Take) -> None:
    documents, bad, _ = take(written(tmp_path / "a.parquet"), text_field="number")
    assert documents == [] and len(bad) == 4 and "is a number, not a string" in bad[0]


def test_long_texts_are_bad_records(tmp_path: Path, take: Take) -> None:
    documents, bad, _ = take(written(tmp_path / "a.parquet"), max_record_bytes=8)
    assert [one.text for one in documents] == ["one two", "五六"]
    assert bad[0] == "a.parquet:2: text longer than 8 characters"


def test_many_row_groups(tmp_path: Path, take: Take) -> None:
    table = pa.table({"id": range(5000), "text": [f"text {n}" for n in range(5000)]})
    for name, options in (("a.parquet", {"row_group_size": 700}),
                          ("a.arrow", {"max_chunksize": 3000})):
        documents, _, _ = take(written(tmp_path / name, table, **options))
        assert [one.text for one in documents] == table["text"].to_pylist()
        assert [one.line for one in documents] == list(range(1, 5001))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.slow
def test_damage_is_an_error_or_leaves_rows_as_they_are(
    tmp_path: Path, take: Take, name: str
) -> None:
    """Where the file has checksums; an Arrow file has none, and a byte of a text may be another."""
    path = tmp_path / name
    options = {"write_page_checksum": True} if name == "a.parquet" else {}
    data = written(path, **options).read_bytes()
    whole = {one.text for one in take(path)[0]}
    draw = random.Random(3)
    for _ in range(300):
        damaged = bytearray(data)
        if draw.random() < 0.3:
            del damaged[draw.randrange(4, len(data)):]
        else:
            damaged[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        documents, _, _ = take(path, format="parquet" if name == "a.parquet" else "arrow")
        if name == "a.parquet":
            assert {one.text for one in documents} <= whole


def test_a_text_that_is_not_utf_8_is_one_bad_record(tmp_path: Path, take: Take) -> None:
    texts = [f"text {row}".encode() for row in range(3000)]
    texts[1500] = b"\xe9" + texts[1500]
    for name in FORMS:
        table = pa.table({"text": pa.array(texts).view(pa.string())})
        documents, bad, _ = take(written(tmp_path / name, table))
        assert bad == [f"{name}:1501: column 'text' is not UTF-8"]
        assert [one.text for one in documents] == [
            text.decode() for row, text in enumerate(texts) if row != 1500
        ]


def test_a_date_that_python_cannot_tell_ends_no_file(tmp_path: Path, take: Take) -> None:
    days = pa.array([1, 400_000_000_000, 2], pa.timestamp("s"))
    path = written(tmp_path / "a.parquet", pa.table({"text": ["a", "b", "c"], "day": days}))
    documents, bad, _ = take(path, all_fields=True)
    assert ([one.text for one in documents], bad) == (["a", "b", "c"], [])


def test_a_column_that_is_there_twice_is_named(tmp_path: Path, take: Take) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    for name in FORMS:
        documents, bad, _ = take(written(tmp_path / name, table))
        assert documents == []
        assert bad == [f"{name}: has 2 columns 'text': give them different names"]


def test_the_end_of_a_stream_is_not_taken_for_granted(tmp_path: Path, take: Take) -> None:
    """A stream without its end was cut; after an end another stream may begin."""
    path = tmp_path / "a.arrows"
    ends = []
    with path.open("wb") as sink, pa.ipc.new_stream(sink, TABLE.schema) as writer:
        for start in range(3):
            writer.write_table(TABLE.slice(start, 1))
            ends.append(sink.tell())
    whole = path.read_bytes()
    path.write_bytes(whole[: ends[1]])
    documents, (told,), _ = take(path)
    assert [one.text for one in documents] == ["one two", "drei vier"]
    assert "a.arrows:3: truncated" in told
    path.write_bytes(whole + whole.replace(b"one two", b"two one"))
    documents, bad, _ = take(path)
    assert (len(documents), bad) == (6, [])
    assert documents[3].text == "two one"


def test_batches_that_a_table_of_contents_leaves_out_are_missed(tmp_path: Path, take: Take) -> None:
    """Every bit of the last kilobyte: all rows, or told that some were not read."""
    path = written(tmp_path / "a.arrow", TABLE.slice(0, 3), max_chunksize=1)
    data = path.read_bytes()
    whole = {"one two", "drei vier", "五六"}
    for place in range(len(data) - 1000, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 4
        path.write_bytes(bytes(damaged))
        documents, bad, _ = take(path)
        assert bad or {one.text for one in documents} == whole or len(documents) == 3


@pytest.mark.slow
def test_cells_are_decoded_some_at_a_time(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary of one large text for all rows: no more of it is held than a record may be."""
    text = "word " * 200_000
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array([text]))
    path = written(tmp_path / "a.parquet", pa.table({"text": column}))
    assert path.stat().st_size < 1 << 20
    held: list[int] = []
    monkeypatch.setattr(cells, "values_of", lambda some: held.append(len(some)) or [None])
    with suppress(Exception):
        take(path)
    assert held and max(held) * len(text) <= 4 * (64 << 20)


@pytest.mark.parametrize("mode", ["dense", "sparse"])
def test_a_union_is_no_text(tmp_path: Path, take: Take, mode: str) -> None:
    kinds, texts = pa.array([0, 0], pa.int8()), pa.array(["one", "two"])
    column = (
        pa.UnionArray.from_dense(kinds, pa.array([0, 1], pa.int32()), [texts])
        if mode == "dense" else pa.UnionArray.from_sparse(kinds, [texts])
    )
    documents, bad, _ = take(written(tmp_path / "a.arrow", pa.table({"text": column})))
    assert documents == []
    assert bad == ["a.arrow: column 'text' is a union, not text: cast it to string"]
