"""Which of some near-duplicates is kept, where they stand in the buffer together.

    first           the first of the input
    longest         the most characters of text
    highest:FIELD   the highest number in FIELD, or the last text, such as a date 2024-05-01
    none            none: a document with a near-duplicate is left out

Of equals the first is kept. FIELD holds numbers or texts, in all documents the same: the first one
decides. Fields of a table are texts; one that reads as a number is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray

from simindex.cli.console import say
from simindex.inputs import BadRecord, Document, Intake

POLICIES = ("first", "longest", "highest", "none")


class Unranked(Exception):
    """A document has no rank; the message says why."""


@dataclass(frozen=True, slots=True)
class Keep:
    """A policy, with its field."""

    policy: str = "first"
    field: str = ""

    def order(self, documents: Sequence[Document]) -> NDArray[np.int64]:
        """int64 (n,): the documents by rank, best first."""
        places = range(len(documents))
        if self.policy == "longest":
            lengths = [len(document.text) for document in documents]
            return np.argsort(-np.array(lengths, np.int64), kind="stable").astype(np.int64)
        if self.policy == "highest":
            values = [rank(document, self.field) for document in documents]
            # Stable also when it is reversed: of equals the first comes first.
            return np.array(sorted(places, key=values.__getitem__, reverse=True), np.int64)
        return np.arange(len(documents), dtype=np.int64)

    def ranked(self, documents: Iterable[Document], intake: Intake) -> Iterator[Document]:
        """The documents that have a rank; others are bad records."""
        if self.policy != "highest":
            yield from documents
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
                _refuse(document, str(reason), intake)
            else:
                yield document


def keep_option(_ctx: click.Context, _parameter: click.Parameter, value: str) -> Keep:
    """What --keep says."""
    policy, colon, field = value.partition(":")
    if policy not in POLICIES or bool(colon) != (policy == "highest") or (colon and not field):
        raise click.BadParameter(f"{value!r} is none of first, longest, highest:FIELD and none")
    return Keep(policy, field)


def rank(document: Document, field: str) -> int | float | str:
    """A finite number or a text; Unranked where the field holds none."""
    fields = document.fields
    if fields is None:
        raise Unranked(f"a text file has no field {field!r} to rank it by")
    if field not in fields:
        raise Unranked(f"lacks the field {field!r} to rank it by")
    value = fields[field]
    if isinstance(value, str) and document.raw is None:
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Unranked(f"field {field!r} is neither a number nor a text")
    if value == "" or (isinstance(value, float) and not math.isfinite(value)):
        raise Unranked(f"field {field!r} is {value!r}, no rank")
    return value


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _refuse(document: Document, reason: str, intake: Intake) -> None:
    intake.bad(document.path, document.line, reason)
    if intake.report is None:  # of a second pass, whose other bad records were reported before
        say(BadRecord(document.path, document.line, reason))
