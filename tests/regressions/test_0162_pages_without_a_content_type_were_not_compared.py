"""The middleware of Scrapy passed over pages without a Content-Type, such as those of file:// and
of simple servers, though Scrapy had found out that they are HTML; the statistics were silent."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.http import HtmlResponse, Request, Response, TextResponse
from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicateMiddleware

BODY = b"<html><body><p>some words that are long enough to have a fingerprint of their own</p>"


@pytest.mark.parametrize(
    ("made", "headers", "looked_at"),
    [
        (HtmlResponse, {}, True), (HtmlResponse, {"Content-Type": ""}, True),
        (HtmlResponse, {"Content-Type": "text/html; charset=utf-8"}, True),
        (HtmlResponse, {"Content-Type": "text/plain"}, False),
        (TextResponse, {}, False), (Response, {}, False),
    ],
)
@pytest.mark.slow
def test_what_scrapy_takes_for_html_is_compared(
    tmp_path: Path, made: type[Response], headers: dict[str, str], looked_at: bool
) -> None:
    settings = {"SIMINDEX_PATH": str(tmp_path / "pages.sim"), "SIMINDEX_HTML": "raw"}
    middleware = NearDuplicateMiddleware.from_crawler(crawler := get_crawler(None, settings))
    for name in ("a", "b"):
        request = Request(f"https://example.org/{name}")
        response = made(request.url, headers=headers, body=BODY, request=request)
        middleware.process_response(request, response)
        assert ("near_duplicate_of" in request.meta) == (looked_at and name == "b")
    assert crawler.stats.get_value("simindex/responses/new", 0) == looked_at
    middleware._pages.close()
