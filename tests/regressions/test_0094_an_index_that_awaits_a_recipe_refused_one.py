"""An index without rows and without a recipe takes that of its first texts. A crawl with a recipe
of its own refused such an index, as if it had another one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import simindex

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicatePipeline


def test_the_recipe_of_the_settings_becomes_that_of_the_index(tmp_path: Path) -> None:
    path = tmp_path / "a.sim"
    simindex.open(path, "n").close()
    settings = {"SIMINDEX_PATH": str(path), "SIMINDEX_RECIPE": {"weighting": "tf", "h": 5}}
    for new, again in ((1, None), (None, 1)):
        crawler = get_crawler(None, settings)
        pipeline = NearDuplicatePipeline.from_crawler(crawler)
        pipeline.open_spider()
        pipeline.process_item({"url": "a", "text": "some words that are long enough"})
        pipeline.close_spider()
        assert crawler.stats.get_value("simindex/items/new") == new
        assert crawler.stats.get_value("simindex/items/fetched_again") == again
    with simindex.open(path) as index:
        assert index.recipe == simindex.Recipe(weighting="tf") and index.h == 5
