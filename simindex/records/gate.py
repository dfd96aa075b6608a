"""What a gate tells: how many of some documents an index has near-duplicates of, and if these are
too many."""

from __future__ import annotations

from simindex.checks import is_whole, require_share
from simindex.errors import InvalidOption
from simindex.records.matches import Matches
from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class GateLimits:
    """The number or share of documents with a match from which a collection does not pass."""

    max_matches: int | None = None
    max_share: float | None = None

    @classmethod
    def of(cls, max_matches: object, max_share: object) -> GateLimits:
        """The limits that were asked for; one document with a match if none was.

        Raises InvalidOption unless `max_matches` is a whole number from 1 on, and `max_share` above
        0 and at most 1.
        """
        if max_matches is None and max_share is None:
            return cls(1)
        if max_matches is not None and (not is_whole(max_matches) or max_matches < 1):
            raise InvalidOption(
                f"option max_matches={max_matches!r} is not valid",
                remedy="give a whole number from 1 on: 1 lets no match pass", option="max_matches",
                found=max_matches, expected="1 or more",
            )
        return cls(
            None if max_matches is None else int(max_matches),
            None if max_share is None else require_share(max_share, "max_share"),
        )

    def passes(self, documents: int, matched: int) -> bool:
        """Whether both numbers are below the limits."""
        if self.max_matches is not None and matched >= self.max_matches:
            return False
        return self.max_share is None or share_of(documents, matched) < self.max_share

    def __str__(self) -> str:
        told = []
        if self.max_matches is not None:
            told.append(f"{self.max_matches:,}")
        if self.max_share is not None:
            told.append(f"{100 * self.max_share:g}% of the documents")
        return " or ".join(told)


def share_of(documents: int, matched: int) -> float:
    """The share of some documents that have a match; 0 if there are no documents."""
    return matched / documents if documents else 0.0


@dataclass(frozen=True, slots=True)
class GateReport:
    """What `Index.gate` found."""

    documents: int
    """How many were asked about, those without a fingerprint included."""
    checked: int
    """How many of them have a fingerprint."""
    matched: int
    """How many of them have a match in the index."""
    matches: Matches
    """Of each document its nearest matches, at most as many as were asked for."""
    limits: GateLimits
    """From how many documents on it does not pass."""

    @property
    def share(self) -> float:
        """The share of the documents that have a match; 0 if there are no documents."""
        return share_of(self.documents, self.matched)

    @property
    def passed(self) -> bool:
        """Whether fewer documents have a match than the limits say. Never if there are documents,
        and none of them has a fingerprint: nothing was checked then."""
        if self.documents and not self.checked:
            return False
        return self.limits.passes(self.documents, self.matched)
