"""Near-duplicates in a crawl of Scrapy: items are dropped or tagged, and so are responses.

    ITEM_PIPELINES           {"simindex.integrations.scrapy.NearDuplicatePipeline": 300}
    DOWNLOADER_MIDDLEWARES   {"simindex.integrations.scrapy.NearDuplicateMiddleware": 560}
    SIMINDEX_PATH            "pages.sim"         the index; created if it is missing

Both may be used, with an index each (SIMINDEX_RESPONSE_PATH), since a page and its item are near.
docs/how-to/scrapy.md has all settings. A page is near an earlier one if the index holds a text
within the radius that has another key: a page that is fetched again is no duplicate of itself.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import simindex
from simindex.errors import InvalidOption
from simindex.inputs.document import Unusable
from simindex.inputs.extras import needed
from simindex.inputs.markup import EXTRACTORS, extractor
from simindex.values import dataclass
from simindex.writing.ownership import exists

with needed("crawling with Scrapy", extra="scrapy"):
    from itemadapter import ItemAdapter
    from scrapy.exceptions import DropItem, IgnoreRequest
    from scrapy.http import TextResponse

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from scrapy.settings import BaseSettings

TEXT_FIELDS = ("text", "content", "body")
"""Of items, where SIMINDEX_TEXT_FIELD names none: the first of these that an item has."""

FIELD = "near_duplicate_of"
"""What a tagged item, and the `meta` of a tagged response, says of the earlier one."""

HTML = ("text/html", "application/xhtml")

ACTIONS = ("drop", "tag")


@dataclass
class _Shared:
    """An index that is open for writing, and how many components of this process use it."""

    index: simindex.Index
    users: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """What a crawl says of its index; InvalidOption names a setting that cannot be."""

    path: str
    action: str
    distance: int | None
    commit_s: float
    wait_s: float
    expire_s: float | None
    recipe: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: BaseSettings, *, of_responses: bool) -> Self:
        """Those of a component."""
        kind = "RESPONSE" if of_responses else "ITEM"
        path = settings.get("SIMINDEX_RESPONSE_PATH") if of_responses else None
        path = path or settings.get("SIMINDEX_PATH")
        if not path:
            raise _refused("SIMINDEX_PATH", path, "a path, such as pages.sim")
        action = settings.get(f"SIMINDEX_{kind}_ACTION", "tag" if of_responses else "drop")
        if action not in ACTIONS:
            raise _refused(f"SIMINDEX_{kind}_ACTION", action, " or ".join(ACTIONS))
        try:
            distance = settings.get("SIMINDEX_DISTANCE")
            distance = None if distance is None else int(distance)
        except (TypeError, ValueError):
            raise _refused("SIMINDEX_DISTANCE", distance, "a number of bits") from None
        return cls(
            str(path), action, distance, _seconds(settings, "SIMINDEX_COMMIT_S", 5.0),
            _seconds(settings, "SIMINDEX_WAIT_S", 0.0),
            None if settings.get("SIMINDEX_EXPIRE_S") is None
            else _seconds(settings, "SIMINDEX_EXPIRE_S", 0.0),
            settings.getdict("SIMINDEX_RECIPE"),
        )


def _seconds(settings: BaseSettings, name: str, default: float) -> float:
    try:
        found = settings.getfloat(name, default)
    except (TypeError, ValueError):
        found = -1.0
    if not found >= 0:
        raise _refused(name, settings.get(name), "a number of seconds from 0 on")
    return found


def _refused(name: str, found: object, wanted: str) -> InvalidOption:
    return InvalidOption(
        f"the setting {name} is {found!r}", remedy=f"give {wanted}", option=name, found=found,
        expected=wanted,
    )


_OPEN: dict[str, _Shared] = {}
_OPENING = Lock()


class _Pages:
    """The texts of one crawl in an index, which all components of the process share."""

    def __init__(self, settings: Settings, crawler: Crawler) -> None:
        self.settings, self._crawler = settings, crawler
        self._recipe = simindex.Recipe(**settings.recipe) if settings.recipe else None
        self._index: simindex.Index | None = None

    def open(self) -> None:
        """Opens the index, and waits for its turn where another process writes it."""
        path = self.settings.path
        with _OPENING:
            shared = _OPEN.get(path)
            if shared is None:
                shared = _Shared(self._opened(path))
            index = shared.index
            if self._recipe is not None and index.recipe != self._recipe:
                if not shared.users:
                    index.close()
                raise InvalidOption(
                    f"SIMINDEX_RECIPE is not the recipe of {path}",
                    remedy="leave it out, or name another SIMINDEX_PATH", option="SIMINDEX_RECIPE",
                )
            _OPEN[path] = shared
            shared.users += 1
        self._index = index

    def _opened(self, path: str) -> simindex.Index:
        """The index without what has expired; a new one has what the settings ask for."""
        expire_s, options = self.settings.expire_s, None
        if not exists(Path(path)):
            options = simindex.IndexOptions(
                keys="str" if self._recipe else None, recipe=self._recipe,
                times=expire_s is not None,
            )
        index = simindex.open(path, "c", options=options, wait_s=self.settings.wait_s)
        try:
            if expire_s is not None:
                self._set("expired", index.expire(older_than=expire_s))
                index.commit()
        except BaseException:
            index.close()
            raise
        return index

    def close(self) -> None:
        """Commits, and closes the index with the last that uses it."""
        index, self._index = self._index, None
        if index is None:
            return
        with _OPENING:
            shared = _OPEN[self.settings.path]
            shared.users -= 1
            if not shared.users:
                del _OPEN[self.settings.path]
            try:
                index.commit()
                self._set("rows", len(index))
            finally:
                if not shared.users:
                    index.close()

    def nearest(self, text: str, key: str, prefix: str) -> simindex.Match | None:
        """An earlier text of another key within the radius; else the text is added."""
        index = self._index
        assert index is not None
        recipe = index.recipe or self._recipe or simindex.Recipe()
        document = recipe.batch([text], keys=[key])
        if not len(document):
            self.count(f"{prefix}/without_fingerprint")
            return None
        found = index.seen_or_add(
            document, h=self.settings.distance, commit_s=self.settings.commit_s
        )
        if found is not None and found.key != key:
            self.count(f"{prefix}/near_duplicates")
            return found
        self.count(f"{prefix}/{'new' if found is None else 'fetched_again'}")
        return None

    def count(self, name: str) -> None:
        """One more in the statistics of the crawl."""
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"simindex/{name}")

    def _set(self, name: str, value: int) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.set_value(f"simindex/{name}", value)


class NearDuplicatePipeline:
    """Drops items whose text is near that of an earlier one, or tags them.

    Settings: SIMINDEX_PATH, SIMINDEX_ITEM_ACTION (drop), SIMINDEX_TEXT_FIELD (the first of text,
    content, body), SIMINDEX_KEY_FIELD (url), SIMINDEX_DISTANCE (that of the recipe),
    SIMINDEX_COMMIT_S (5), SIMINDEX_WAIT_S (0), SIMINDEX_EXPIRE_S (never), SIMINDEX_RECIPE (options
    of a new index's recipe).

    An item without the fields passes, and is counted. Statistics: `simindex/items/new`,
    `near_duplicates`, `fetched_again`, `without_text`, `without_fingerprint`, at the end
    `simindex/rows`, and at the beginning `simindex/expired`.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._pages = _Pages(Settings.of(settings, of_responses=False), crawler)
        text_field = settings.get("SIMINDEX_TEXT_FIELD")
        self._text_fields = TEXT_FIELDS if text_field is None else (text_field,)
        self._key_field = settings.get("SIMINDEX_KEY_FIELD", "url")

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
        adapter = ItemAdapter(item)
        text = next((adapter[name] for name in self._text_fields if adapter.get(name)), None)
        key = adapter.get(self._key_field)
        if not isinstance(text, str) or not isinstance(key, str):
            self._pages.count("items/without_text")
            return item
        found = self._pages.nearest(text, key, "items")
        if found is None:
            return item
        if self._pages.settings.action == "drop":
            raise DropItem(_said(found, key))
        adapter[FIELD] = _told(found)
        return item


class NearDuplicateMiddleware:
    """Tags responses whose main text is near that of an earlier page, or drops them.

    Settings: as of the pipeline, with SIMINDEX_RESPONSE_ACTION (tag), SIMINDEX_RESPONSE_PATH
    (SIMINDEX_PATH) and SIMINDEX_HTML (resiliparse), how the text is found.

    Looked at are answers of HTML with the status 200, unless the request has
    `meta={"simindex": False}`. A tagged one has `response.meta["near_duplicate_of"]`. A dropped one
    raises IgnoreRequest, so its links are not followed. Statistics: `simindex/responses/new`,
    `near_duplicates`, `fetched_again`, `without_text`, `without_fingerprint`.
    """

    def __init__(self, crawler: Crawler) -> None:
        from scrapy import signals

        self._pages = _Pages(Settings.of(crawler.settings, of_responses=True), crawler)
        html = crawler.settings.get("SIMINDEX_HTML", next(iter(EXTRACTORS)))
        if html not in EXTRACTORS:
            raise _refused("SIMINDEX_HTML", html, " or ".join(EXTRACTORS))
        self._text_of = extractor(html)
        crawler.signals.connect(self._pages.close, signal=signals.spider_closed)
        self._pages.open()  # not by a signal: of its handlers Scrapy only logs the errors

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it; InvalidOption ends the crawl before it begins."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """The response, unless it is near an earlier one and dropped."""
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
    return isinstance(response, TextResponse) and kind.startswith(HTML)


def _said(found: simindex.Match, key: str) -> str:
    return f"near-duplicate of {found.key!s}, {found.distance} bits apart: {key}"


def _told(found: simindex.Match) -> dict[str, Any]:
    return {"key": found.key, "distance": found.distance}
