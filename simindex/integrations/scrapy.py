"""Near-duplicates in a crawl of Scrapy: items are dropped or tagged, and so are responses.

    ITEM_PIPELINES           {"simindex.integrations.scrapy.NearDuplicatePipeline": 300}
    DOWNLOADER_MIDDLEWARES   {"simindex.integrations.scrapy.NearDuplicateMiddleware": 560}
    SIMINDEX_PATH            "pages.sim"         the index; created if it is missing

Both may be used, with an index each (SIMINDEX_RESPONSE_PATH), since a page and its item are near.
docs/how-to/scrapy.md has all settings. A page is near an earlier one if the index holds a text
within the radius that has another key: a page that is fetched again is no duplicate of itself.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Self

import simindex
from simindex.inputs.document import Unusable
from simindex.inputs.extras import needed
from simindex.inputs.markup import extractor
from simindex.integrations.crawl_index import CrawlIndex
from simindex.integrations.crawl_settings import (
    KEY_FIELD,
    TEXT_FIELD,
    CrawlSettings,
    html_of,
    name_of_field,
)

with needed("crawling with Scrapy", extra="scrapy"):
    from itemadapter import ItemAdapter
    from scrapy.exceptions import DropItem, IgnoreRequest
    from scrapy.http import HtmlResponse, TextResponse

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response

TEXT_FIELDS = ("text", "content", "body")
"""Of items, where SIMINDEX_TEXT_FIELD names none: the first of these that has a text."""

FIELD = "near_duplicate_of"
"""What a tagged item, and the `meta` of a tagged response, says of the earlier one."""

HTML = ("text/html", "application/xhtml")


class NearDuplicatePipeline:
    """Drops items whose text is near that of an earlier one, or tags them.

    Settings: SIMINDEX_PATH, SIMINDEX_ITEM_ACTION (drop), SIMINDEX_TEXT_FIELD (the first of text,
    content, body), SIMINDEX_KEY_FIELD (url), SIMINDEX_DISTANCE (that of the recipe),
    SIMINDEX_COMMIT_S (5), SIMINDEX_WAIT_S (0), SIMINDEX_EXPIRE_S (never), SIMINDEX_RECIPE (options
    of a new index's recipe).

    An item passes, and is counted, if it has no text, no key, or a key that an index cannot store.
    Statistics: `simindex/items/new`, `near_duplicates`, `fetched_again`, `without_text`,
    `without_key`, `invalid_key`, `without_fingerprint`, `not_tagged`, at the end `simindex/rows`,
    and at the beginning `simindex/expired`.

    With the action `tag` the pipeline owns the field `near_duplicate_of`: it removes a tag that an
    item got from another one. Items of a class without this field pass, and count as `not_tagged`.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._pages = CrawlIndex(CrawlSettings.of(settings, of_responses=False), crawler)
        text_field = name_of_field(settings, TEXT_FIELD)
        self._text_fields = TEXT_FIELDS if text_field is None else (text_field,)
        self._key_field = name_of_field(settings, KEY_FIELD) or "url"

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it; InvalidOption ends the crawl before it begins."""
        return cls(crawler)

    def open_spider(self) -> None:
        """Opens the index."""
        self._pages.open()

    def close_spider(self) -> None:
        """Commits and closes it."""
        self._pages.close()

    def process_item(self, item: Any) -> Any:
        """The item, tagged if it is near an earlier one and not dropped."""
        adapter, tags = ItemAdapter(item), self._pages.settings.action == "tag"
        if tags and adapter.get(FIELD) is not None:  # of the item that this one was copied from
            self._tag(adapter, None)
        texts = (adapter.get(name) for name in self._text_fields)
        text = next((text for text in texts if isinstance(text, str) and text), None)
        key = adapter.get(self._key_field)
        if text is None:
            self._pages.count("items/without_text")
            return item
        if not isinstance(key, str):
            self._pages.count("items/without_key")
            return item
        found = self._pages.nearest(text, key, "items")
        if found is None:
            return item
        if not tags:
            raise DropItem(_said(found, key))
        self._tag(adapter, _told(found))
        return item

    def _tag(self, adapter: ItemAdapter, told: dict[str, Any] | None) -> None:
        """Sets or removes the tag, unless the class of the item has no such field or forbids it."""
        try:
            if told is None and isinstance(adapter.item, MutableMapping):
                del adapter[FIELD]
            else:
                adapter[FIELD] = told
        except (KeyError, AttributeError, TypeError, ValueError):
            self._pages.count("items/not_tagged")


class NearDuplicateMiddleware:
    """Tags responses whose main text is near that of an earlier page, or drops them.

    Settings: as of the pipeline, with SIMINDEX_RESPONSE_ACTION (tag), SIMINDEX_RESPONSE_PATH
    (SIMINDEX_PATH) and SIMINDEX_HTML (resiliparse), how the text is found.

    Looked at are answers of HTML with the status 200, unless the request has
    `meta={"simindex": False}`. A tagged one has `response.meta["near_duplicate_of"]`; a tag that a
    request got from another response is removed. A dropped one raises IgnoreRequest, so its links
    are not followed. Statistics: `simindex/responses/new`, `near_duplicates`, `fetched_again`,
    `without_text`, `invalid_key`, `without_fingerprint`.
    """

    def __init__(self, crawler: Crawler) -> None:
        from scrapy import signals

        self._pages = CrawlIndex(CrawlSettings.of(crawler.settings, of_responses=True), crawler)
        self._text_of = extractor(html_of(crawler.settings))
        crawler.signals.connect(self._pages.close, signal=signals.spider_closed)
        self._pages.open()  # not by a signal: of its handlers Scrapy only logs the errors

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it; InvalidOption ends the crawl before it begins."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Removes a tag of another response, which errbacks would see, too."""
        request.meta.pop(FIELD, None)

    def process_response(self, request: Request, response: Response) -> Response:
        """The response, unless it is near an earlier one and dropped."""
        request.meta.pop(FIELD, None)  # a middleware that answers itself skips `process_request`
        if response.status != 200 or not request.meta.get("simindex", True) or not _is_html(
            response
        ):
            return response
        try:
            text = self._text_of(response.body, response.encoding)  # type: ignore[attr-defined]
        except Unusable:
            text = ""
        if not text.strip():
            self._pages.count("responses/without_text")
            return response
        found = self._pages.nearest(text, response.url, "responses")
        if found is None:
            return response
        if self._pages.settings.action == "drop":
            raise IgnoreRequest(_said(found, response.url))
        request.meta[FIELD] = _told(found)
        return response


def _is_html(response: Response) -> bool:
    kind = (response.headers.get("Content-Type") or b"").decode("latin-1").lower()
    if not kind:  # Scrapy has told it by the address and the body
        return isinstance(response, HtmlResponse)
    return isinstance(response, TextResponse) and kind.startswith(HTML)


def _said(found: simindex.Match, key: str) -> str:
    return f"near-duplicate of {found.key!s}, {found.distance} bits apart: {key}"


def _told(found: simindex.Match) -> dict[str, Any]:
    return {"key": found.key, "distance": found.distance}
