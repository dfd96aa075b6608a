from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simindex.cli.account import met, named_by
from simindex.inputs.document import Intake

Run = Callable[..., Any]

PAGE = "<html><body>The quick brown fox jumps over the lazy dog</body></html>"


def test_a_clean_reading_is_not_spoken_of() -> None:
    assert [*met(Intake()), *named_by(Intake(id_fields=Counter(id=3)), None)] == []


def test_all_that_a_reading_met_is_said_once() -> None:
    intake = Intake(
        markup=1, like_lines=2, bad_records=3, cut_pages=Counter({"WARC-Truncated": 1}),
        other_records=Counter({"request": 2}),
    )
    for path in ("a.bin", "b.bin", "c/d.bin", "e.bin"):
        intake.pass_over(path, "binary file")
    intake.pass_over("rows.npy", "fingerprints")
    assert list(met(intake)) == [
        "skipped 4 files: binary file (a.bin, b.bin, c/d.bin, ...)",
        "skipped 1 file: fingerprints (rows.npy); `build` and `query` read such files if you "
        "name them, as in FOLDER/*.npy",
        "1 HTML file read with the markup, so pages with the same template may look alike: leave "
        "out --html raw and --format text",
        "2 files look like JSON lines and were read as one text each: give --format jsonl",
        "skipped 2 records of archives, without a page or text: 2 request",
        "1 document of archives: only the start of the page was stored (1 WARC-Truncated)",
        "skipped 3 bad records",
    ]


def test_the_field_of_ids_is_said_unless_it_was_asked_for() -> None:
    intake = Intake(id_fields=Counter(url=2), numbered=1, looked_for={"url"})
    assert "'url'" in next(named_by(intake, None))
    assert list(named_by(intake, "url")) == [
        "1 record without an id (looked for url), named by file and line; --id-field NAME "
        "takes the id from a field"
    ]


def test_an_id_is_said_to_be_looked_for_where_it_was(run: Run, tmp_path: Path) -> None:
    """The first record of a file that has an id decides on the field of that file."""
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "one"}\n{"url": "u", "text": "two"}\n')
    assert "1 record without an id (looked for id), named" in run("dedup", "a.jsonl").stderr
    (tmp_path / "b.jsonl").write_text('{"text": "three"}\n')
    assert "(looked for id, key, _id" in run("dedup", "a.jsonl", "b.jsonl").stderr


def test_json_lines_without_a_suffix_are_told_from_a_text(run: Run, tmp_path: Path) -> None:
    (tmp_path / "part-aa").write_text('{"text": "one"}\n{"text": "two"}\n')
    assert "1 file looks like JSON lines and was read as one text" in run("dedup", "part-aa").stderr
    (tmp_path / "config").write_text('{"other": "one"}\n')
    assert "JSON lines" not in run("dedup", "config").stderr
    assert "kept 2 of 2 documents" in run("dedup", "part-aa", "--format", "jsonl").stderr


@pytest.mark.parametrize("command", [
    ("build", "i.sim", "site"), ("query", "pages.sim", "site"), ("dedup", "site"),
])
def test_every_reader_of_texts_says_what_it_met(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a.html").write_text(PAGE)
    np.save(tmp_path / "site/rows.npy", np.arange(3, dtype=np.uint64))
    (tmp_path / "a.txt").write_text("Pack my box with five dozen liquor jugs")
    run("build", "pages.sim", "a.txt")
    said = run(*command, "--html", "raw").stderr
    assert "1 HTML file read with the markup" in said
    assert "skipped 1 file: fingerprints" in said
    more = ["--html", "raw", "--quiet", *(["--overwrite"] * (command[0] == "build"))]
    assert "markup" not in run(*command, *more).stderr
