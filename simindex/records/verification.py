"""What exact similarities said of the pairs that estimates leave in doubt."""

from __future__ import annotations

from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Verification:
    """How many pairs were compared by their texts, and how that ended."""

    verified: int = 0
    """Pairs with an exact similarity."""
    kept: int = 0
    """Of these, pairs that reach the similarity."""
    dropped: int = 0
    """Of these, pairs that do not."""
    overruled: int = 0
    """Of these, pairs of which the estimate said the opposite."""
    unreadable: int = 0
    """Pairs that remain as estimated, because a text was not there."""
