from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simindex.cli.account import met, named_by
from simindex.inputs import Intake

Run = Callable[..., Any]

PAGE = "<html><body>The quick brown fox jumps over the lazy dog</body></html>"


def test_a_clean_reading_is_not_spoken_of() -> None:
    assert [*met(Intake()), *named_by(Intake(id_fields=Counter(id=3)), None)] == []


def test_all_that_a_reading_met_is_said_once() -> None:
    intake = Intake(passed_over=Counter({"binary file": 2, "fingerprints": 1}), markup=1,
                    bad_records=3)
    assert list(met(intake)) == [
        "skipped 2 files: binary file",
        "skipped 1 file: fingerprints (`build` and `query` read them from files that are "
        "named, as in FOLDER/*.npy)",
        "1 HTML file read with the markup, so pages with the same template may look alike: extract "
        "the texts first, as docs/how-to/from-html-to-text.md shows",
        "skipped 3 bad records",
    ]


def test_the_field_of_ids_is_said_unless_it_was_asked_for() -> None:
    intake = Intake(id_fields=Counter(url=2), numbered=1)
    assert "'url'" in next(named_by(intake, None))
    assert list(named_by(intake, "url")) == [
        "1 record without an id (looked for url), named by file and line; --id-field names the "
        "field"
    ]


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
    said = run(*command).stderr
    assert "1 HTML file read with the markup" in said
    assert "skipped 1 file: fingerprints" in said
    assert "markup" not in run(*command, "--quiet", *(["--overwrite"] * (command[0] == "build"))
                               ).stderr
