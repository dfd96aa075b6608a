from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simindex.inputs import BadRecord, Document, Intake, ReadOptions, read

Outcome = tuple[list[Document], list[str], Intake]


@pytest.fixture
def take() -> Callable[..., Outcome]:
    """Read inputs to the end: documents, what was reported (paths as file names), the account."""

    def reading(*inputs: Path | str, max_errors: int | None = None, **options: Any) -> Outcome:
        bad: list[str] = []

        def report(record: BadRecord) -> None:
            named = BadRecord(Path(record.path).name, record.line, record.reason)
            bad.append(str(named))

        intake = Intake(max_errors=max_errors, report=report)
        documents = list(read([str(path) for path in inputs], ReadOptions(**options), intake))
        return documents, bad, intake

    return reading
