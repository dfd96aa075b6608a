"""The drawing of the folders in docs/explanation/architecture.md."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def architecture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tools/architecture.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_folders_and_imports_of_the_source(architecture: ModuleType) -> None:
    """`python tools/architecture.py --write` draws it anew."""
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    stale = "run `python tools/architecture.py --write`"
    assert architecture.page_with_drawing(page) == page, stale
    assert page.count("-->") > 20


def test_an_arrow_that_longer_ways_stand_for_is_left_out(architecture: ModuleType) -> None:
    below = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert architecture.reduced(below) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_a_stale_page_is_seen(architecture: ModuleType) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    stale = page.replace("planning --> methods", "planning --> query")
    assert stale != page and architecture.page_with_drawing(stale) != stale
