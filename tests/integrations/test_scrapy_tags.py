"""Tags in crawls where requests take over the `meta` of a response, and items are copies of others.
"""

from __future__ import annotations

from typing import Any

import pytest

HANDED_ON = '''
import json
import scrapy

FOLLOWING = {"/page/0": "/print/0", "/print/0": "/page/1", "/page/1": "/print/3"}


class HandedOn(scrapy.Spider):
    """One page after the other, each with the meta of the one before, and one item for all."""

    name = "handed-on"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO"}

    async def start(self):
        yield scrapy.Request(self.site + "/page/0", meta={"item": {}, "kept": 1})

    def parse(self, response):
        path = response.url.removeprefix(self.site)
        item = response.meta["item"]
        item["url"] = response.url
        item["text"] = " ".join(response.css("main p::text").getall())
        item["page_of"] = response.meta.get("near_duplicate_of")
        item["kept"] = response.meta["kept"]
        yield item
        if path in FOLLOWING:
            yield response.follow(FOLLOWING[path], meta=response.meta)

    def closed(self, reason):
        stats = {name: value for name, value in self.crawler.stats.get_stats().items()
                 if name.startswith(("simindex/", "item", "log_count"))}
        open("stats.json", "w").write(json.dumps(stats))
'''


@pytest.mark.slow
def test_a_tag_is_of_one_page_and_one_item(crawler: Any, site: Any) -> None:
    (crawler.folder / "spider.py").write_text(HANDED_ON)
    done = crawler.run(
        SIMINDEX_PATH="pages.sim", SIMINDEX_RESPONSE_PATH="responses.sim", SIMINDEX_HTML="raw",
        SIMINDEX_ITEM_ACTION="tag", CONCURRENT_REQUESTS=1,
        ITEM_PIPELINES={"simindex.integrations.scrapy.NearDuplicatePipeline": 300},
        DOWNLOADER_MIDDLEWARES={"simindex.integrations.scrapy.NearDuplicateMiddleware": 560},
    )
    assert done.code == 0 and "Traceback" not in done.log, done.log
    of = {item["url"].removeprefix(site.address): item for item in done.items}
    assert list(of) == ["/page/0", "/print/0", "/page/1", "/print/3"]
    for tag in ("page_of", "near_duplicate_of"):
        tagged = {path: item[tag]["key"] for path, item in of.items() if item.get(tag)}
        assert tagged == {"/print/0": f"{site.address}/page/0"}
    assert "near_duplicate_of" not in of["/page/1"]
    assert all(item["kept"] == 1 for item in done.items)
