"""The page of the Python API, made from the docstrings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import simindex

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools/reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_public_name_is_in_one_group(reference: ModuleType) -> None:
    listed = [name for names in reference.GROUPS.values() for name in names]
    assert sorted(listed) == sorted(set(simindex.__all__) - {"__version__"})


def test_the_page_has_every_public_method_of_an_index(reference: ModuleType) -> None:
    page = reference.page()
    for name in vars(simindex.Index):
        if not name.startswith("_"):
            assert f"#### Index.{name}\n" in page, name


def test_sections_become_lists_and_paragraphs(reference: ModuleType) -> None:
    made = reference.markdown(
        "What it does.\n\nParameters\n----------\nh : int\n    From 0 to\n    ``b``.\nk\n\n"
        "Notes\n-----\nTakes 2**h steps.\n"
    )
    assert made == (
        "What it does.\n\n**Parameters**\n\n- `h` : int. From 0 to `b`.\n- `k`\n\n"
        "**Notes**\n\nTakes 2\\*\\*h steps.\n\n"
    )


def test_fields_are_listed_with_the_texts_below_them(reference: ModuleType) -> None:
    table = "".join(reference.fields(simindex.Skipped))
    assert "| `position` | int |  | Place among the given texts, from 0. |\n" in table


def test_a_signature_shows_keywords_and_defaults(reference: ModuleType) -> None:
    def call(self, a: int, *, b: str | None = None) -> bool:
        raise NotImplementedError

    shown = reference.signature("call", call)
    assert shown == "```text\ncall(a: int, *, b: str | None = None) -> bool\n```\n\n"
