"""What is written where: data to standard output, sentences to standard error."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from simindex.outputs.columns import as_json_line, encodable

if TYPE_CHECKING:
    from simindex.records.reports import Audit, Compaction, SpotCheck

LINES_AT_ONCE = 1 << 10
"""Of a result, printed or handed over at once."""

_BREAKS_OR_TURNS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that end a line, or turn the direction of what follows, so that it hides text."""

_CONTROL = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BREAKS_OR_TURNS}]"
_OF_CELLS = f"[\x00-\x1f\x7f-\x9f{_BREAKS_OR_TURNS}\\\\]"
_SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}

MEASURING = "measuring this machine, which takes about ten seconds, or twice that if it is busy"


def emit(record: dict[str, Any]) -> None:
    """One JSON object on one line of standard output."""
    click.echo(as_json_line(record))


def say(sentence: object) -> None:
    """A line for people, on standard error; that it cannot be written changes nothing."""
    with suppress(OSError):
        click.echo(f"simindex: {shown(sentence)}", err=True)


def shown(sentence: object) -> str:
    """A sentence without characters that a terminal would obey: names of files may hold any."""
    return re.sub(_CONTROL, lambda found: ascii(found[0])[1:-1], str(sentence))


def cell(value: object) -> str:
    """A value for a tab-separated column; what would break the table, or steer a terminal, is
    escaped."""
    text = str(value)
    if text.isprintable() and "\\" not in text:
        return text
    return encodable(re.sub(_OF_CELLS, _escaped, text))


def _escaped(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 document`, `1,200 documents`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def megabytes(size_bytes: float) -> str:
    """`12 kB`, `1.3 MB`, `12 MB`."""
    if size_bytes < 1e6:
        return f"{size_bytes / 1e3:,.0f} kB" if size_bytes >= 1e3 else f"{size_bytes:.0f} bytes"
    size = size_bytes / 1e6
    return f"{size:,.1f} MB" if size < 10 else f"{size:,.0f} MB"


def duration(seconds: float) -> str:
    """A time span in the unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    for unit, length_s, most in (("min", 60, 120), ("h", 3600, 48)):
        if seconds < most * length_s:
            return f"{_tenths(seconds / length_s)} {unit}"
    return f"{_tenths(seconds / 86400)} days"


def _tenths(number: float) -> str:
    """`2.5`, `2`."""
    return f"{number:,.1f}".removesuffix(".0")


def audited(audit: Audit, *, verbose: bool = False) -> str:
    """What an audit found: recall with its 95% interval, on what, and how it was asked."""
    named = "recall " if verbose else ""
    if not audit.rows:
        return f"{named}unknown: the index keeps no weights of its rows"
    if audit.recall is None:
        return f"{named}unknown: none of {audit.rows:,} sampled documents has a near-duplicate"
    if not verbose:
        return (
            f"{_interval(audit).removeprefix('recall ')} within {audit.h} bits, "
            f"{audit.asked:g} was asked for; measured on "
            f"{count(audit.rows_with_match, 'document')} with a near-duplicate"
        )
    return (
        f"{_interval(audit)} at h={audit.h}, asked {audit.asked:g}, on "
        f"{count(audit.rows_with_match, 'row')} with a match of {audit.rows:,}, commit "
        f"{audit.generation}; by {audit.method}, {audit.guarantee}"
    )


def spot_checked(check: SpotCheck) -> str | None:
    """What repeated queries found; None if none of them has a match."""
    if check.recall is None:
        return None
    return (
        f"{_interval(check)} measured on {count(check.repeated, 'query', 'queries')} of "
        f"{check.queries:,} that were repeated exactly, {check.with_match:,} with a match"
    )


WORTH_TELLING = 1.2
"""How many times faster queries would be, at least, where a compaction is told of."""


def compacted(found: Compaction | None) -> str | None:
    """What a full compaction would bring; None where that is little."""
    if found is None or max(found.query_time_ratio, 1 / found.batch_rate_ratio) < WORTH_TELLING:
        return None
    return (
        f"{found.segments:,} are searched; `simindex compact --full` makes one query about "
        f"{found.query_time_ratio:.1f} times as fast, and 100,000 at once "
        f"{1 / found.batch_rate_ratio:.1f} times"
    )


def _interval(measured: Audit | SpotCheck) -> str:
    return (
        f"recall {measured.recall:.4f} ({measured.recall_low:.4f} - {measured.recall_high:.4f})"
    )
