"""A call cut into parts that memory holds: queries in their order, a lone one in windows.

    queries    | part | part  |   part    | q |  part  |       a part is a search of its own
    no room    a quarter of the part; of one query `windows`, nearest matches first
    room left  the next part is larger

Invariants
1. Parts together are the answer to all queries at once: each goes by the plan of all of them.
2. A part holds no more matches than its room.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from simindex._kernels import _native
from simindex.errors import InvalidOption, TooManyMatches
from simindex.records.matches import Matches
from simindex.resources.memory import ANSWER_SHARE

FIRST_QUERIES = 1 << 8
"""Of the first part, so that what comes first comes soon."""

GROWTH = 4
"""A part may be so many times as large as the one before, and is cut into so many."""

FITTING = 0.95
"""Of the queries that fit in proportion so many are asked: some memory is needed for any."""

MOST_QUERIES = 1 << 17
"""Of a part, unless all queries share a pass over the rows."""

PART_MATCHES = 1 << 21
"""Of a part, where no limit is given: about 170 MB while they are arranged."""

KEPT_BYTES = 40
"""Of a match that is kept while others are searched for: columns, and where its key is."""

Ask = Callable[[int, int], Matches]
"""Matches of the queries from a number up to another; raises NoRoom, or InvalidOption of option
`memory_limit` where so many queries are too many."""


def in_parts(
    queries: int,
    ask: Ask,
    alone: Callable[[int], Iterator[Matches]],
    *,
    size: int,
    most: int,
    matches: Callable[[], int],
) -> Generator[Matches, None, None]:
    """The matches of all queries; in each part `query` is a number among all of them.

    Parameters
    ----------
    alone :
        The matches of one query for which there is no room at once.
    size, most : int
        Queries of the first part, and of the largest.
    matches :
        For how many the part that was asked last has room.
    """
    start = 0
    while start < max(1, queries):
        stop = min(start + size, queries)
        try:
            found = ask(start, stop)
        except MemoryError as error:
            if stop - start > 1:
                size = -(-(stop - start) // GROWTH)
                continue
            if not isinstance(error, _native.NoRoom):
                raise
            for window in alone(start):
                yield numbered(window, start)
            start = stop
            continue
        except InvalidOption as error:
            if stop - start <= 1 or error.data.get("option") != "memory_limit":
                raise
            size = most = _fewer(stop - start, error)
            continue
        yield numbered(found, start)
        if len(found) * GROWTH <= matches():
            size = min(size * GROWTH, most)
        start = max(1, stop)


def _fewer(queries: int, error: InvalidOption) -> int:
    """Queries that fit into the limit that an error names, where it also names the least for these:
    about in proportion to both."""
    found, least = error.data.get("found"), error.data.get("expected")
    share = 1 / GROWTH if found is None or least is None else min(1.0, found / least)
    return max(1, int(FITTING * share * queries))


def numbered(found: Matches, start: int) -> Matches:
    """Matches of queries from number `start` on, by the numbers of these among all."""
    if start == 0:
        return found
    return Matches(found.query + start, found.id, found.distance, found.stats, found.fetch_keys)


def too_many(
    queries: int, limit_bytes: int, *, given: bool, first: bool = False
) -> TooManyMatches:
    """The error where the matches of so many queries would take more memory than that."""
    asked = "the query" if queries == 1 else f"the {queries:,} queries"
    limit = (
        f"memory_limit={limit_bytes}" if given else
        f"{limit_bytes >> 20:,} MiB, 1/{ANSWER_SHARE} of the memory"
    )
    return TooManyMatches(
        f"{asked} have more matches than fit into {limit}",
        remedy="ask fewer queries at a time, or take the matches in parts, with Index.query_stream"
        if first else
        "give limit=N for the N nearest of each query, or first=True for one; or take all "
        "of them in parts, with Index.query_stream",
        memory_limit=limit_bytes, queries=queries,
    )
