"""Tables of the documentation, for tests that compare a page with the code."""

from __future__ import annotations

from pathlib import Path

RECIPES = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "choosing-a-recipe.md"


def table(page: Path, heading: str, first: str) -> list[dict[str, str]]:
    """The rows of the table below a heading whose first column is called `first`.

    Each as {column: cell}, without backticks.
    """
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.lstrip("# ") == heading)
    top = next(
        place for place in range(start, len(lines)) if _cells(lines[place])[0] == first
    )
    names = _cells(lines[top])
    rows = []
    for line in lines[top + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(names, _cells(line), strict=True)))
    return rows


def sizes(cell: str) -> tuple[int, ...]:
    """n-gram sizes, as a page writes them."""
    return tuple(int(size) for size in cell.split(","))


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
