"""The charts of speed follow the tables of the page of performance."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def charts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("charts", ROOT / "tools/charts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_the_page_says(charts: ModuleType) -> None:
    """`python tools/charts.py` draws them anew."""
    for name, drawn in charts.charts().items():
        assert (ROOT / "docs" / "plots" / name).read_text(encoding="utf-8") == drawn


def test_a_rate_is_of_the_run_that_is_meant(charts: ModuleType) -> None:
    row = "| online-exact | {} | 10 M | {} queries/s | 1 - 2 | 3 |"
    measured = (("peer", "52 k"), ("a", "6.38 M"), ("peer", "89"))
    page = "\n".join(row.format(*one) for one in measured)
    assert charts.rate(page, "online-exact", "peer", "10 M") == 52_000
    assert charts.rate(page, "online-exact", "a", "10 M") == 6_380_000
    assert charts.rate(page, "online-exact", "peer", "10 M", after="a") == 89
    with pytest.raises(SystemExit, match="has no row of"):
        charts.rate(page, "online-exact", "a", "1 M")
