"""Settings that cannot be read ended in errors of other packages, or named an option of a call that
the user had not made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex.errors import InvalidOption

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicateMiddleware, NearDuplicatePipeline


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("SIMINDEX_RECIPE", value) for value in (
            {"foo": 1}, '{"foo": 1}', "xx", "", "[1]", [1], 5, "null", "[]", {1: 2}, {"bits": 63},
            {"bits": "64"}, {"h": 65}, {"stemmer": "klingon"}, {"weighting": ["tf"]}, "[" * 100_000,
        )),
        *(("SIMINDEX_EXPIRE_S", value) for value in ("inf", float("inf"), "nan", -1, "x", [])),
        *(("SIMINDEX_COMMIT_S", value) for value in ("nan", -1, 10**400)),
        ("SIMINDEX_DISTANCE", float("inf")), ("SIMINDEX_DISTANCE", []),
        ("SIMINDEX_PATH", "a\0b"), ("SIMINDEX_PATH", 5),
        ("SIMINDEX_TEXT_FIELD", ["text"]), ("SIMINDEX_TEXT_FIELD", ""),
        ("SIMINDEX_KEY_FIELD", ""), ("SIMINDEX_KEY_FIELD", {}),
        ("SIMINDEX_HTML", []), ("SIMINDEX_ITEM_ACTION", []),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_a_wrong_setting_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    kind: Any = NearDuplicateMiddleware if setting.endswith("HTML") else NearDuplicatePipeline
    with pytest.raises(InvalidOption, match=setting) as caught:
        kind.from_crawler(get_crawler(None, {"SIMINDEX_PATH": "a.sim", setting: value}))
    assert caught.value.data["option"] == setting
    assert caught.value.remedy and len(str(caught.value)) < 1000
    assert list(tmp_path.iterdir()) == []


def test_an_index_without_times(tmp_path: Path) -> None:
    simindex.open(tmp_path / "a.sim", "n").close()
    crawler = get_crawler(
        None, {"SIMINDEX_PATH": str(tmp_path / "a.sim"), "SIMINDEX_EXPIRE_S": 5}
    )
    with pytest.raises(InvalidOption, match=r"SIMINDEX_EXPIRE_S.*does not store") as caught:
        NearDuplicatePipeline.from_crawler(crawler).open_spider()
    assert caught.value.data["option"] == "SIMINDEX_EXPIRE_S"
    simindex.open(tmp_path / "a.sim", "w").close()


def test_a_path_that_is_too_long() -> None:
    crawler = get_crawler(None, {"SIMINDEX_PATH": "x" * 300})
    with pytest.raises(InvalidOption, match="the setting SIMINDEX_PATH is not valid"):
        NearDuplicatePipeline.from_crawler(crawler).open_spider()


def test_null_is_no_setting(tmp_path: Path) -> None:
    crawler = get_crawler(
        None, {"SIMINDEX_PATH": tmp_path / "a.sim", "SIMINDEX_RECIPE": None,
               "SIMINDEX_DISTANCE": None, "SIMINDEX_EXPIRE_S": None, "SIMINDEX_COMMIT_S": None,
               "SIMINDEX_KEY_FIELD": None}
    )
    pipeline = NearDuplicatePipeline.from_crawler(crawler)
    pipeline.open_spider()
    pipeline.close_spider()
