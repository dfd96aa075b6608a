"""Which of some near-duplicates is kept.

    first           the first of the input
    longest         the most characters of text
    newest          the latest date, in --date-field or the first of DATE_FIELDS that there is
    highest:FIELD   the highest number in FIELD, or the last text, such as a name
    none            none: a document with a near-duplicate is left out

Of equals the first is kept. FIELD holds numbers or texts, in all documents the same: the first one
decides. Fields of a table are texts; one that reads as a number is a number. A date is ISO 8601,
also with slashes, or as in mail and feeds (RFC 5322), or a number of seconds or milliseconds since
1970; a document without one, or with another, is older than all others.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field as attribute
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.console import count, say
from simindex.inputs.document import BadRecord, Document, Intake
from simindex.inputs.fields import MISSING, field_names, field_of
from simindex.inputs.required_field import having, lacks
from simindex.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POLICIES = ("first", "longest", "newest", "highest", "none")

WRITTEN = tuple("highest:" if policy == "highest" else policy for policy in POLICIES)
"""As they are typed, up to a field."""

DATE_FIELDS = (
    "date", "time", "timestamp", "datetime", "published", "published_at", "updated", "updated_at",
    "modified", "created", "created_at",
)
"""Where a date is looked for unless the caller names the field."""

MILLISECONDS = 1e11
"""A larger number is one of milliseconds: as seconds, it is after the year 5000."""


class Unranked(Exception):
    """A document has no rank; the message says why."""


_OF_MAIL = (
    r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d(?::\d\d)? "
    r"(?:[+-]\d{4}|GMT|UTC?|Z|[ECMP][SD]T)"
)
"""`Mon, 05 Feb 2024 10:00:00 GMT`"""

_WITH_SLASHES = r"\A(\d{4})/(\d\d)/(\d\d)(?!\d)"


@dataclass(slots=True)
class Dates:
    """Dates that were looked for and not there, or that nobody can read."""

    missing: int = 0
    """Documents without a date, those with an unreadable one among them."""
    unreadable: int = 0
    first: str = ""
    """Where the first one is that cannot be read, and what it is."""

    def told(self, field: str) -> Iterator[str]:
        """What to say of them; `field` is where the caller looks for dates, if only there."""
        if self.unreadable:
            yield (
                f"{count(self.unreadable, 'date')} of no known form, the first in {self.first}: "
                "older than all others; write dates as 2024-05-01 or 2024-05-01T12:00:00Z"
            )
        without = self.missing - self.unreadable
        if without:
            yield (
                f"{count(without, 'document')} without a date in "
                f"{field or ', '.join(DATE_FIELDS)}: older than all others"
            )


@dataclass(frozen=True, slots=True)
class Keep:
    """A policy, with its field."""

    policy: str = "first"
    field: str = ""
    dates: Dates = attribute(default_factory=Dates)

    @property
    def is_by_rank(self) -> bool:
        """Whether it takes more than the order of the input to decide."""
        return self.policy in ("longest", "newest", "highest")

    def order(self, documents: Sequence[Document]) -> NDArray[np.int64]:
        """int64 (n,): the documents by rank, best first."""
        import numpy as np

        ranks = self.ranks()
        ranks.extend(map(self.rank_of, documents))
        return self.best_first(ranks, np.arange(len(documents), dtype=np.int64))

    def ranks(self) -> Any:
        """A new list for ranks of documents, as small as they allow."""
        return [] if self.policy == "highest" else array("d")

    def rank_of(self, document: Document) -> Any:
        """The rank of a document, of which more is better."""
        if self.policy == "longest":
            return len(document.text)
        if self.policy == "newest":
            return self._date_of(document)
        return rank(document, self.field) if self.policy == "highest" else 0

    def best_first(self, ranks: Any, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64 (n,): numbers of the `places` in `ranks`, best rank first, of equals in order."""
        import numpy as np

        if self.policy == "highest":
            listed = places.tolist()
            # Stable also when it is reversed: of equals the first comes first.
            by_rank = sorted(
                range(len(listed)), key=lambda row: ranks[listed[row]], reverse=True
            )
            return np.array(by_rank, np.int64)
        values = np.frombuffer(ranks, np.float64) if len(ranks) else np.empty(0)
        return np.argsort(-values[places], kind="stable").astype(np.int64)

    def _date_of(self, document: Document) -> float:
        fields = document.fields or {}
        names = (self.field,) if self.field else DATE_FIELDS
        for name in names:
            value = field_of(fields, name)
            if value not in (MISSING, None, ""):
                found = date(value)
                if found is not None:
                    return found
                self.dates.unreadable += 1
                if self.dates.unreadable == 1:
                    self.dates.first = f"{document.place}: {name} is {value!r:.60}"
                break
        self.dates.missing += 1
        return -math.inf

    def dated(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents; InvalidInput if the first ones have no date in the field of dates."""
        if self.policy != "newest" or not self.field:
            yield from documents
            return
        yield from having(
            documents, self.field, "--date-field", lambda document: lacks(document, self.field)
        )

    def ranked(self, documents: Iterable[Document], intake: Intake) -> Iterator[Document]:
        """The documents that have a rank; others are bad records."""
        if self.policy != "highest":
            yield from self.dated(documents)
            return
        kind: type | None = None
        for document in documents:
            try:
                value = rank(document, self.field)
                if kind is None:
                    kind = str if isinstance(value, str) else float
                elif (kind is str) is not isinstance(value, str):
                    found, before = ("text", "numbers") if kind is float else ("a number", "texts")
                    raise Unranked(f"field {self.field!r} is {found}, after {before} before it")
            except Unranked as reason:
                _refuse(document, self.field, str(reason), intake)
            else:
                yield document


def keep_option(_ctx: click.Context, _parameter: click.Parameter, value: str) -> Keep:
    """What --keep says."""
    policy, colon, field = value.partition(":")
    if policy not in POLICIES or bool(colon) != (policy == "highest") or (colon and not field):
        raise click.BadParameter(
            f"{value!r} is not a policy: give first, longest, newest, highest:FIELD or none"
        )
    return Keep(policy, field)


def date(value: object) -> float | None:
    """Seconds since 1970 of a date; None if it is none. Without a time zone it is UTC."""
    number = _number(value) if isinstance(value, str) else value
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        seconds = float(number) if abs(number) < sys.float_info.max else math.inf
        if isinstance(value, str) and len(value) == 8 and value.isdigit():
            pass  # 20240501
        elif math.isfinite(seconds):
            return seconds / 1000 if abs(seconds) >= MILLISECONDS else seconds
        else:
            return None
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if re.fullmatch(_OF_MAIL, text):
            from email.utils import parsedate_to_datetime

            found = parsedate_to_datetime(text)
        else:
            found = datetime.fromisoformat(re.sub(_WITH_SLASHES, r"\1-\2-\3", text))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def rank(document: Document, field: str) -> int | float | str:
    """A finite number or a text; Unranked where the field holds none."""
    fields = document.fields
    if fields is None:
        raise Unranked(f"a text file has no field {field!r} to rank it by")
    value = field_of(fields, field)
    if value is MISSING:
        raise Unranked(f"has no field {field!r} to rank it by")
    if isinstance(value, str) and document.raw is None:
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Unranked(f"field {field!r} is neither a number nor a text")
    if value == "" or (isinstance(value, float) and not math.isfinite(value)):
        raise Unranked(f"field {field!r} is {value!r}, which has no rank")
    return value


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _refuse(document: Document, field: str, reason: str, intake: Intake) -> None:
    hint = None
    fields = document.fields
    if fields is None:
        hint = "give --keep first or longest, or the documents as JSON lines with this field"
    elif field_of(fields, field) is MISSING:
        hint = f"name a field that all documents have (this one has {field_names(fields)})"
    intake.bad(document.path, document.line, reason, hint=hint)
    if intake.report is None:  # of a second pass, whose other bad records were reported before
        say(BadRecord(document.path, document.line, reason))
