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


def test_the_chart_of_sizes_is_of_the_table_with_its_columns(charts: ModuleType) -> None:
    headings = ["rows", *(heading for _, heading, _, _ in charts.SCALE)]
    table = [
        "| other | table |", "|---|---|", "| 1 | 2 |", "",
        f"| {' | '.join(headings)} |", "|---|", "| 1 M | 12.5 | 660 k (1 - 2) | 4.5 M | 3 M |",
        "| 3 M | 24 | 229 k | 1.7 M | 5.4 M |", "",
    ]
    found = charts.columns("\n".join(table))
    assert found["rows"] == ["1 M", "3 M"]
    assert [charts.quantity(cell) for cell in found["h = 6, queries/s"]] == [660_000, 229_000]
    assert "100,000 queries, h = 6" in charts.scale("\n".join(table))
    with pytest.raises(SystemExit, match="has no table with the columns"):
        charts.columns("\n".join(table[:4]))
