"""Crawls of a real site by Scrapy, with near-duplicates on it; one of them is killed."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidOption, MissingExtra
from simindex.index import aged_rows

PIPELINE = {"simindex.integrations.scrapy.NearDuplicatePipeline": 300}
MIDDLEWARE = {"simindex.integrations.scrapy.NearDuplicateMiddleware": 560}
SETTINGS: dict[str, Any] = {"SIMINDEX_PATH": "pages.sim", "ITEM_PIPELINES": PIPELINE}


def family(path: str) -> str:
    """What a page and its print version share."""
    return path.rsplit("/", 1)[1]


def paths_of(items: list[dict[str, Any]], site: Any) -> list[str]:
    return sorted(item["url"].removeprefix(site.address) for item in items)


@pytest.mark.slow
def test_items_near_earlier_ones_are_dropped(crawler: Any, site: Any) -> None:
    done = crawler.run(**SETTINGS)
    assert done.code == 0, done.log
    kept = paths_of(done.items, site)
    assert sorted(map(family, kept)) == sorted({family(path) for path in site.paths})
    assert done.stats["simindex/items/new"] == len(kept) == done.stats["item_scraped_count"]
    assert done.stats["simindex/items/near_duplicates"] == len(site.prints)
    assert done.stats["simindex/rows"] == len(kept)
    assert "near-duplicate of http" in done.log
    with simindex.open(crawler.folder / "pages.sim") as index:
        assert sorted(batch_keys(index)) == sorted(item["url"] for item in done.items)
        assert index.check() == []


def batch_keys(index: simindex.Index) -> list[str]:
    return [str(key) for batch in index.rows() for key in batch.keys or ()]


@pytest.mark.slow
def test_a_second_crawl_keeps_the_same_pages(crawler: Any, site: Any) -> None:
    """A page that is fetched again is no duplicate of itself."""
    first, again = crawler.run(**SETTINGS), crawler.run(**SETTINGS)
    assert paths_of(again.items, site) == paths_of(first.items, site)
    assert again.stats["simindex/items/fetched_again"] == len(first.items)
    assert again.stats["simindex/rows"] == first.stats["simindex/rows"]
    assert "simindex/items/new" not in again.stats


@pytest.mark.slow
def test_texts_that_are_old_are_forgotten(crawler: Any) -> None:
    """A new index has times if there is an age at which texts go."""
    path, settings = crawler.folder / "pages.sim", {**SETTINGS, "SIMINDEX_EXPIRE_S": 3600}
    first = crawler.run(**settings)
    assert first.stats["simindex/expired"] == 0
    kept = first.stats["simindex/rows"]
    with simindex.open(path, "w") as index:
        assert index.options.times and index.recipe is not None
        batch = index.recipe.batch(["an old text"], keys=["old"])
        aged_rows.append_aged(index, batch, np.array([10**9], np.uint32))
    again = crawler.run(**settings)
    assert again.stats["simindex/expired"] == 1
    assert again.stats["simindex/rows"] == kept
    with simindex.open(path) as index:
        assert "old" not in index


@pytest.mark.slow
def test_an_index_without_times_forgets_nothing(crawler: Any) -> None:
    crawler.run(**SETTINGS)
    done = crawler.run(**SETTINGS, SIMINDEX_EXPIRE_S=3600)
    assert "does not store when its rows came" in done.log
    assert "simindex/items/new" not in done.stats


@pytest.mark.slow
def test_items_can_be_tagged(crawler: Any, site: Any) -> None:
    done = crawler.run(**SETTINGS, SIMINDEX_ITEM_ACTION="tag")
    assert len(done.items) == len(site.paths)
    tagged = [item for item in done.items if "near_duplicate_of" in item]
    assert len(tagged) == len(site.prints)
    for item in tagged:
        told = item["near_duplicate_of"]
        assert family(told["key"]) == family(item["url"]) and told["key"] != item["url"]
        assert 0 <= told["distance"] <= 7


@pytest.mark.slow
def test_responses_can_be_tagged_or_dropped(crawler: Any, site: Any) -> None:
    pytest.importorskip("resiliparse", reason="the extra web is not installed")
    options = {"SIMINDEX_PATH": "pages.sim", "DOWNLOADER_MIDDLEWARES": MIDDLEWARE}
    tagged = crawler.run(**options)
    assert len(tagged.items) == len(site.paths)
    assert sum(item["page_of"] is not None for item in tagged.items) == len(site.prints)
    assert tagged.stats["simindex/responses/near_duplicates"] == len(site.prints)
    dropped = crawler.run(**options, SIMINDEX_RESPONSE_ACTION="drop")
    assert len(dropped.items) == len(site.paths) - len(site.prints)


@pytest.mark.slow
def test_a_page_and_its_item_have_an_index_each(crawler: Any, site: Any) -> None:
    pytest.importorskip("resiliparse", reason="the extra web is not installed")
    done = crawler.run(
        **SETTINGS, DOWNLOADER_MIDDLEWARES=MIDDLEWARE, SIMINDEX_RESPONSE_PATH="responses.sim"
    )
    assert len(done.items) == len(site.paths) - len(site.prints)
    assert (crawler.folder / "responses.sim").is_dir() and (crawler.folder / "pages.sim").is_dir()


@pytest.mark.slow
def test_a_page_and_its_item_in_one_index(crawler: Any, site: Any) -> None:
    """An item whose key is the address of its page passes; one with another key does not."""
    pytest.importorskip("resiliparse", reason="the extra web is not installed")
    both = {**SETTINGS, "DOWNLOADER_MIDDLEWARES": MIDDLEWARE}
    done = crawler.run(**both)
    assert len(done.items) == len(site.paths) - len(site.prints)
    assert done.stats["simindex/items/fetched_again"] == len(done.items)
    assert "simindex/items/new" not in done.stats
    other = crawler.run(**{**both, "SIMINDEX_PATH": "other.sim"}, SIMINDEX_KEY_FIELD="text")
    assert other.items == []
    assert other.stats["simindex/items/near_duplicates"] == len(site.paths)


@pytest.mark.slow
def test_a_killed_crawl_loses_nothing_that_was_committed(crawler: Any, site: Any) -> None:
    """Killed in the middle and run again, it keeps each text once."""
    site.delay_s = 0.05
    process = crawler.start(**SETTINGS, SIMINDEX_COMMIT_S=0)
    end = time.monotonic() + 60
    while len(site.asked) < PART and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    with simindex.open(crawler.folder / "pages.sim") as index:
        committed = batch_keys(index)
        assert index.check() == []
    assert 0 < len(committed) < len(site.paths) - len(site.prints)
    site.delay_s = 0.0
    done = crawler.run(**SETTINGS)
    assert sorted(map(family, paths_of(done.items, site))) == sorted(
        {family(path) for path in site.paths}
    )
    assert set(committed) <= {item["url"] for item in done.items}
    with simindex.open(crawler.folder / "pages.sim") as index:
        assert sorted(batch_keys(index)) == sorted(item["url"] for item in done.items)


PART = 20
"""Pages asked for until the crawl is killed."""


@pytest.mark.slow
def test_items_of_other_kinds_pass(crawler: Any, site: Any) -> None:
    done = crawler.run(**SETTINGS, SIMINDEX_TEXT_FIELD="summary")
    assert len(done.items) == len(site.paths)
    assert done.stats["simindex/items/without_text"] == len(site.paths)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("SIMINDEX_PATH", "", "the setting SIMINDEX_PATH is ''.*give a path"),
        ("SIMINDEX_DISTANCE", "three", "SIMINDEX_DISTANCE is 'three'.*give a number of bits"),
        ("SIMINDEX_COMMIT_S", "-1", "SIMINDEX_COMMIT_S is '-1'.*give a number of seconds"),
        ("SIMINDEX_RECIPE", '{"bits": 63}', "bits"),
    ],
)
@pytest.mark.slow
def test_a_wrong_setting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, said: str
) -> None:
    pytest.importorskip("scrapy", reason="scrapy is not installed")
    from scrapy.utils.test import get_crawler

    from simindex.integrations.scrapy import NearDuplicatePipeline

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOption, match=said):
        NearDuplicatePipeline.from_crawler(
            get_crawler(None, {"SIMINDEX_PATH": "pages.sim", setting: value})
        ).open_spider()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_wrong_setting_ends_the_crawl_before_it_begins(crawler: Any, site: Any) -> None:
    done = crawler.run(**{**SETTINGS, "SIMINDEX_ITEM_ACTION": "mark"})
    assert re.search("InvalidOption.*SIMINDEX_ITEM_ACTION is 'mark'.*give drop or tag", done.log)
    assert site.asked == [] and done.items == []
    assert not (crawler.folder / "pages.sim").exists()


@pytest.mark.slow
def test_a_recipe_of_its_own_is_stored(crawler: Any, site: Any) -> None:
    done = crawler.run(**SETTINGS, SIMINDEX_RECIPE={"bits": 128, "weighting": "binary"})
    assert len(done.items) == len(site.paths) - len(site.prints)
    with simindex.open(crawler.folder / "pages.sim") as index:
        assert index.recipe == simindex.Recipe(bits=128, weighting="binary")
    other = crawler.run(**SETTINGS, SIMINDEX_RECIPE={"bits": 64})
    assert "SIMINDEX_RECIPE is not the recipe of pages.sim" in other.log and other.items == []


@pytest.mark.slow
def test_two_crawls_take_turns(crawler: Any, site: Any) -> None:
    with simindex.open(crawler.folder / "pages.sim", "c"):
        locked = crawler.run(**SETTINGS)
        assert "IndexLocked" in locked.log and locked.items == []
    assert crawler.run(**SETTINGS, SIMINDEX_WAIT_S=5).stats["simindex/rows"] > 0


@pytest.mark.slow
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith(("scrapy", "simindex.integrations"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scrapy", None)
    monkeypatch.setitem(sys.modules, "scrapy.exceptions", None)
    with pytest.raises(MissingExtra, match=r"pip install 'simindex\[scrapy\]'"):
        import simindex.integrations.scrapy  # noqa: F401


@pytest.mark.slow
def test_components_of_a_process_share_an_index(tmp_path: Path) -> None:
    pytest.importorskip("scrapy", reason="scrapy is not installed")
    from scrapy.exceptions import DropItem
    from scrapy.utils.test import get_crawler

    from simindex.integrations.scrapy import NearDuplicatePipeline

    crawlers = [get_crawler(None, {"SIMINDEX_PATH": str(tmp_path / "a.sim")}) for _ in range(2)]
    one, other = (NearDuplicatePipeline.from_crawler(crawler) for crawler in crawlers)
    one.open_spider()
    other.open_spider()
    text = "some words that are long enough to have a fingerprint of their own"
    assert one.process_item({"url": "a", "text": text}) == {"url": "a", "text": text}
    with pytest.raises(DropItem, match="near-duplicate of a, 0 bits apart: b"):
        other.process_item({"url": "b", "text": text})
    assert other.process_item({"url": "c", "text": " . "}) == {"url": "c", "text": " . "}
    assert crawlers[1].stats.get_value("simindex/items/without_fingerprint") == 1
    assert other.process_item({"url": "c", "text": ""}) == {"url": "c", "text": ""}
    assert crawlers[1].stats.get_value("simindex/items/without_text") == 1
    one.close_spider()
    one.close_spider()
    with pytest.raises(DropItem):
        other.process_item({"url": "b", "text": text})
    other.close_spider()
    with simindex.open(tmp_path / "a.sim", "w") as index:
        assert len(index) == 1
