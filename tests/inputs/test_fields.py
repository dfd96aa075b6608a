from __future__ import annotations

from typing import Any

import pytest

from simindex.inputs.fields import MISSING, field_names, field_of


@pytest.mark.parametrize(("record", "name", "value"), [
    ({"a": 1}, "a", 1), ({"a": {"b": {"c": 2}}}, "a.b.c", 2), ({"a.b": 3, "a": {"b": 4}}, "a.b", 3),
    ({"a": {"b": None}}, "a.b", None), ({"a": {"": 5}}, "a.", 5),
])
def test_a_field_is_found_by_its_name(record: dict[str, Any], name: str, value: object) -> None:
    assert field_of(record, name) == value


@pytest.mark.parametrize(("record", "name"), [
    ({}, "a"), ({}, ""), ({"a": 1}, "a.b"), ({"a": [{"b": 1}]}, "a.b"), ({"a": "b"}, "a.b"),
    ({"a": {"b": 1}}, "a.c"), ({"a": {"b": 1}}, "b"), ({"a": 1}, "."),
])
def test_what_a_record_does_not_have_is_missing(record: dict[str, Any], name: str) -> None:
    assert field_of(record, name) is MISSING


def test_messages_name_inner_fields() -> None:
    record = {"id": 1, "doc": {"text": "a", "date": ""}}
    assert field_names(record) == "'id', 'doc.text', 'doc.date'"
    assert field_names({f"f{n}": n for n in range(9)}).endswith("'f5', ...")
    assert field_names({}) == "no fields"
