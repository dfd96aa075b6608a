"""A request that takes over the `meta` of a tagged response, and an item that is a copy of a tagged
one, kept its tag, whatever their own text was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scrapy", reason="scrapy is not installed")

import scrapy
from scrapy.http import HtmlResponse, Request
from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicateMiddleware, NearDuplicatePipeline

TEXT = "some words that are long enough to have a fingerprint of their own"
OTHER = "it rained all day in another town where nobody had ever read a book about crawls"
TAG = "near_duplicate_of"


class Declared(scrapy.Item):
    url = scrapy.Field()
    text = scrapy.Field()
    near_duplicate_of = scrapy.Field()


@dataclass
class OfAClass:
    url: str
    text: str
    near_duplicate_of: Any = None


def answer(request: Request, text: str, status: int = 200, kind: str = "text/html") -> Any:
    return HtmlResponse(
        request.url, body=f"<p>{text}</p>".encode(), headers={"Content-Type": kind},
        request=request, status=status,
    )


@pytest.mark.parametrize(
    ("meta", "text", "status", "kind"),
    [
        ({}, OTHER, 200, "text/html"), ({}, TEXT, 404, "text/html"), ({}, " ", 200, "text/html"),
        ({}, TEXT, 200, "text/plain"), ({"simindex": False}, TEXT, 200, "text/html"),
    ],
)
def test_a_request_loses_the_tag_of_another_response(
    tmp_path: Path, meta: dict[str, Any], text: str, status: int, kind: str
) -> None:
    crawler = get_crawler(
        None, {"SIMINDEX_PATH": str(tmp_path / "a.sim"), "SIMINDEX_HTML": "raw"}
    )
    middleware = NearDuplicateMiddleware.from_crawler(crawler)
    for url in ("http://localhost/a", "http://localhost/b"):
        near = answer(Request(url), TEXT)
        middleware.process_response(near.request, near)
    assert near.meta[TAG]["key"] == "http://localhost/a"
    following = Request("http://localhost/c", meta={**near.meta, **meta})
    response = answer(following, text, status, kind)
    assert middleware.process_response(following, response) is response
    assert TAG not in response.meta
    assert TAG in near.meta
    unanswered = Request("http://localhost/d", meta=near.meta)
    middleware.process_request(unanswered)
    assert TAG not in unanswered.meta
    middleware._pages.close()


def with_text(item: Any, text: str) -> Any:
    if isinstance(item, OfAClass):
        return replace(item, url="c", text=text)
    copied = item.copy()
    copied.update(url="c", text=text)
    return copied


@pytest.mark.parametrize("kind", [dict, Declared, OfAClass])
@pytest.mark.parametrize("text", [OTHER, ""])
def test_an_item_loses_the_tag_of_another_one(tmp_path: Path, kind: Any, text: str) -> None:
    crawler = get_crawler(
        None, {"SIMINDEX_PATH": str(tmp_path / "a.sim"), "SIMINDEX_ITEM_ACTION": "tag"}
    )
    pipeline = NearDuplicatePipeline.from_crawler(crawler)
    pipeline.open_spider()
    pipeline.process_item(kind(url="a", text=TEXT))
    tagged = pipeline.process_item(kind(url="b", text=TEXT))
    copied = pipeline.process_item(with_text(tagged, text))
    if kind is OfAClass:
        assert tagged.near_duplicate_of == {"key": "a", "distance": 0}
        assert copied.near_duplicate_of is None
    else:
        assert tagged[TAG] == {"key": "a", "distance": 0}
        assert TAG not in copied
    assert crawler.stats.get_value("simindex/items/not_tagged") is None
    pipeline.close_spider()


def test_a_field_of_the_spider_stays_where_items_are_dropped(tmp_path: Path) -> None:
    """Such as the tag of the page that an item is from."""
    crawler = get_crawler(None, {"SIMINDEX_PATH": str(tmp_path / "a.sim")})
    pipeline = NearDuplicatePipeline.from_crawler(crawler)
    pipeline.open_spider()
    item = {"url": "a", "text": TEXT, TAG: {"key": "page"}}
    assert pipeline.process_item(item)[TAG] == {"key": "page"}
    pipeline.close_spider()
