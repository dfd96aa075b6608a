"""What an index must hold and answer, by brute force over pairs of a name and a fingerprint.

    Rows     ((name, fingerprint), ...), sorted; a name is an id or a key, a fingerprint an int
    held     the rows of an open index
    wrong_*  what an answer of one kind lacks or has too much, or ""

Imports nothing of the package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

Name = int | str
Rows = tuple[tuple[Any, int], ...]
"""Equal rows occur as often as they are stored."""

RECORDS: dict[int, tuple[int, int]] = {}
"""The sketch and the size of each fingerprint that was made with them: who makes such rows says it
here."""

Answer = Callable[[Any, Rows], str]
"""Judges what a call returned by the rows of the index."""


def held(index: Any) -> Rows:
    """All live rows of an index."""
    return tuple(sorted(row for part in index.rows() for row in named(part)))


def named(batch: Any) -> list[tuple[Any, int]]:
    """The rows of a batch that has ids or keys. One with the sketch or the size of another is no
    row that was made: its fingerprint is told as -1."""
    names = batch.keys if batch.keys is not None else batch.ids.tolist()
    values = batch.rows[:, 0].tolist()
    if batch.sketch is not None:
        records = zip(batch.sketch, batch.sizes.tolist(), strict=True)
        values = [
            value if RECORDS.get(value) == (int.from_bytes(sketch.tobytes(), "little"), size)
            else -1
            for value, (sketch, size) in zip(values, records, strict=True)
        ]
    return list(zip(names, values, strict=True))


def apart(one: int, other: int) -> int:
    """Hamming distance."""
    return (one ^ other).bit_count()


def within(rows: Rows, queries: Iterable[int], h: int) -> list[tuple[int, int, Any]]:
    """All (query, distance, name) within h, each once, sorted."""
    return sorted({
        (number, apart(query, value), name)
        for number, query in enumerate(queries) for name, value in rows
        if apart(query, value) <= h
    })


def _names(found: Any) -> list[Any]:
    keys = found.keys()
    names: list[Any] = found.id.tolist() if keys is None else keys
    return names


def wrong_matches(queries: Iterable[int], h: int, *, some: bool = False, first: bool = False
                  ) -> Answer:
    """Of `Index.query`; `some` where the recall is below 1, `first` where one match is enough."""
    asked = tuple(queries)

    def judge(found: Any, rows: Rows) -> str:
        given = sorted(zip(found.query.tolist(), found.distance.tolist(), _names(found),
                           strict=True))
        right = within(rows, asked, h)
        if first:
            held = {query for query, *_ in right}
            good = set(given) <= set(right) and sorted(held) == [query for query, *_ in given]
            return "" if good else f"first matches {given} of {right}"
        if some:
            return "" if set(given) <= set(right) else f"matches {given} of {right}"
        return "" if given == right else f"matches {given} instead of {right}"

    return judge


def wrong_ingest(added: Any, h: int, *, first: bool = False, some: bool = False) -> Answer:
    """Of `Index.ingest`: each row meets those that were there, and the rows before it."""
    new = named(added)

    def judge(found: Any, rows: Rows) -> str:
        given = sorted(zip(found.query.tolist(), found.distance.tolist(), _names(found),
                           strict=True))
        right = sorted(
            (place, distance, name)
            for place, (_, value) in enumerate(new)
            for _, distance, name in within((*rows, *new[:place]), [value], h)
        )
        if first:
            queries = sorted({query for query, *_ in right})
            good = set(given) <= set(right) and queries == [query for query, *_ in given]
        else:
            good = set(given) <= set(right) if some else given == right
        return "" if good else f"ingest matches {given} instead of {right}"

    return judge


def wrong_top(queries: Iterable[int], k: int, *, some: bool = False) -> Answer:
    """`Index.top`: distances of the k nearest documents, and that each name has its distance."""
    asked = tuple(queries)

    def judge(found: Any, rows: Rows) -> str:
        keys = found.keys()
        names = found.id.tolist() if keys is None else keys
        for number, query in enumerate(asked):
            nearest: dict[Any, int] = {}
            for name, value in rows:
                nearest[name] = min(apart(query, value), nearest.get(name, 1 << 20))
            count = int(found.found[number])
            given = list(zip(names[number][:count], found.distance[number].tolist()[:count],
                             strict=True))
            if any(nearest.get(name) != distance for name, distance in given):
                return f"top: query {number} got {given}"
            right = sorted(nearest.values())[:k]
            if not some and [distance for _, distance in given] != right:
                return f"top: query {number} got distances {given} instead of {right}"
        return ""

    return judge


Near = Callable[[int, int], int | None]
"""The distance that a call tells of two fingerprints; None if they are not near."""


def near_by_sketches(h: int, most: int) -> Near:
    """Within h, and their sketches within `most`; these are known by fingerprints."""
    def near(one: int, other: int) -> int | None:
        if apart(one, other) > h:
            return None
        distance = apart(RECORDS[one][0], RECORDS[other][0])
        return distance if distance <= most else None

    return near


def wrong_similar(queries: Iterable[int], near: Near) -> Answer:
    """Of `Index.query` by a similarity."""
    asked = tuple(queries)

    def judge(found: Any, rows: Rows) -> str:
        given = sorted(zip(
            found.query.tolist(), found.distance.tolist(), _names(found), strict=True
        ))
        right = sorted({
            (number, distance, name) for number, query in enumerate(asked) for name, value in rows
            if (distance := near(query, value)) is not None
        })
        return "" if given == right else f"matches {given}, not {right}"

    return judge


def wrong_similar_pairs(near: Near) -> Answer:
    """Of `Index.pairs` by a similarity, where no two rows are equal."""
    def judge(found: Any, rows: Rows) -> str:
        given = Counter(
            (frozenset(pair), distance) for part in found
            for pair, distance in zip(_pairs(part), part.distance.tolist(), strict=True)
        )
        right = Counter(
            (frozenset((a, b)), distance) for (a, one), (b, other) in combinations(rows, 2)
            if a != b and (distance := near(one, other)) is not None
        )
        return "" if given == right else f"pairs {given - right} more, {right - given} missing"

    return judge


def wrong_pairs(h: int) -> Answer:
    """Of `Index.pairs`, as a list of parts."""
    def judge(found: Any, rows: Rows) -> str:
        given = Counter(
            (frozenset(pair), distance) for part in found
            for pair, distance in zip(_pairs(part), part.distance.tolist(), strict=True)
        )
        right = Counter(
            (frozenset((a, b)), apart(one, other))
            for (a, one), (b, other) in combinations(rows, 2)
            if a != b and apart(one, other) <= h
        )
        return "" if given == right else f"pairs {given - right} more, {right - given} missing"

    return judge


def _pairs(part: Any) -> list[tuple[Any, Any]]:
    keys = part.keys()
    columns = (part.a.tolist(), part.b.tolist()) if keys is None else keys
    return list(zip(*columns, strict=True))


def wrong_collapsed(h: int) -> Answer:
    """Of `Index.pairs` with `collapse_equal`, where no name has two rows, and names are ids."""
    def judge(found: Any, rows: Rows) -> str:
        first: dict[int, Any] = {}
        for name, value in rows:
            first.setdefault(value, name)
        right = sorted(
            (min(a, b), max(a, b), apart(one, other))
            for (one, a), (other, b) in combinations(first.items(), 2) if apart(one, other) <= h
        )
        given = sorted(
            (a, b, distance) for part in found
            for a, b, distance in zip(part.a.tolist(), part.b.tolist(), part.distance.tolist(),
                                      strict=True)
        )
        groups = sorted(pair for part in found for pair in part.groups)
        equal = sorted((first[value], name) for name, value in rows if first[value] != name)
        return "" if (given, groups) == (right, equal) else f"collapsed {given}, groups {groups}"

    return judge


def wrong_clusters(
    h: int, *, star: bool = True, singletons: bool = True, preferred: tuple[Any, ...] = ()
) -> Answer:
    """Of `Index.clusters`, where no name has two rows; names are ids, or keys for components."""
    def judge(found: Any, rows: Rows) -> str:
        near: dict[Any, set[Any]] = {name: set() for name, _ in rows}
        for (a, one), (b, other) in combinations(rows, 2):
            if apart(one, other) <= h:
                near[a].add(b)
                near[b].add(a)
        groups = _stars(near, dict(rows), preferred) if star else _components(near)
        right = sorted(sorted(group) for group in groups if singletons or len(group) > 1)
        keys = found.keys()
        listed: dict[int, list[Any]] = {}
        for name, cluster in zip(found.id.tolist() if keys is None else keys,
                                 found.cluster.tolist(), strict=True):
            listed.setdefault(cluster, []).append(name)
        given = sorted(sorted(group) for group in listed.values())
        return "" if given == right else f"clusters {given} instead of {right}"

    return judge


def _components(near: dict[Any, set[Any]]) -> list[set[Any]]:
    groups, left = [], set(near)
    while left:
        group, due = set(), {left.pop()}
        while due:
            name = due.pop()
            group.add(name)
            due |= near[name] - group
        groups.append(group)
        left -= group
    return groups


def _stars(
    near: dict[Any, set[Any]], values: dict[Any, int], preferred: tuple[Any, ...]
) -> list[set[Any]]:
    heads: list[Any] = []
    free = set(near)

    def rank(name: Any) -> Any:
        if not preferred:
            return -len(near[name]), name
        return preferred.index(name) if name in preferred else len(preferred), name

    while free:
        head = min(free, key=rank)
        heads.append(head)
        free -= near[head] | {head}
    stars: dict[Any, set[Any]] = {head: {head} for head in heads}
    for name in set(near) - set(heads):
        nearest = min(
            near[name] & set(heads),
            key=lambda head: (apart(values[head], values[name]), head),
        )
        stars[nearest].add(name)
    return list(stars.values())
