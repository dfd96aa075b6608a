"""Whole crawls whose settings or items do not fit the index; each is a process of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simindex

PIPELINE = {"ITEM_PIPELINES": {"simindex.integrations.scrapy.NearDuplicatePipeline": 300}}
MIDDLEWARE = {
    "DOWNLOADER_MIDDLEWARES": {"simindex.integrations.scrapy.NearDuplicateMiddleware": 560},
    "SIMINDEX_HTML": "raw",
}
KINDS = pytest.mark.parametrize("component", [PIPELINE, MIDDLEWARE], ids=["items", "responses"])

ODD_KEYS = '''
import scrapy


class Odd(scrapy.Spider):
    name = "odd"
    custom_settings = {"TELNETCONSOLE_ENABLED": False}

    async def start(self):
        yield scrapy.Request(self.site + "/page/0")

    def parse(self, response):
        text = " ".join(response.css("main p::text").getall())
        for key in ("x" * 70_000, response.url + "?\\ud83d", response.url):
            yield {"url": key, "text": text}

    def closed(self, reason):
        import json
        stats = {name: value for name, value in self.crawler.stats.get_stats().items()
                 if name.startswith(("simindex/", "item", "log_count"))}
        open("stats.json", "w").write(json.dumps(stats))
'''

LONG_ADDRESS = '''
import scrapy


class Long(scrapy.Spider):
    name = "long"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO"}

    async def start(self):
        yield scrapy.Request(self.site + "/page/0")

    def parse(self, response):
        yield {"url": "page", "length": len(response.url)}

    def closed(self, reason):
        import json
        stats = {name: value for name, value in self.crawler.stats.get_stats().items()
                 if name.startswith(("simindex/", "item", "log_count"))}
        open("stats.json", "w").write(json.dumps(stats))


class Moved:
    """Gives a response the long address to which a site has moved it."""

    def process_response(self, request, response):
        return response.replace(url=response.url + "?" + "x" * 70_000)
'''


def refused(crawler: Any, site: Any, said: str, settings: dict[str, Any]) -> None:
    """The crawl ends with an error before it asks for a page."""
    done = crawler.run(SIMINDEX_PATH="pages.sim", **settings)
    assert done.code == 1, done.log
    assert "simindex.errors.InvalidOption" in done.log and said in done.log
    assert site.asked == [] and done.items == []


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("distance", [65, -1, 999])
def test_a_distance_out_of_range_ends_the_crawl_before_it_begins(
    crawler: Any, site: Any, component: dict[str, Any], distance: int
) -> None:
    refused(
        crawler, site,
        f"the setting SIMINDEX_DISTANCE is {distance}: give a number of bits from 0 to 64",
        {**component, "SIMINDEX_DISTANCE": distance},
    )
    assert not (crawler.folder / "pages.sim").exists()


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize(
    ("options", "rows", "said"),
    [
        ({"keys": False}, False, "it has ids in place of keys"),
        ({"keys": "bytes"}, False, "it has keys of bytes"),
        ({}, True, "it was made of fingerprints"),
        ({"keys": "str", "recipe": simindex.Recipe(weighting="given")}, False,
         "it has a recipe for other uses"),
    ],
    ids=["ids", "bytes", "fingerprints", "given"],
)
def test_an_index_that_takes_no_texts_ends_the_crawl_before_it_begins(
    crawler: Any, site: Any, component: dict[str, Any], options: Any, rows: bool, said: str
) -> None:
    path = crawler.folder / "pages.sim"
    with simindex.open(path, "n", options=simindex.IndexOptions(**options)) as index:
        if rows:
            index.append(np.array([7, 8], np.uint64))
    refused(crawler, site, said, component)
    refused(crawler, site, "give SIMINDEX_PATH another path", component)
    with simindex.open(path, "w") as index:
        assert len(index) == 2 * rows and index.check() == []


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ('{"weighting": "given"}', "takes the weights from the caller"),
        ('{"weighting": "tfidf"}', "has not learned an idf yet"),
        ("xx", "the setting SIMINDEX_RECIPE is 'xx'"),
    ],
    ids=["given", "tfidf", "no-json"],
)
def test_a_recipe_for_other_uses_ends_the_crawl_before_it_begins(
    crawler: Any, site: Any, component: dict[str, Any], recipe: str, said: str
) -> None:
    refused(crawler, site, said, {**component, "SIMINDEX_RECIPE": recipe})
    assert not (crawler.folder / "pages.sim").exists()


@pytest.mark.slow
def test_items_whose_key_cannot_be_stored_pass(crawler: Any, site: Any) -> None:
    (crawler.folder / "spider.py").write_text(ODD_KEYS)
    done = crawler.run(SIMINDEX_PATH="pages.sim", **PIPELINE)
    assert [len(item["url"]) for item in done.items] == [
        70_000, len(f"{site.address}/page/0?."), len(f"{site.address}/page/0")
    ]
    assert done.stats["item_scraped_count"] == 3
    assert done.stats["simindex/items/invalid_key"] == 2
    assert done.stats["simindex/items/new"] == done.stats["simindex/rows"] == 1
    assert "log_count/ERROR" not in done.stats and "Traceback" not in done.log


@pytest.mark.slow
def test_responses_whose_address_cannot_be_stored_pass(crawler: Any, site: Any) -> None:
    (crawler.folder / "spider.py").write_text(LONG_ADDRESS)
    classes = {**MIDDLEWARE["DOWNLOADER_MIDDLEWARES"], "spider.Moved": 570}  # type: ignore[dict-item]
    done = crawler.run(
        SIMINDEX_PATH="pages.sim", SIMINDEX_HTML="raw", DOWNLOADER_MIDDLEWARES=classes
    )
    assert [item["length"] for item in done.items] == [len(f"{site.address}/page/0?") + 70_000]
    assert done.stats["simindex/responses/invalid_key"] == 1
    assert "log_count/ERROR" not in done.stats and "Traceback" not in done.log
