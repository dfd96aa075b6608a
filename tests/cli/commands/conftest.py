"""An index that commands look after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def keyed(run: Run, write_jsonl: Callable[..., Path]) -> str:
    """An index of ten documents with keys k0 ... k9, of five commits."""
    texts = [f"{n} some text that is number {n} of ten" for n in range(10)]
    path = write_jsonl("a.jsonl", [{"id": f"k{n}", "text": texts[n]} for n in range(10)])
    run("build", "i.sim", path, "-q", "--batch-rows", 8, "--commit-every", 2)
    return "i.sim"
