"""A crawl with pipeline and middleware ended because a setting of items was wrong. By then the
middleware had created its index, or deleted expired texts in it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.utils.test import get_crawler

from simindex.errors import InvalidOption
from simindex.integrations.scrapy import NearDuplicateMiddleware, NearDuplicatePipeline

WRONG = [
    ("SIMINDEX_ITEM_ACTION", "mark"), ("SIMINDEX_RESPONSE_ACTION", "mark"),
    ("SIMINDEX_KEY_FIELD", ""), ("SIMINDEX_TEXT_FIELD", ""), ("SIMINDEX_HTML", "lxml"),
    ("SIMINDEX_DISTANCE", "three"), ("SIMINDEX_EXPIRE_S", "-1"),
]


@pytest.mark.parametrize(("setting", "value"), WRONG)
@pytest.mark.parametrize("component", [NearDuplicatePipeline, NearDuplicateMiddleware])
@pytest.mark.slow
def test_each_component_refuses_the_settings_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, component: type, setting: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"SIMINDEX_PATH": "pages.sim", "SIMINDEX_HTML": "raw", setting: value}
    with pytest.raises(InvalidOption, match=setting):
        component.from_crawler(get_crawler(None, settings))  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_middleware_alone_needs_one_path(tmp_path: Path) -> None:
    settings = {"SIMINDEX_RESPONSE_PATH": str(tmp_path / "pages.sim"), "SIMINDEX_HTML": "raw"}
    crawler = get_crawler(None, settings)
    NearDuplicateMiddleware.from_crawler(crawler)._pages.close()
    assert (tmp_path / "pages.sim").is_dir()
