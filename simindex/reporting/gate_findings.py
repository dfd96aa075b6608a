"""What a report of a gate is made of: documents with a match, and the verdict on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from simindex.inputs.document import BadRecord
from simindex.outputs.columns import key_text
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.records.gate import GateLimits
    from simindex.records.matches import Match

EXCERPT_CHARACTERS = 240


@dataclass(frozen=True, slots=True)
class Place:
    """A document that is asked about."""

    key: str
    path: str
    line: int | None = None
    """Of its record, from 1; None where the document is a whole file, or has no line."""
    excerpt: str = ""
    """The beginning of its text."""
    number: int = 0
    """Among the documents of a run."""

    @property
    def where(self) -> str:
        """The file, with the line of the record."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Flagged:
    """A document with its matches in the index, the nearest first."""

    place: Place
    matches: Sequence[Match]
    more: bool = False
    """Whether there may be more matches than are told."""


def name_of(match: Match) -> str:
    """The key of a stored document, or its id."""
    key = key_text(match.key)
    return str(match.id) if key is None else key


def nearness_of(match: Match, bits: int) -> str:
    """How near a match is, in words."""
    if match.similarity is None:
        return f"{match.distance} of {bits} bits differ"
    return f"similarity {match.similarity:.2f} ± {match.similarity_error or 0:.2f}"


def similarity_of(match: Match) -> tuple[float, float] | None:
    """The estimated similarity of a match and its standard error, in four decimals; None without
    a similarity. The error is never 0: only exact similarities have none."""
    if match.similarity is None or match.similarity_error is None:
        return None
    return round(match.similarity, 4), max(round(match.similarity_error, 4), 1e-4)


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known before the first document is asked about."""

    index: str
    """As the caller named it."""
    bits: int
    """Of which the distances of matches count those that differ."""
    h: int
    similarity: float | None
    limits: GateLimits
    inputs: Sequence[str]
    version: str
    """Of simindex."""
    measure: str = "cosine"
    """What the similarity is."""

    @property
    def asked(self) -> str:
        """What counts as a match, in words."""
        if self.similarity is None:
            return f"within {self.h} of {self.bits} bits"
        named = "similarity" if self.measure == "cosine" else "resemblance"
        return f"{named} {self.similarity:g} or more"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in all."""

    documents: int
    matched: int
    without_fingerprint: int
    bad_records: int
    passed: bool
    guarantees: Sequence[str]
    """What the answers promise, in words; usually one."""
    seconds: float
    notes: Sequence[BadRecord] = field(default_factory=tuple)
    """The first of the bad records."""

    @property
    def share(self) -> float:
        """Of the documents, those with a match."""
        from simindex.records.gate import share_of

        return share_of(self.documents, self.matched)

    @property
    def exit_code(self) -> int:
        """That of the command."""
        return 0 if self.passed else 1
