"""Documents that a gate asks about, with their places, and what it counts of the answers.

    documents      A B A C              A and A have the same fingerprint
    questions      A B C                each asked once, with the places of its documents
    flagged        A B A C              in the order of the documents again

A template that both sides have a thousand times would otherwise be looked up a thousand times, and
each answer would go through a thousand rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import simindex
from simindex.cli.chunks import SkippedReport, chunks, places_of_rows
from simindex.cli.recipes import recipe_of_questions
from simindex.outputs.columns import key_text
from simindex.reporting.gate_findings import EXCERPT_CHARACTERS, Flagged, Place, Verdict
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import I64, U8, U64
    from simindex.cli.batches import Answer, Questions
    from simindex.cli.input_options import Reading
    from simindex.inputs.document import BadRecord, Intake
    from simindex.records.gate import GateLimits

MATCHES_AT_ONCE = 4096
"""Whose keys are fetched together."""

MOST_NOTES = 1000
"""Bad records that a report names; all are counted."""


@dataclass(slots=True)
class GateDocuments:
    """The documents or fingerprints of some inputs, and how many there were."""

    index: simindex.Index
    name: str
    """The index as the caller named it."""
    reading: Reading
    intake: Intake
    inputs: Sequence[str]
    excerpts: bool
    """Whether places have the beginning of the text."""
    documents: int = 0
    without: SkippedReport = field(default_factory=SkippedReport)
    notes: list[BadRecord] = field(default_factory=list)
    of_rows: bool = False
    """Whether the inputs hold fingerprints."""

    def __post_init__(self) -> None:
        self.of_rows = self.reading.holds_fingerprints(self.inputs)
        report = self.intake.report

        def noted(record: BadRecord) -> None:
            if len(self.notes) < MOST_NOTES:
                self.notes.append(record)
            if report is not None:
                report(record)

        self.intake.report = noted

    def batches(self) -> Iterator[Questions[list[Place]]]:
        """Questions, each with the places of its documents, in the order of the first of these.

        Raises InvalidOption at the first for texts where the index has no recipe.
        """
        for places, batch in self._documents():
            first, question = distinct(batch.rows, batch.sketches)
            grouped: list[list[Place]] = [[] for _ in range(len(first))]
            for place, at in zip(places, question.tolist(), strict=True):
                grouped[at].append(place)
            yield grouped, batch.take(first)

    def _documents(self) -> Iterator[tuple[list[Place], simindex.Batch]]:
        """Places, and what is asked."""
        if self.of_rows:
            self.intake.bits = self.index.options.bits
            for some in self.reading.fingerprints(self.inputs, self.intake):
                start, self.documents = self.documents, self.documents + len(some.batch)
                rows = some.batch.rows
                yield [
                    Place(
                        key_text(some.name(row)) or "", some.path, some.lines[row],
                        number=start + row,
                    )
                    for row in range(len(rows))
                ], simindex.Batch(rows, sketch=some.batch.sketches)
            return
        recipe = recipe_of_questions(
            self.index, self.name, "texts cannot be looked up in it",
            "give a .hex or .npy file of fingerprints",
        )
        for chunk in chunks(self.reading.documents(self.inputs, self.intake)):
            start, self.documents = self.documents, self.documents + len(chunk)
            batch = recipe.batch([document.text for document in chunk])
            self.without.add(chunk, batch.skipped)
            places = []
            for at in places_of_rows(len(chunk), batch.skipped):
                document = chunk[at]
                excerpt = document.text[: EXCERPT_CHARACTERS + 1] if self.excerpts else ""
                places.append(
                    Place(document.key, document.path, document.line, excerpt, start + at)
                )
            yield places, batch


def distinct(rows: U64, sketches: U8 | None) -> tuple[I64, I64]:
    """Of rows (n, W) the first of each kind, in their order, and of each row its kind's number."""
    import numpy as np

    from simindex.records.sketches import words_of

    whole = rows if rows.ndim == 2 else rows[:, None]
    if sketches is not None:
        whole = np.concatenate([whole, words_of(sketches)], axis=1)
    whole = np.ascontiguousarray(whole)
    words = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))[:, 0]
    _, first, kind = np.unique(words, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[kind]


@dataclass(slots=True)
class GateTally:
    """What the answers told so far."""

    limits: GateLimits
    limit: int
    """Matches of a document that are told; the answers have one more where there are more."""
    matched: int = 0
    guarantees: dict[str, None] = field(default_factory=dict)

    def flagged(
        self, questions: Sequence[Sequence[Place]], answers: Iterable[Answer]
    ) -> Iterator[Flagged]:
        """The documents with a match, of those of a batch, in their order."""
        waiting: list[tuple[int, Flagged]] = []
        for found in self._answered(questions, answers):
            while waiting and waiting[0][0] < found[0].place.number:
                yield heapq.heappop(waiting)[1]
            yield found[0]
            for one in found[1:]:
                heapq.heappush(waiting, (one.place.number, one))
        while waiting:
            yield heapq.heappop(waiting)[1]

    def _answered(
        self, questions: Sequence[Sequence[Place]], answers: Iterable[Answer]
    ) -> Iterator[list[Flagged]]:
        """The documents of each question with a match."""
        query = -1
        gathered: list[Any] = []
        for start, found in answers:
            self.guarantees[found.stats.guarantee] = None
            for at in range(0, len(found), MATCHES_AT_ONCE):
                for match in found[at : at + MATCHES_AT_ONCE]:
                    if start + match.query != query:
                        if gathered:
                            yield self._of(questions[query], gathered)
                        query, gathered = start + match.query, []
                    gathered.append(match)
        if gathered:
            yield self._of(questions[query], gathered)

    def _of(self, places: Sequence[Place], matches: list[simindex.Match]) -> list[Flagged]:
        self.matched += len(places)
        # Ids, which are drawn for keys, are others in each index.
        matches.sort(key=lambda match: (match.distance, key_text(match.key) or "", match.id))
        told, more = matches[: self.limit], len(matches) > self.limit
        return [Flagged(place, told, more) for place in places]

    def verdict(self, asked: GateDocuments, seconds: float) -> Verdict:
        """What was found in all."""
        return Verdict(
            documents=asked.documents, matched=self.matched,
            without_fingerprint=asked.without.number, bad_records=asked.intake.bad_records,
            passed=self.limits.passes(asked.documents, self.matched),
            guarantees=tuple(self.guarantees), seconds=seconds, notes=tuple(asked.notes),
        )
