"""A file of documents that each policy of `dedup --keep` ranks in another order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def three(tmp_path: Path) -> Path:
    rows = [("a", "same words here", 2, "2024-05-02"), ("b", "same words  here!", 9, "2024-05-01"),
            ("c", "other text altogether, really", 1, None)]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(
        json.dumps({"id": i, "text": t, "n": n, "date": d}) + "\n" for i, t, n, d in rows
    ))
    return path
