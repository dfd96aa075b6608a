from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simindex.inputs.document import BadRecord, Document, Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

Outcome = tuple[list[Document], list[str], Intake]


@pytest.fixture
def take() -> Callable[..., Outcome]:
    """Read inputs to the end: documents, what was reported (paths as file names), the account."""

    def reading(*inputs: Path | str, max_errors: int | None = None, **options: Any) -> Outcome:
        bad: list[str] = []

        def report(record: BadRecord) -> None:
            named = replace(record, path=Path(record.path).name)
            bad.append(str(named))

        intake = Intake(max_errors=max_errors, report=report)
        documents = list(read([str(path) for path in inputs], ReadOptions(**options), intake))
        return documents, bad, intake

    return reading


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a temporary folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder `tree` of texts."""
    root = tmp_path / "tree"
    for name in ["b.txt", "a.md", "sub/c.txt", "sub/deep/d.txt", "Sub.txt", ".hidden", "z/e.rst"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}")
    return root
