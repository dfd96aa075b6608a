"""Debian's Chromium, driven by Playwright: opens a page, and notes all that it does on its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser() -> Iterator[Any]:
    """A browser without a window; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with api.sync_playwright() as playwright:
        # Tests may run as root, for whom Chromium has no sandbox. The pages are our own.
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()


@contextmanager
def opened(made: Any, path: Path, **options: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what it asked for, showed or complained of, besides itself."""
    context = made.new_context(**options)
    page, acts = context.new_page(), []
    page.on("console", lambda message: acts.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: acts.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (acts.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: acts.append(f"request: {request.url}"))
    page.goto(path.as_uri())
    acts.remove(f"request: {path.as_uri()}")
    try:
        yield page, acts
    finally:
        context.close()


CONTRAST = """
() => {
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(Number).map(one => {
      const part = one / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$/.test(colour) && colour !== "transparent") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  let least = 21, where = "";
  for (const element of document.querySelectorAll("main *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.closest("svg, script, option")) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(ground(element))];
    const found = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (found < least) { least = found; where = element.outerHTML.slice(0, 120); }
  }
  return [least, where];
}
"""
"""The least contrast of a text with what is behind it, and which text that is."""
