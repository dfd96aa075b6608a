"""Draws the charts of speed in docs/plots from the tables of docs/explanation/performance.md.

    python tools/charts.py

Nothing is measured here: a chart follows the page. A bar or a point is the row of a table that its
workload, engine and number of rows name. Axes are logarithmic. Colours are readable on light and on
dark backgrounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from math import log10
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "explanation" / "performance.md"

OURS, PEER, TEXT, GRID = "#2f81f7", "#d1741f", "#7d8590", "#7d859055"
SECOND = "#3fa34d"

FAISS = "FAISS MultiHash(2,32) nflip 1"
SPEED = (
    ("within 3 bits: simindex", "online-exact", "simindex bphs:G=4,g=1,r=2", "", OURS),
    ("FAISS", "online-exact", FAISS, "simindex bphs:G=4,g=1,r=2", PEER),
    ("within 6 bits: simindex", "online-h6", "simindex bphs:G=4,g=1,r=2", "", OURS),
    ("FAISS", "online-h6", "FAISS MultiHash(2,32) nflip 3", "", PEER),
)
"""Label, workload, engine, the engine of an earlier row of the same run, and colour, at 10 M rows.
"""

LATENCY = (
    ("FAISS MultiHash, exact", "online-exact", FAISS, PEER, ("1 M", "10 M"), (12, 5)),
    (
        "simindex, exact", "online-exact", "simindex bphs:G=4,g=1", OURS, ("1 M", "10 M"),
        (-150, -16),
    ),
    ("simindex, recall 0.97", "online-psm", "simindex psm", SECOND, ("10 M", "60 M"), (12, 5)),
)
"""Label, workload, engine, colour, rows, and where the label is from the last point."""

SCALE = (
    ("one query, h = 3", "one query, µs", PEER, -8),
    ("100,000 queries, h = 6", "h = 6, queries/s", SECOND, 5),
    ("100,000 queries, h = 3", "h = 3, queries/s", OURS, 5),
    ("a row that is added", "build, rows/s", TEXT, 5),
)
"""Label, column of the table that has `rows`, colour, and how far down the label is."""

UNITS = {"": 1.0, "k": 1e3, "M": 1e6}


def rate(page: str, workload: str, engine: str, rows: str, after: str = "") -> float:
    """Queries a second in the first row of these; with `after`, the first below that engine's."""
    below = not after
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        below = below or cells[:3] == [workload, after, rows]
        if below and cells[:3] == [workload, engine, rows]:
            found = re.fullmatch(r"([\d.,]+) ?([kM]?) ?queries/s", cells[3])
            if found is not None:
                return float(found[1].replace(",", "")) * UNITS[found[2]]
    raise SystemExit(f"{PAGE} has no row of {workload}, {engine}, {rows}")


def columns(page: str) -> dict[str, list[str]]:
    """Cells by their heading of the table that has the columns of SCALE."""
    lines = page.splitlines()
    wanted = {"rows", *(heading for _, heading, _, _ in SCALE)}
    for number, line in enumerate(lines):
        headings = [cell.strip() for cell in line.strip("| ").split("|")]
        if wanted <= set(headings):
            found: dict[str, list[str]] = {heading: [] for heading in headings}
            for row in takewhile(lambda row: row.startswith("|"), lines[number + 2 :]):
                for heading, cell in zip(headings, row.strip("| ").split("|"), strict=True):
                    found[heading].append(cell.strip())
            return found
    raise SystemExit(f"{PAGE} has no table with the columns {', '.join(sorted(wanted))}")


def quantity(told: str) -> float:
    """The number of `1.2 M`, `450 k` or `12.5`; what is in brackets behind it does not count."""
    found = re.match(r"([\d.,]+) ?([kM]?)", told)
    if found is None:
        raise SystemExit(f"{told!r} is no quantity")
    return float(found[1].replace(",", "")) * UNITS[found[2]]


def _text(x: float, y: float, words: str, *, anchor: str = "start", colour: str = TEXT) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def _svg(width: int, height: int, title: str, parts: list[str]) -> str:
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14" role="img">',
        f"<title>{title}</title>", _text(10, 22, title), *parts, "</svg>", "",
    ])


def _times(
    place: Callable[[float, float], tuple[float, float]], left: int, right: int
) -> list[str]:
    """Lines across a chart of times, with what they are."""
    parts = []
    for microseconds, words in ((0.1, "0.1 µs"), (1, "1 µs"), (10, "10 µs"), (100, "100 µs")):
        _, y = place(1e6, microseconds)
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{GRID}"/>')
        parts.append(_text(left - 8, y + 5, words, anchor="end"))
    return parts


def speed(page: str) -> str:
    """Bars of queries a second."""
    left, right, top, step = 210, 600, 48, 34
    low, high = 2.0, 7.0
    bottom = top + step * len(SPEED)

    def across(value: float) -> float:
        return left + (right - left) * (log10(value) - low) / (high - low)

    parts = []
    for power, words in ((2, "100"), (3, "1,000"), (4, "10,000"), (5, "100,000"), (6, "1 million")):
        x = across(10.0**power)
        parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{GRID}"/>')
        parts.append(_text(x, bottom + 20, words, anchor="middle"))
    for number, (label, workload, engine, after, colour) in enumerate(SPEED):
        value, y = rate(page, workload, engine, "10 M", after), top + step * number
        parts.append(_text(left - 8, y + 21, label, anchor="end"))
        parts.append(
            f'<rect x="{left}" y="{y + 6}" width="{across(value) - left:.1f}" height="22" '
            f'fill="{colour}"/>'
        )
        told = f"{value / 1e6:.2f} million" if value >= 1e6 else f"{value:,.0f}"
        parts.append(_text(across(value) + 6, y + 21, told))
    title = "Exact queries a second on one core, in 10 million rows of 64 bits"
    return _svg(700, bottom + 34, title, parts)


def latency(page: str) -> str:
    """Lines of the time of a query over the number of rows."""
    left, right, top, bottom = 80, 430, 48, 300

    def place(rows: float, microseconds: float) -> tuple[float, float]:
        x = left + (right - left) * (log10(rows) - 6) / (log10(6e7) - 6)
        return x, bottom - (bottom - top) * (log10(microseconds) + 1) / 3

    parts = _times(place, left, right)
    for rows in ("1 M", "10 M", "60 M"):
        x, _ = place(float(rows.split()[0]) * 1e6, 1)
        parts.append(_text(x, bottom + 20, rows, anchor="middle"))
    for label, workload, engine, colour, sizes, (right_by, down_by) in LATENCY:
        points = [
            place(float(rows.split()[0]) * 1e6, 1e6 / rate(page, workload, engine, rows))
            for rows in sizes
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        x, y = points[-1]
        parts.append(_text(x + right_by, y + down_by, label, colour=colour))
    title = "Time of a query in a batch, on one core, by rows of the index (within 3 of 64 bits)"
    return _svg(700, bottom + 34, title, parts)


def scale(page: str) -> str:
    """Lines of the time of a row or a query over the number of rows."""
    left, right, top, bottom = 80, 480, 48, 330
    table = columns(page)
    sizes = [quantity(rows) for rows in table["rows"]]

    def place(rows: float, microseconds: float) -> tuple[float, float]:
        x = left + (right - left) * (log10(rows) - 6) / (log10(sizes[-1]) - 6)
        return x, bottom - (bottom - top) * (log10(microseconds) + 1) / 3

    parts = _times(place, left, right)
    for told, rows in zip(table["rows"], sizes, strict=True):
        parts.append(_text(place(rows, 1)[0], bottom + 20, told, anchor="middle"))
    for label, heading, colour, down_by in SCALE:
        times = [quantity(cell) for cell in table[heading]]
        if heading.endswith("/s"):
            times = [1e6 / rate for rate in times]
        points = [place(*point) for point in zip(sizes, times, strict=True)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        x, y = points[-1]
        parts.append(_text(x + 12, y + down_by, label, colour=colour))
    title = "Time of a row and of a query, on one core, by rows of the index"
    return _svg(700, bottom + 34, title, parts)


def charts() -> dict[str, str]:
    """The text of each file."""
    page = PAGE.read_text(encoding="utf-8")
    return {"speed.svg": speed(page), "latency.svg": latency(page), "scale.svg": scale(page)}


def main() -> None:
    """Write the files."""
    for name, drawn in charts().items():
        (DOCS / "plots" / name).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
