"""Which field of a record is its id, and how records without one are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simindex.inputs.document import ID_FIELDS

Take = Callable[..., Any]


def outcome(
    take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *records: dict[str, Any],
    **options: Any,
) -> tuple[list[str], list[str], Any]:
    """Keys of the documents of some records, what was bad, and the account."""
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"text": "a", **record}) + "\n" for record in records)
    Path("f.jsonl").write_text("".join(lines))
    documents, bad, intake = take("f.jsonl", **options)
    assert [document.numbered for document in documents] == [
        document.key == document.place for document in documents
    ]
    return [document.key for document in documents], bad, intake


@pytest.fixture
def keys_of(
    take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[str], list[str], Any]]:
    def call(*records: dict[str, Any], **options: Any) -> tuple[list[str], list[str], Any]:
        return outcome(take, tmp_path, monkeypatch, *records, **options)

    return call


@pytest.mark.parametrize("field", ID_FIELDS)
def test_the_usual_fields_are_looked_for(keys_of: Callable[..., Any], field: str) -> None:
    names, bad, intake = keys_of({field: "x"}, {field: 7}, {"other": 1})
    assert (names, bad) == (["x", "7", "f.jsonl:3"], [])
    assert (intake.id_fields, intake.numbered) == ({field: 2}, 1)


def test_the_first_record_with_one_decides_for_the_file(keys_of: Callable[..., Any]) -> None:
    names, _, intake = keys_of({}, {"url": "u", "uuid": "v"}, {"id": 3, "url": "w"}, {"uuid": "x"})
    assert names == ["f.jsonl:1", "v", "f.jsonl:3", "x"]
    assert (intake.id_fields, intake.numbered) == ({"uuid": 2}, 2)


def test_what_cannot_be_an_id_is_not_taken_for_one(keys_of: Callable[..., Any]) -> None:
    """But of the field `id`, and of one that was asked for."""
    names, bad, _ = keys_of({"_id": {"$oid": "5"}, "url": "u"}, {"key": True, "url": "v"})
    assert (names, bad) == (["u", "v"], [])
    names, bad, _ = keys_of({"id": [1], "url": "u"})
    assert (names, bad) == ([], ["f.jsonl:1: field 'id' is a list, not a string or a whole number"])
    names, bad, _ = keys_of({"_id": {"$oid": "5"}, "url": "u"}, id_field="_id")
    assert bad == ["f.jsonl:1: field '_id' is an object, not a string or a whole number"]


def test_only_the_field_that_was_asked_for_counts(keys_of: Callable[..., Any]) -> None:
    names, _, intake = keys_of({"id": 1, "name": "x"}, {"id": 2}, id_field="name")
    assert names == ["x", "f.jsonl:2"]
    assert (intake.id_fields, intake.numbered) == ({"name": 1}, 1)


def test_the_text_is_no_id(keys_of: Callable[..., Any]) -> None:
    assert keys_of({"url": "u"}, text_field="url")[0] == ["f.jsonl:1"]


def test_a_bad_record_is_not_counted_among_the_ids(keys_of: Callable[..., Any]) -> None:
    names, bad, intake = keys_of({"id": 1, "text": 2}, {"id": 3}, {"text": 4})
    assert (names, len(bad)) == (["3"], 2)
    assert (intake.id_fields, intake.numbered) == ({"id": 1}, 0)


def test_a_table_is_named_by_the_first_usual_column(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("uri,text,uuid\nu,a,v\n")
    assert [document.key for document in take("t.csv")[0]] == ["v"]
