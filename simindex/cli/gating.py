"""Documents that a gate asks about, with their places, and what it counts of the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import simindex
from simindex.cli.chunks import SkippedReport, chunks, places_of_rows
from simindex.cli.recipes import recipe_of_questions
from simindex.outputs.columns import key_text
from simindex.reporting.gated import EXCERPT_CHARACTERS, Flagged, Place, Verdict

if TYPE_CHECKING:
    from simindex.cli.batches import Answer, Questions
    from simindex.cli.choices import Reading
    from simindex.inputs import BadRecord, Intake
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

    def batches(self) -> Iterator[Questions[Place]]:
        """Places and rows, in the order of the inputs.

        Raises InvalidOption at the first for texts where the index has no recipe.
        """
        if self.of_rows:
            self.intake.bits = self.index.options.bits
            for some in self.reading.fingerprints(self.inputs, self.intake):
                self.documents += len(some.batch)
                yield [
                    Place(key_text(some.name(row)) or "", some.path, some.lines[row])
                    for row in range(len(some.batch))
                ], some.batch.rows
            return
        recipe = recipe_of_questions(
            self.index, self.name, "texts cannot be looked up in it",
            "give a .hex or .npy file of fingerprints",
        )
        for chunk in chunks(self.reading.documents(self.inputs, self.intake)):
            self.documents += len(chunk)
            batch = recipe.batch([document.text for document in chunk])
            self.without.add(chunk, batch.skipped)
            yield [
                Place(
                    document.key, document.path, document.line,
                    document.text[:EXCERPT_CHARACTERS + 1] if self.excerpts else "",
                )
                for document in (
                    chunk[place] for place in places_of_rows(len(chunk), batch.skipped)
                )
            ], batch


@dataclass(slots=True)
class GateTally:
    """What the answers told so far."""

    limits: GateLimits
    limit: int
    """Matches of a document that are told; the answers have one more where there are more."""
    matched: int = 0
    guarantees: dict[str, None] = field(default_factory=dict)

    def flagged(self, places: Sequence[Place], answers: Iterable[Answer]) -> Iterator[Flagged]:
        """The documents with a match, of those of a batch."""
        query = -1
        gathered: list[Any] = []
        for start, found in answers:
            self.guarantees[found.stats.guarantee] = None
            for at in range(0, len(found), MATCHES_AT_ONCE):
                for match in found[at : at + MATCHES_AT_ONCE]:
                    if start + match.query != query:
                        if gathered:
                            yield self._of(places[query], gathered)
                        query, gathered = start + match.query, []
                    gathered.append(match)
        if gathered:
            yield self._of(places[query], gathered)

    def _of(self, place: Place, matches: list[simindex.Match]) -> Flagged:
        self.matched += 1
        # Ids, which are drawn for keys, are others in each index.
        matches.sort(key=lambda match: (match.distance, key_text(match.key) or "", match.id))
        return Flagged(place, matches[: self.limit], len(matches) > self.limit)

    def verdict(self, asked: GateDocuments, seconds: float) -> Verdict:
        """What was found in all."""
        return Verdict(
            documents=asked.documents, matched=self.matched,
            without_fingerprint=asked.without.number, bad_records=asked.intake.bad_records,
            passed=self.limits.passes(asked.documents, self.matched),
            guarantees=tuple(self.guarantees), seconds=seconds, notes=tuple(asked.notes),
        )
