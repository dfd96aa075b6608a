"""A gate's report as a page for people: the verdict, and the documents with the nearest matches.

The page has the MOST_SHOWN nearest documents, which are held until the end; the other reports have
all of them.
"""

from __future__ import annotations

import heapq
from typing import TextIO

from simindex.reporting.escaping import html_name, html_text
from simindex.reporting.gate_findings import (
    EXCERPT_CHARACTERS,
    Flagged,
    Opening,
    Verdict,
    name_of,
)
from simindex.reporting.html_page import (
    CLOSING,
    facts,
    note,
    opening_of_page,
    section,
    table,
    tiles,
)

MOST_SHOWN = 1000

_STYLE = """
.bar { display: inline-block; width: 64px; height: 7px; border-radius: 4px; background: var(--line);
  margin-right: 8px; vertical-align: middle; overflow: hidden }
.bar i { display: block; height: 100%; background: var(--accent) }
td bdi { display: block }
td:first-child > bdi { font-weight: 600 }
td + td { min-width: 230px }
td + td > div { margin-bottom: 6px }
@media (max-width: 640px) { thead { display: none } td { display: block; padding-right: 0 }
  td:first-child { border-bottom: 0; padding-bottom: 0 } }
"""


class GatePage:
    """Keeps what the page shows, and writes it at the end."""

    def __init__(self, stream: TextIO, opening: Opening) -> None:
        self._stream, self._opening = stream, opening
        self._shown: list[tuple[int, int, Flagged]] = []
        """A heap with the least near document on top."""
        self._added = 0

    def add(self, flagged: Flagged) -> None:
        """A document, which goes again once there are enough nearer ones."""
        self._added += 1
        entry = (-flagged.matches[0].distance, -self._added, flagged)
        if len(self._shown) < MOST_SHOWN:
            heapq.heappush(self._shown, entry)
        elif entry > self._shown[0]:
            heapq.heapreplace(self._shown, entry)

    def end(self, verdict: Verdict) -> None:
        """The page."""
        opening = self._opening
        write = self._stream.write
        write(opening_of_page(f"Gate against {opening.index}", style=_STYLE))
        write(f"<header><h1>Gate against {html_name(opening.index)}</h1>\n")
        write(f"<p>{_inputs(opening)}</p>\n")
        kind, told = ("passed", "Passed") if verdict.passed else ("failed", "Did not pass")
        write(f'<p class="verdict {kind}">{told}</p></header>\n')
        write(tiles([
            (f"{verdict.documents:,}", "documents"),
            (f"{verdict.matched:,}", "with a match"),
            (f"{100 * verdict.share:.3g}%", "of the documents"),
            (f"{opening.limits} or more", "are too many"),
        ]))
        write(section("Documents with a match", self._table(verdict)))
        write(section("How it was asked", facts(self._facts(verdict))))
        write(CLOSING)

    def _table(self, verdict: Verdict) -> str:
        if not self._shown:
            return '<p class="soft">No document has a match.</p>\n'
        shown = [flagged for _, _, flagged in sorted(self._shown, reverse=True)]
        rows = [
            (
                f"{html_name(flagged.place.key)}"
                f'<div class="soft mono">{html_name(flagged.place.where)}</div>'
                + _excerpt(flagged.place.excerpt),
                _matches(flagged, self._opening.bits),
            )
            for flagged in shown
        ]
        made = table(("document", f"nearest in {self._opening.index[:80]}"), rows)
        left = verdict.matched - len(shown)
        if left > 0:
            made += note(
                f"The {len(shown):,} nearest are shown; {left:,} more are in the reports as JSON "
                "lines and SARIF."
            )
        return made

    def _facts(self, verdict: Verdict) -> list[tuple[str, str]]:
        opening = self._opening
        told = [
            ("a match is", html_text(opening.asked)),
            ("promise", "<br>".join(map(html_text, verdict.guarantees)) or "nothing was asked"),
            ("without fingerprint", f"{verdict.without_fingerprint:,}"),
            ("bad records", f"{verdict.bad_records:,}"),
            ("time", f"{verdict.seconds:.1f} s"),
            ("simindex", html_text(opening.version)),
        ]
        if verdict.notes:
            listed = "".join(f"<li>{html_name(note.what, 400)}</li>" for note in verdict.notes)
            told.append(("skipped", f"<ul>{listed}</ul>"))
        return told


def _inputs(opening: Opening) -> str:
    names = [html_name(name) for name in opening.inputs[:5]]
    more = f" and {len(opening.inputs) - 5:,} more" if len(opening.inputs) > 5 else ""
    return f"{', '.join(names)}{more}: {html_text(opening.asked)}"


def _excerpt(text: str) -> str:
    if not text:
        return ""
    cut = "…" if len(text) > EXCERPT_CHARACTERS else ""
    shown = html_text(" ".join(text[:EXCERPT_CHARACTERS].split()))
    return f'<p class="excerpt" dir="auto">{shown}{cut}</p>'


def _matches(flagged: Flagged, bits: int) -> str:
    lines = []
    for match in flagged.matches:
        near = 1 - match.distance / bits if match.similarity is None else match.similarity
        told = f"{match.distance} bits" if match.similarity is None else (
            f"{match.similarity:.2f} ± {match.similarity_error or 0:.2f}"
        )
        lines.append(
            f'<div><span class="bar"><i style="width:{100 * max(0.0, min(1.0, near)):.0f}%"></i>'
            f'</span><span class="mono">{told}</span> {html_name(name_of(match))}</div>'
        )
    if flagged.more:
        lines.append('<div class="soft">and perhaps more</div>')
    if len(lines) <= 3:
        return "".join(lines)
    return (
        f"{''.join(lines[:2])}<details><summary class=\"soft\">{len(lines) - 2:,} more</summary>"
        f"{''.join(lines[2:])}</details>"
    )
