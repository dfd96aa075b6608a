from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from simindex.cli.dedup.ranks import date

Run = Callable[..., Any]

NOON = datetime(2024, 2, 5, 12, tzinfo=UTC).timestamp()
MIDNIGHT = datetime(2024, 2, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("value", "seconds"), [
    ("2024-02-05T12:00:00Z", NOON), ("2024-02-05 13:00+01:00", NOON), ("20240205", MIDNIGHT),
    ("2024/02/05", MIDNIGHT), ("2024/02/05 12:00", NOON), (NOON, NOON), (NOON * 1000, NOON),
    (str(NOON), NOON), ("Mon, 05 Feb 2024 12:00:00 GMT", NOON), ("5 Feb 2024 14:00 +0200", NOON),
    ("Mon, 05 Feb 2024 12:00:00 -0000", NOON),
])
def test_dates_are_read_in_the_usual_forms(value: object, seconds: float) -> None:
    assert date(value) == seconds


@pytest.mark.parametrize("value", [
    "yesterday", "02/05/2024", "2024/13/05", "2024/02/051", "Mon, 35 Feb 2024 12:00:00 GMT",
    "Mon, 05 Feb 2024 12:00:00 tea", "Mon, 05 Feb 2024 99:00:00 GMT", "x" * 10_000, None, True, [],
    float("nan"), 10**400,
])
def test_what_is_no_date_is_none(value: object) -> None:
    assert date(value) is None


def test_a_date_that_nobody_can_read_is_named(run: Run, write_jsonl: Any) -> None:
    rows = [{"id": "a", "text": "same words", "date": "last Monday"},
            {"id": "b", "text": "same words", "date": "2024-02-05"},
            {"id": "c", "text": "same words"}]
    done = run("dedup", write_jsonl("d.jsonl", rows), "--keep", "newest")
    assert '"b"' in done.stdout
    assert "1 date of no known form, the first in d.jsonl:1: date is 'last Monday'" in done.stderr
    assert "1 document without a date in date" in done.stderr


def test_a_field_that_no_document_has_is_refused_with_those_there_are(
    run: Run, write_jsonl: Any
) -> None:
    file = write_jsonl("d.jsonl", [{"id": "a", "text": "some words"}])
    said = run("dedup", file, "--keep", "highest:size", code=4).stderr
    assert "name a field that all documents have (this one has 'id', 'text')" in said


def test_all_options_of_fields_lead_into_objects(run: Run, write_jsonl: Any) -> None:
    rows = [
        {"doc": {"text": "the same words", "id": f"d{n}"}, "meta": {"day": f"2024-05-0{n}", "n": n}}
        for n in (1, 3, 2)
    ]
    path = write_jsonl("a.jsonl", rows)
    named = ["--text-field", "doc.text", "--id-field", "doc.id"]
    for keep in (["--keep", "newest", "--date-field", "meta.day"], ["--keep", "highest:meta.n"]):
        done = run("dedup", path, *named, *keep, "--audit", "r.jsonl")
        assert [json.loads(line)["doc"]["id"] for line in done.stdout.splitlines()] == ["d3"]
    said = run("build", "i.sim", path, code=4).stderr
    assert "has no field 'text' (it has 'doc.text', 'doc.id', 'meta.day', 'meta.n')" in said
    run("build", "i.sim", path, *named)
    assert "d3" in run("query", "i.sim", "--text", "the same words").stdout


def test_a_date_field_that_no_document_has_is_refused(run: Any, write_jsonl: Any) -> None:
    """Mistyped, it would make all documents equally old, and drop the wrong ones."""
    rows = [{"id": str(day), "text": "the same words", "date": f"2024-01-0{day}"} for day in (1, 2)]
    given = write_jsonl("dated.jsonl", rows)
    told = run("dedup", given, "--keep", "newest", "--date-field", "dat", code=4)
    assert told.stdout == ""
    assert "has no field 'dat'" in told.stderr and "'date'" in told.stderr
    run("build", "dated.sim", given)
    refused = ("clusters", "dated.sim", given, "--keep", "newest", "--date-field", "dat")
    assert "has no field 'dat'" in run(*refused, code=4).stderr
