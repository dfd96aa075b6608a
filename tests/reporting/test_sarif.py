"""A gate's report as SARIF 2.1.0, against what the standard asks of each object."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gate_findings import HOSTILE, flagged, verdict, written
from sarif_log import faults

from simindex.reporting.sarif import EQUAL, NEAR, GateSarif, uri_of


def log(*some: Any, **others: Any) -> Any:
    return json.loads(written(GateSarif, some, verdict(len(some), **others)))


def test_a_log_is_as_the_standard_asks() -> None:
    made = log(flagged(), flagged(HOSTILE, "b c/\udcff.txt", None, distance=0, to=None))
    assert list(faults(made)) == []
    (run,) = made["runs"]
    assert [result["ruleId"] for result in run["results"]] == [NEAR, EQUAL]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [EQUAL, NEAR]
    assert run["invocations"][0]["exitCode"] == 1
    assert run["properties"]["matched"] == 2 and run["properties"]["documents"] == 100


def test_a_log_without_results_is_as_the_standard_asks() -> None:
    made = log()
    assert list(faults(made)) == []
    assert made["runs"][0]["results"] == []
    assert made["runs"][0]["invocations"][0]["exitCode"] == 0


def test_the_check_of_logs_sees_faults() -> None:
    """Else the tests above say nothing."""
    made = log(flagged())
    result = made["runs"][0]["results"][0]
    result["ruleIndex"] = 0
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = "a b"
    result["colour"] = "red"
    del result["message"]
    assert len(list(faults(made))) == 5


def test_a_result_says_where_the_document_is() -> None:
    (result,) = log(flagged("doc", "a.jsonl", 3))["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a.jsonl"}, "region": {"startLine": 3},
    }
    assert location["logicalLocations"][0]["name"] == "doc"
    assert result["message"]["text"] == (
        "doc is a near-duplicate of known in known.sim (similarity 0.97 ± 0.01)."
    )
    assert result["relatedLocations"][0]["properties"] == {"id": "7", "key": "known"}


@pytest.mark.parametrize("line", [None, 0])
def test_what_has_no_line_has_no_region(line: int | None) -> None:
    """The rows of an array are numbered from 0, and lines from 1."""
    (result,) = log(flagged(line=line))["runs"][0]["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]


def test_hostile_names_make_no_link_and_no_control() -> None:
    (result,) = log(flagged(HOSTILE))["runs"][0]["results"]
    told = result["message"]["text"]
    assert told.isprintable()
    assert "\\[a\\](http://b)" in told


def test_long_names_are_cut_in_messages() -> None:
    (result,) = log(flagged("x" * 10_000_000))["runs"][0]["results"]
    assert len(json.dumps(result)) < 5000


def test_findings_keep_their_fingerprint() -> None:
    def fingerprint(*names: Any) -> Any:
        one, to = names
        (result,) = log(flagged(one, "x", 99, to=to))["runs"][0]["results"]
        return result["partialFingerprints"]["documentAndMatch/v1"]

    assert fingerprint("a", "b") == fingerprint("a", "b")
    assert len({fingerprint("a", "b"), fingerprint("ab", ""), fingerprint("b", "a")}) == 3


def test_bad_records_are_notifications() -> None:
    (note,) = log()["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "b<b>.jsonl:9: not JSON"
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "b%3Cb%3E.jsonl"


@pytest.mark.parametrize(("path", "uri"), [
    ("-", "stdin"),
    ("a b/é#1?.txt", "a%20b/%C3%A9%231%3F.txt"),
    ("/data/a.jsonl", "file:///data/a.jsonl"),
    ("c:d/e", "./c:d/e"),
    ("100%", "100%25"),
    ("\udcff", "%FF"),
    ("s3://bucket/a b.jsonl", "s3://bucket/a%20b.jsonl"),
])
def test_files_are_uris(path: str, uri: str) -> None:
    assert uri_of(path) == uri
