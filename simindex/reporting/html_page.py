"""A page that is one file: its styles are within it, and it fetches nothing.

Colours follow the reader's light or dark setting. Without JavaScript all of it can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simindex.reporting.escaping import html_text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser lets the page load: nothing from elsewhere."""

STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1b1f27;
  --soft: #5b6472; --line: #dfe3ea; --accent: #2459b3; --accent-soft: #d9e6fb; --good: #157347;
  --good-soft: #dcf3e6; --bad: #b3261e; --bad-soft: #fbe3e1; --code: #eef1f5; --warm: #b26a00 }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1c2027; --ink: #e6e9ef;
  --soft: #9aa4b2; --line: #303641; --accent: #7aa7ff; --accent-soft: #22324f; --good: #63d297;
  --good-soft: #173426; --bad: #ff8a80; --bad-soft: #43201e; --code: #262b34; --warm: #f0b35b } }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 64px }
header h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere }
header p { margin: 0; color: var(--soft); overflow-wrap: anywhere }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin-top: 18px }
section > h2 { font-size: 17px; margin: 0 0 12px }
h3 { font-size: 14px; margin: 18px 0 6px; color: var(--soft); font-weight: 600 }
.note { color: var(--soft); font-size: 13.5px; margin: 8px 0 0; overflow-wrap: anywhere }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin-top: 18px }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 16px }
.tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.3;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.tile span { color: var(--soft); font-size: 13px }
.verdict { display: inline-block; border-radius: 999px; padding: 3px 14px; font-weight: 650;
  margin: 14px 0 0 }
.passed { background: var(--good-soft); color: var(--good) }
.failed { background: var(--bad-soft); color: var(--bad) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: 14px }
th, td { text-align: left; padding: 7px 14px 7px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere }
th { color: var(--soft); font-weight: 600; font-size: 13px; white-space: nowrap }
tr:last-child > td { border-bottom: 0 }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap;
  overflow-wrap: normal }
dl { display: grid; grid-template-columns: minmax(110px, max-content) 1fr; gap: 5px 18px;
  margin: 0 }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
code, .mono { font-family: ui-monospace, "SF Mono", "Cascadia Mono", "Noto Sans Mono", monospace;
  font-size: 12.5px }
code { background: var(--code); border-radius: 4px; padding: 1px 5px; overflow-wrap: anywhere }
details > summary { cursor: pointer }
.soft { color: var(--soft) }
.excerpt { color: var(--soft); font-size: 13px; margin: 3px 0 0; white-space: pre-wrap;
  overflow-wrap: anywhere }
svg { display: block; width: 100%; height: auto }
@media (max-width: 560px) { main { padding: 18px 12px 40px } section { padding: 14px }
  header h1 { font-size: 21px } dl { grid-template-columns: minmax(72px, max-content) 1fr;
    gap: 5px 12px } .tile b { font-size: 20px } }
@media print { body { background: #fff } section, .tile { break-inside: avoid } }
"""


def opening_of_page(title: str, *, style: str = "", policy: str = POLICY) -> str:
    """The page up to what is seen of it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html_text(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n"
        "<body>\n<main>\n"
    )


CLOSING = "</main>\n</body>\n</html>\n"


def tiles(values: Iterable[tuple[str, str]]) -> str:
    """Figures with their names, the most important first."""
    inner = "".join(
        f'<div class="tile"><b>{html_text(value)}</b><span>{html_text(name)}</span></div>'
        for value, name in values
    )
    return f'<div class="tiles">{inner}</div>\n'


def section(title: str, content: str, *, anchor: str = "") -> str:
    """A card with a heading. `content` is markup."""
    named = f' id="{anchor}"' if anchor else ""
    return f"<section{named}><h2>{html_text(title)}</h2>\n{content}</section>\n"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()
) -> str:
    """A table whose cells are markup; columns of `numbers` are set to the right."""
    right = [' class="number"' if place in numbers else "" for place in range(len(headings))]
    head = "".join(
        f'<th scope="col"{kind}>{html_text(name)}</th>'
        for name, kind in zip(headings, right, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(
            f"<td{kind}>{cell}</td>" for cell, kind in zip(row, right, strict=True)
        ) + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>'
        "</table></div>\n"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with values, which are markup."""
    inner = "".join(f"<dt>{html_text(name)}</dt><dd>{value}</dd>\n" for name, value in pairs)
    return f"<dl>{inner}</dl>\n"


def note(text: str) -> str:
    """A remark below a table or chart."""
    return f'<p class="note">{html_text(text)}</p>\n'
