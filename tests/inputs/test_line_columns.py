"""Lines of a file that come as columns are those that come one at a time, bad ones included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import InvalidInput
from simindex.inputs import json_lines, line_columns
from simindex.inputs.document import Intake
from simindex.inputs.document_columns import Documents, one_by_one
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, read_in_columns

GOOD = [
    b'{"id": "a", "text": "one two"}', b'{"text": "t\\u00e9\\n", "id": "b", "n": [1, {"x": null}]}',
    b'{"id": "c", "text": "\xe4\xba\x94"} \r', b'{"id": "d", "text": ""}', b'{"id":"e","text":"x"}',
    b'{"id": "a", "text": "again"}', b'{"id": 7, "text": "number"}', b'{"id": -5, "text": "x"}',
]
OTHERS = [
    b"", b"  ", b"{", b"[1]", b'{"text": "no id"}', b'{"id": 1.5, "text": "x"}',
    b'{"id": "f.jsonl:3", "text": "a name"}', b'{"id": "n", "text": "x", "v": NaN}',
    b'{"id": "s", "text": "x", "v": "\\ud800"}', b'{"id": "s", "text": "\\ud800"}',
    b'{"id": "u", "text": "\xff"}', b'{"id": "t", "text": 5}', b'{"id": "", "text": "x"}',
    b'{"id": "r", "text": 1, "text": "last"}', b'{"id": "r", "text": "first", "text": 1}',
    b'{"id": "\xc3\xa4", "text": "x"}', b'{"id": "l", "text": "' + b"long " * 30 + b'"}',
    b'{"i\\u0064": "esc", "text": "x"}', b'{"id": "z", "text": "x"} x', b"\xef\xbb\xbf{}",
    b'{"id": "deep", "text": "x", "v": ' + b"[" * 40 + b"]" * 40 + b"}",
    b'{"id": "big", "text": "x", "v": ' + b"9" * 40 + b"}",
]
LIMIT = 140


def both(path: Path, options: ReadOptions, **limits: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Documents, bad records and counts, one at a time and in columns; then the columns' items."""
    for reading in (read, read_in_columns):
        bad: list[str] = []
        intake = Intake(**{
            "max_errors": None, "report": lambda record, bad=bad: bad.append(str(record)), **limits
        })
        items, error = [], None
        try:
            items += reading([str(path)], options, intake)
        except InvalidInput as raised:
            error = str(raised)
        documents = [
            one if options.all_fields else one._replace(raw=None) for one in one_by_one(items)
        ]
        yield (
            documents, bad, error, intake.documents, intake.numbered, intake.bad_records,
            dict(intake.id_fields), intake.looked_for, intake.read_bytes,
        ), items


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines") / "f.jsonl"


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(GOOD) | st.sampled_from(GOOD) | st.sampled_from(OTHERS), max_size=14),
    st.booleans(), st.booleans(), st.sampled_from([None, "id", "a.b"]), st.sampled_from([1, 3, 64]),
    st.sampled_from([30, 200, 1 << 12]),
)
def test_lines_in_columns_are_those_one_at_a_time(
    place: Path, lines: list[bytes], ended: bool, whole: bool, field: str | None, least: int,
    step: int,
) -> None:
    """Whatever their order, and wherever blocks end."""
    place.write_bytes(b"\n".join(lines) + b"\n" * ended)
    options = ReadOptions(max_record_bytes=LIMIT, all_fields=whole, id_field=field)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_columns, "LEAST_LINES", least)
        patch.setattr(json_lines, "BUFFER_BYTES", step)
        patch.setattr(json_lines, "BLOCK_BYTES", 4 * step)
        (single, _), (some, _) = both(place, options)
        assert some == single
        (single, _), (some, _) = both(place, options, max_errors=1)
        # What was read before an error comes before it, in groups of another size.
        assert some[1:3] == single[1:3] and some[5] == single[5]


def test_nearly_all_lines_come_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    lines = [json.dumps({"id": f"d{number}", "text": f"text {number} ä"}) for number in range(9000)]
    lines[6000] = "{"
    path.write_text("\n".join(lines), encoding="utf-8")
    (single, _), (some, items) = both(path, ReadOptions(all_fields=True))
    assert some == single
    columns = [one for one in items if isinstance(one, Documents)]
    assert sum(map(len, columns)) > 5000 and len(columns) < 6
    part = columns[0][3:5]
    assert list(part) == [columns[0][3], columns[0][4]] and part.raw is not None
    assert list(part.without_raw()) == [one._replace(raw=None) for one in part]
    assert part.held_bytes > sum(len(line) for line in part.raw.listed())


def test_columns_hold_little_more_than_they_are(tmp_path: Path) -> None:
    """Where other fields, or lines that are not plain, are most of a block."""
    path = tmp_path / "f.jsonl"
    lines = [json.dumps({"id": f"d{number}", "o": "x" * 300, "text": "t"}) for number in range(900)]
    lines[600] = "x" * 500_000
    path.write_text("\n".join(lines))
    for whole in (False, True):
        (single, _), (some, items) = both(path, ReadOptions(all_fields=whole))
        assert some == single
        columns = [one for one in items if isinstance(one, Documents)]
        assert len(columns) > 1
        for one in columns:
            for part in (one.texts, one.raw):
                assert part is None or part.data.nbytes <= 2 * part.nbytes


def test_damage_of_a_compressed_file_comes_after_its_lines(tmp_path: Path) -> None:
    """In columns as one at a time, at the same line."""
    import gzip

    path = tmp_path / "f.jsonl.gz"
    lines = [json.dumps({"id": f"d{number}", "text": f"{number * 7919}"}) for number in range(9000)]
    path.write_bytes(gzip.compress("\n".join(lines).encode())[:-5000])
    (single, _), (some, items) = both(path, ReadOptions())
    assert some == single and len(some[1]) == 1 and "f.jsonl.gz:" in some[1][0]
    assert any(isinstance(one, Documents) for one in items)
