"""Pages in a real browser: nothing is loaded, nothing runs but the page's own script, all fits."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRAST, browser, opened
from gate_findings import HOSTILE, flagged, written
from index_report import REPORT

from simindex.reporting.gate_page import GatePage
from simindex.reporting.index_page import write_index_page

pytestmark = pytest.mark.slow

SIZES = {"narrow": {"width": 340, "height": 700}, "wide": {"width": 1280, "height": 900}}
LEAST_CONTRAST = 4.5
"""Of the Web Content Accessibility Guidelines, for texts of usual size."""


@pytest.fixture(scope="module")
def made() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(params=["index", "gate"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "index":
        stream = io.StringIO()
        write_index_page(stream, REPORT)
        text = stream.getvalue()
    else:
        some = [flagged(HOSTILE, HOSTILE, to=HOSTILE.encode("utf-8", "replace"), excerpt=HOSTILE),
                flagged("x" * 100_000, to="y" * 100_000, excerpt="word " * 100)]
        text = written(GatePage, some)
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_a_page_fits_can_be_read_and_does_nothing(
    made: Any, path: Path, size: str, scheme: str
) -> None:
    with opened(made, path, viewport=SIZES[size], color_scheme=scheme) as (page, acts):
        assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size]["width"]
        least, where = page.evaluate(CONTRAST)
        assert least >= LEAST_CONTRAST, where
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        assert dark == (scheme == "dark")
        assert page.evaluate("document.images.length + document.scripts.length") <= 1
        assert acts == []


def test_without_scripts_all_can_be_read(made: Any, path: Path) -> None:
    with opened(made, path, java_script_enabled=False) as (page, acts):
        assert page.locator("section").first.is_visible()
        for one in page.locator("details").all():
            if one.get_attribute("open") is None:
                one.locator("summary").first.click()
        assert page.locator("#find").count() == 0 or not page.locator("#find").is_visible()
        for one in page.locator("td, dd, dt, bdi, .note, .sides").all():
            assert one.is_visible() or not (one.text_content() or "").strip()
        assert acts == []


def test_clusters_are_found_by_name_and_word(made: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with path.open("w", encoding="utf-8") as file:
        write_index_page(file, REPORT)
    with opened(made, path) as (page, acts):
        families, told = page.locator(".family"), page.locator("#told")

        def shown() -> list[bool]:
            return [one.is_visible() for one in families.all()]

        page.fill("#find", "OTHER")
        assert (shown(), told.inner_text()) == ([True, False], "1 of 2 clusters shown")
        page.fill("#find", "nobody")
        assert shown() == [False, False]
        page.fill("#find", "")
        assert (shown(), told.inner_text()) == ([True, True], "")
        assert acts == []


def test_the_policy_stops_what_would_be_injected(made: Any, tmp_path: Path) -> None:
    """Were an escape ever forgotten, the browser would still run nothing."""
    stream = io.StringIO()
    write_index_page(stream, REPORT)
    evil = (
        '<img src="http://127.0.0.1:9/x" onerror="document.title=1">'
        "<script>document.title=2</script>"
    )
    path = tmp_path / "page.html"
    path.write_text(stream.getvalue().replace("<nav>", f"{evil}<nav>"), encoding="utf-8")
    with opened(made, path) as (page, acts):
        assert page.title() not in ("1", "2")
        refused = [act for act in acts if "Content Security Policy" in act]
        assert len(refused) == 3  # the picture, what follows its failure, and the script
        assert all("127.0.0.1" in act for act in acts if act not in refused)
