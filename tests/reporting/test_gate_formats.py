"""The formats of a gate's report."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_findings import OPENING, flagged, verdict

from simindex.errors import InvalidOption
from simindex.reporting.gate_formats import GATE_FORMATS, gate_format_of


@pytest.mark.parametrize(("path", "name"), [
    ("a.jsonl", "jsonl"), ("a.NDJSON", "jsonl"), ("a.sarif", "sarif"), ("a.sarif.json", "sarif"),
    ("a.html", "html"), ("a.htm", "html"), ("a.json", None), ("html", None),
])
def test_suffixes_tell_the_format(path: str, name: str | None) -> None:
    found = gate_format_of(path)
    assert (found and found.name) == name


@pytest.mark.parametrize("name", list(GATE_FORMATS))
def test_a_file_gets_its_name_once_it_is_complete(name: str, tmp_path: Path) -> None:
    path = tmp_path / "report"
    with pytest.raises(KeyError), GATE_FORMATS[name].to_file(path, "--report", OPENING) as writer:
        writer.add(flagged())
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with GATE_FORMATS[name].to_file(path, "--report", OPENING) as writer:
        writer.add(flagged("döc"))
        assert not path.exists()
        writer.end(verdict())
    assert "döc" in path.read_text(encoding="utf-8")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="--report"), GATE_FORMATS["html"].to_file(
        tmp_path / "none" / "a.html", "--report", OPENING
    ):
        pass
