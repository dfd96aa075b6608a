"""JSON lines: every record that is one becomes a document, every other is reported by line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import InvalidInput
from simindex.inputs import json_lines
from simindex.inputs.document import Document, Intake, Source
from simindex.inputs.json_lines import read_jsonl
from simindex.inputs.reading import read

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
GOOD = st.builds(
    lambda key, text, extra: (
        {"id": key, "text": text, "extra": extra} if key is not None else {"text": text}
    ),
    st.none() | st.integers(-(2**70), 2**70) | st.text("abc/é", min_size=1, max_size=5),
    TEXTS,
    st.recursive(st.none() | st.floats() | TEXTS, lambda inner: st.lists(inner, max_size=3)),
)
BAD = st.sampled_from(
    [
        b"{", b'"text"', b"[1]", b"{}", b'{"text": 3}', b'{"text": null}', b'{"text": ["a"]}',
        b'{"text": "a", "id": []}', b'{"text": "a", "id": 1.5}', b'{"text": "a", "id": true}',
        b'{"text": "\xff"}', b'{"text": "\\ud800"}', b'{"text": "a", "id": "\\udc00"}', b"\x00",
        b"nul", b'{"text": "a"} x', b"{'text': 'a'}", b'{"text": "\xed\xa0\x80"}',
    ]
)  # fmt: skip
BLANK = st.sampled_from([b"", b"  ", b"\t", b"\r"])


def documents_of(
    data: bytes, intake: Intake, limit: int = 1 << 20, *, all_fields: bool = False
) -> list[Document]:
    source = Source(
        path="f.jsonl", name="f.jsonl", intake=intake, limit=limit, all_fields=all_fields
    )
    return list(read_jsonl(io.BytesIO(data), source))


@given(
    st.lists(st.tuples(st.just("good"), GOOD) | st.tuples(st.just("bad"), BAD | BLANK)),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.booleans(),
)
@pytest.mark.slow
def test_every_good_record_is_read_and_every_bad_one_counted_at_its_line(
    records: list[tuple[str, Any]], end: bytes, marked: bool, ended: bool
) -> None:
    lines, expected, bad_lines = [], [], []
    for number, (kind, record) in enumerate(records, 1):
        if kind == "good":
            lines.append(json.dumps(record, ensure_ascii=False).encode())
            key = record.get("id")
            expected.append((f"f.jsonl:{number}" if key is None else str(key), record["text"]))
        else:
            lines.append(record)
            if record.strip():
                bad_lines.append(number)
    data = (b"\xef\xbb\xbf" if marked else b"") + end.join(lines) + (end if ended else b"")
    reported: list[int | None] = []
    intake = Intake(max_errors=None, report=lambda record: reported.append(record.line))
    documents = documents_of(data, intake)
    assert [(document.key, document.text) for document in documents] == expected
    assert reported == bad_lines
    assert intake.bad_records == len(bad_lines)
    documents = documents_of(data, Intake(max_errors=None), all_fields=True)
    assert [(document.key, document.text) for document in documents] == expected
    raw = [document.raw for document in documents]
    assert all(line is not None and line in data for line in raw)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a"', "not JSON: Expecting ',' delimiter: column 13"),
        (b'["text"]', "not a JSON object"),
        (b'{"body": "a"}', "has no field 'text' (it has 'body')"),
        (b"{}", "has no field 'text' (it has no fields)"),
        (b'{"text": {}}', "field 'text' is an object, not a string"),
        (b'{"text": "a", "id": [1]}', "field 'id' is a list, not a string or a whole number"),
        (b'{"text": "caf\xe9"}', "not UTF-8: byte 0xe9 at column 14"),
        (b'{"text": "ab\\udc00"}', "field 'text' holds an unpaired surrogate at character 2"),
        (b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "not JSON this can read: a number has too"),
        (b'{"text": "a", "id": "' + b"k" * 65536 + b'"}', "field 'id' is longer than 65535 bytes"),
        (b'{"text":' * 100_000, "lists and objects are nested more than 500 deep"),
        (b"[" * 100_000 + b"]" * 100_000, "lists and objects are nested more than 500 deep"),
    ],
)
def test_a_bad_record_says_what_is_wrong(line: bytes, reason: str) -> None:
    reported: list[str] = []
    intake = Intake(max_errors=1, report=lambda record: reported.append(str(record)))
    documents = documents_of(b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n', intake)
    assert [document.text for document in documents] == ["before", "after"]
    assert reported[0].startswith(f"f.jsonl:2: {reason}")


def test_huge_floats_and_repeated_names_are_no_errors() -> None:
    intake = Intake()
    data = b'{"text": "a", "n": 1e999, "text": "b", "id": 18446744073709551616}\n'
    (document,) = documents_of(data, intake)
    assert (document.text, document.key) == ("b", "18446744073709551616")


def test_a_line_over_the_limit_is_one_bad_record_and_the_next_line_is_read() -> None:
    reported: list[str] = []
    intake = Intake(max_errors=1, report=lambda record: reported.append(str(record)))
    long = b'{"text": "' + b"x" * 3_000_000 + b'"}\n'
    fits = b'{"text": "' + b"x" * 87 + b'"}'
    assert len(fits) == 99
    documents = documents_of(long + fits + b"\n" + fits, intake, limit=99)
    assert [document.line for document in documents] == [2, 3]
    assert reported == ["f.jsonl:1: line longer than 99 bytes"]


def test_the_first_bad_record_stops_by_default(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"text": "a"}\nx\n{"text": "b"}\n')
    documents = read([str(path)])
    assert next(documents).text == "a"
    with pytest.raises(InvalidInput, match=r"bad\.jsonl:2: not JSON.*--max-errors") as caught:
        next(documents)
    assert caught.value.exit_code == 4
    assert caught.value.data["path"] == str(path)
    assert caught.value.data["line"] == 2


def test_one_bad_record_more_than_allowed_stops() -> None:
    with pytest.raises(InvalidInput, match=r"f\.jsonl:3"):
        documents_of(b"x\ny\nz\n", Intake(max_errors=2))
    assert documents_of(b"x\ny\nz\n", Intake(max_errors=3)) == []


def test_records_are_read_one_at_a_time() -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            line = b'{"text": "again"}\n'
            buffer[: len(line)] = line
            return len(line)

    documents = read_jsonl(
        io.BufferedReader(Endless(), 64), Source(path="-", name="-", intake=Intake(), limit=100)
    )
    assert [next(documents).line for _ in range(3)] == [1, 2, 3]


NUMBERS = st.integers(-(2**70), 2**70) | st.floats()
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@pytest.mark.skipif(json_lines.orjson() is None, reason="orjson is not installed")
@given(
    st.lists(
        BAD | st.dictionaries(st.sampled_from(["id", "text", "doc", "n"]), VALUES).map(
            lambda record: json.dumps(record).encode()
        ),
        max_size=6,
    ),
    st.sampled_from([None, "n", "doc.id"]),
)
@pytest.mark.slow
def test_the_fast_reader_finds_what_the_other_one_finds(
    given_lines: list[bytes], id_field: str | None
) -> None:
    """Large whole numbers, NaN and halves of surrogate pairs included."""
    found = []
    for reader in (json_lines.orjson, lambda: None):
        bad: list[str] = []
        intake = Intake(max_errors=None, report=lambda record, bad=bad: bad.append(str(record)))
        source = Source("f", "f", intake, 1 << 20, id_field=id_field)
        with mock.patch.object(json_lines, "orjson", reader):
            documents = list(read_jsonl(io.BytesIO(b"\n".join(given_lines)), source))
        found.append((documents, bad, intake.id_fields, intake.numbered))
    assert found[0] == found[1]


def test_a_record_nested_too_deep_is_bad_wherever_it_stands() -> None:
    """orjson reads it; a later look at its fields might not."""
    deep = b"[" * (json_lines.MAX_NESTING + 1) + b"]" * (json_lines.MAX_NESTING + 1)
    record = b'{"id": "a%d", "text": "words", "more": %s}'
    intake = Intake(max_errors=None)
    given_lines = [record % (number, deep if number == 2 else b"[]") for number in range(4)]
    found = documents_of(b"\n".join(given_lines), intake)
    assert [document.key for document in found] == ["a0", "a1", "a3"]
    assert intake.bad_records == 1
