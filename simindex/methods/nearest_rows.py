"""The nearest of all rows that a pass finds, kept while it goes on: one for each query."""

from __future__ import annotations

import numpy as np

from simindex.methods.base import Found, firsts, take

NO_MATCH = np.iinfo(np.uint16).max


class NearestRows:
    """The nearest row of each query so far: of equally near ones that of the lowest id, then the
    first. 14 bytes a query."""

    def __init__(self, queries: int) -> None:
        self._distance = np.full(queries, NO_MATCH, np.uint16)
        self._id = np.zeros(queries, np.uint64)
        self._row = np.zeros(queries, np.uint32)
        self._probes = self._compared = 0

    def add(self, found: Found) -> None:
        """Rows of a chunk, in any order; of chunks in their order."""
        self._probes += found.probes
        self._compared += found.compared
        found = take(found, firsts(found.query, found.row, found.id, found.distance))
        at = found.query
        better = found.distance < self._distance[at]
        better |= (found.distance == self._distance[at]) & (found.id < self._id[at])
        at = at[better]
        self._distance[at] = found.distance[better]
        self._id[at] = found.id[better]
        self._row[at] = found.row[better]

    def found(self) -> Found:
        """One for each query that has any, in the order of the queries."""
        query = np.flatnonzero(self._distance != NO_MATCH)
        return Found(
            query, self._row[query], self._distance[query], self._id[query],
            self._probes, self._compared,
        )
