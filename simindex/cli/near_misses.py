"""How near the nearest document is to queries without a match: told for the first few of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import simindex
from simindex.cli.console import count
from simindex.records.batch import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simindex.cli.batches import Questions
    from simindex.distributed.collection import Shards
    from simindex.records.matches import Match

FEW = 5
"""For so many queries without a match, the nearest document is looked up."""

NEAREST_ROWS = 1 << 26
"""In an index of at most so many rows, which are all compared for it."""


class Unmatched:
    """The queries of a run that have no match: the first `few`, and how many there are."""

    def __init__(self, few: int) -> None:
        self.number: int = 0
        self._few, self._held = few, 0
        self._first: list[Questions[str]] = []

    def add(self, names: list[str], batch: Any, has: NDArray[np.bool_]) -> None:
        """Note some queries; `has` says which of them have a match."""
        import numpy as np

        places = np.flatnonzero(~has)
        self.number += len(places)
        places = places[: self._few - self._held]
        if len(places):
            self._held += len(places)
            some = batch.take(places) if isinstance(batch, Batch) else batch[places]
            self._first.append(([names[place] for place in places.tolist()], some))

    def nearest(self, index: simindex.Index | Shards) -> Iterator[tuple[str, Match]]:
        """The names of the first ones, each with its nearest document."""
        if not 0 < len(index) <= NEAREST_ROWS:
            return
        for names, batch in self._first:
            for match in index.top(batch, k=1, method="scan"):
                yield names[match.query], match

    def remark(self, index: simindex.Index | Shards, call: str) -> str | None:
        """Why `nearest` does not have all; None if it does, or if none was asked for.

        `call` is what finds those of all.
        """
        if not (self._held and len(index)):
            return None
        if len(index) > NEAREST_ROWS:
            rows = count(len(index), "row")
            return f"the nearest documents are not looked up among {rows}: {call} finds them"
        if self._held < self.number:
            return (
                f"these are the nearest documents to {self._held:,} of the {self.number:,} queries "
                f"without a match: {call} finds those of all"
            )
        return None
