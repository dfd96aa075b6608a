"""A site on loopback with near-duplicates, and crawls of it by Scrapy in processes of their own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PAGES = 40
"""Pages of texts of their own; each third one has a print version, which says the same."""

SPIDER = '''
import json
import scrapy


class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {"LOG_LEVEL": "INFO", "ROBOTSTXT_OBEY": False, "RETRY_ENABLED": False,
                       "TELNETCONSOLE_ENABLED": False, "CONCURRENT_REQUESTS": 4}

    async def start(self):
        yield scrapy.Request(self.site + "/")

    def parse(self, response):
        told = response.meta.get("near_duplicate_of")
        if response.css("main p"):
            yield {"url": response.url, "text": " ".join(response.css("main p::text").getall()),
                   "page_of": told}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)

    def closed(self, reason):
        stats = {name: value for name, value in self.crawler.stats.get_stats().items()
                 if name.startswith("simindex/") or name == "item_scraped_count"}
        open("stats.json", "w").write(json.dumps(stats))
'''


def text_of(number: int) -> str:
    drawn = random.Random(number)
    return " ".join(f"{drawn.choice('abcdefgh')}{drawn.randrange(900)}" for _ in range(300))


@dataclass
class Site:
    """Addresses, their texts, and how often each was asked for."""

    address: str = ""
    delay_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    @property
    def prints(self) -> list[str]:
        return [f"/print/{number}" for number in range(0, PAGES, 3)]

    @property
    def paths(self) -> list[str]:
        return [*(f"/page/{number}" for number in range(PAGES)), *self.prints]

    def page(self, path: str) -> str:
        if path == "/":
            return "".join(f'<a href="{one}">{one}</a> ' for one in self.paths)
        number = int(path.rsplit("/", 1)[1])
        said = text_of(number) + (" print version" if path.startswith("/print") else "")
        return f"<html><body><main><h1>Page</h1><p>{said}</p></main></body></html>"


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            time.sleep(made.delay_s)
            body = made.page(self.path).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True, slots=True)
class Crawl:
    """What a crawl gave."""

    items: list[dict[str, Any]]
    stats: dict[str, int]
    log: str
    code: int


class Crawler:
    """Crawls of a site, in a folder."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site = folder, site
        (folder / "spider.py").write_text(SPIDER)

    def start(self, **settings: Any) -> subprocess.Popen[str]:
        """A crawl that goes on by itself; `settings` are Scrapy's."""
        given = [
            part for name, value in settings.items()
            for part in ("-s", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
        ]
        command = [sys.executable, "-P", "-m", "scrapy", "runspider", "spider.py",
                   "-a", f"site={self.site.address}", "-O", "items.jsonl", *given]
        return subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True)

    def run(self, **settings: Any) -> Crawl:
        """A whole crawl."""
        for name in ("items.jsonl", "stats.json"):
            (self.folder / name).unlink(missing_ok=True)
        _, log = (process := self.start(**settings)).communicate(timeout=120)
        items, stats = self.folder / "items.jsonl", self.folder / "stats.json"
        return Crawl(
            [json.loads(line) for line in items.read_text().splitlines()] if items.exists() else [],
            json.loads(stats.read_text()) if stats.exists() else {},
            log, process.returncode,
        )


@pytest.fixture
def crawler(tmp_path: Path, site: Site) -> Crawler:
    pytest.importorskip("scrapy", reason="scrapy is not installed")
    return Crawler(tmp_path, site)
