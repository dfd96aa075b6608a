"""Documents with matches, and what a gate says of them, for the tests of its reports."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

from simindex import GateLimits, Match
from simindex.inputs.document import BadRecord
from simindex.reporting.gate_findings import Flagged, Opening, Place, Verdict

HOSTILE = "<script>alert(1)</script>\u202egnp.exe\x1b[31m\x00\ud800\"'&[a](http://b)"
"""A name that acts in a page, a terminal or a viewer that does not escape it."""

OPENING = Opening("known.sim", 512, 16, 0.85, GateLimits(1), ("a.jsonl",), "0.1.0")


def flagged(
    key: str = "doc", path: str = "a.jsonl", line: int | None = 3, *, distance: int = 40,
    to: str | bytes | None = "known", more: bool = False, excerpt: str = "",
) -> Flagged:
    """A document with one match, which has an id of 7."""
    match = Match(0, 7, to, distance, 0.97, 0.01)
    return Flagged(Place(key, path, line, excerpt), [match], more)


def verdict(matched: int = 1, **others: Any) -> Verdict:
    """Of a hundred documents."""
    usual: dict[str, Any] = {
        "documents": 100, "matched": matched, "without_fingerprint": 2, "bad_records": 1,
        "passed": not matched, "guarantees": ("exact",), "seconds": 1.5,
        "notes": (BadRecord("b<b>.jsonl", 9, "not JSON"),),
    }
    return Verdict(**{**usual, **others})


def written(
    make: Callable[[Any, Opening], Any], some: Iterable[Flagged], end: Verdict | None = None,
    opening: Opening = OPENING,
) -> str:
    """The report of some documents, which must be text that UTF-8 holds."""
    stream = io.StringIO()
    writer = make(stream, opening)
    listed = list(some)
    for one in listed:
        writer.add(one)
    writer.end(end or verdict(len(listed)))
    stream.getvalue().encode()
    return stream.getvalue()
