"""A key that an index cannot store, too long or of half a surrogate pair, raised an error for its
item, which was lost. The same befell a near-duplicate whose class has no field for the tag.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.http import HtmlResponse, Request
from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicateMiddleware, NearDuplicatePipeline

TEXT = "some words that are long enough to have a fingerprint of their own"
BAD_KEYS = ["x" * 70_000, "a?\ud83d", "ü" * 40_000]


@dataclass
class Untaggable:
    url: str
    text: str


@dataclass(frozen=True)
class Frozen:
    url: str
    text: str
    near_duplicate_of: Any = None


@dataclass
class Keyless:
    text: str
    tags: list[str] = field(default_factory=list)


def opened(tmp_path: Path, **settings: Any) -> tuple[NearDuplicatePipeline, Any]:
    crawler = get_crawler(None, {"SIMINDEX_PATH": str(tmp_path / "a.sim"), **settings})
    pipeline = NearDuplicatePipeline.from_crawler(crawler)
    pipeline.open_spider()
    return pipeline, lambda name: crawler.stats.get_value(f"simindex/items/{name}", 0)


def test_items_pass_and_are_counted(tmp_path: Path) -> None:
    pipeline, count = opened(tmp_path)
    for number, key in enumerate(BAD_KEYS, 1):
        item = {"url": key, "text": TEXT}
        assert pipeline.process_item(item) is item
        assert count("invalid_key") == number
    pipeline.process_item({"url": "a", "text": TEXT})
    pipeline.close_spider()
    assert count("new") == 1 and count("near_duplicates") == 0


def test_items_without_a_key_are_told_from_those_without_a_text(tmp_path: Path) -> None:
    pipeline, count = opened(tmp_path)
    for item in ({"text": TEXT}, {"url": b"a", "text": TEXT}, Keyless(TEXT)):
        assert pipeline.process_item(item) is item
    texts = [None, "", TEXT.encode(), [TEXT], np.zeros(2)]
    for item in ({"url": "a"}, *({"url": "a", "text": text} for text in texts)):
        assert pipeline.process_item(item) is item
    assert (count("without_key"), count("without_text"), count("new")) == (3, 6, 0)
    pipeline.process_item({"url": "a", "text": np.zeros(2), "content": TEXT})
    pipeline.close_spider()
    assert count("new") == 1


@pytest.mark.parametrize("kind", [Untaggable, Frozen])
def test_items_that_take_no_tag_pass_without_it(tmp_path: Path, kind: Any) -> None:
    pipeline, count = opened(tmp_path, SIMINDEX_ITEM_ACTION="tag")
    for url in ("a", "b"):
        item = kind(url, TEXT)
        assert pipeline.process_item(item) is item
    pipeline.close_spider()
    assert (count("new"), count("near_duplicates"), count("not_tagged")) == (1, 1, 1)


def test_responses_pass_and_are_counted(tmp_path: Path) -> None:
    crawler = get_crawler(
        None, {"SIMINDEX_PATH": str(tmp_path / "a.sim"), "SIMINDEX_HTML": "raw"}
    )
    middleware = NearDuplicateMiddleware.from_crawler(crawler)
    url = "http://localhost/" + "x" * 70_000
    response = HtmlResponse(
        url, body=f"<p>{TEXT}</p>".encode(), headers={"Content-Type": "text/html"}
    )
    assert middleware.process_response(Request(url), response) is response
    middleware._pages.close()
    assert crawler.stats.get_value("simindex/responses/invalid_key") == 1
