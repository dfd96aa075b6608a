"""The calls of a connection as functions of a folder: each connects, asks, and ends the actors.

`connection` is what `connect` takes, such as ``address="auto"``. Several calls are faster with one
connection: starting its actors takes a second or more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from simindex.distributed.deduplication import Losers
from simindex.distributed.ray.connection import Connection
from simindex.records.batch import Batch
from simindex.records.clusters import Clusters
from simindex.records.matches import Matches, TopMatches
from simindex.records.pairs import Pairs

connect = Connection
"""Starts an actor for each shard of a folder, and returns the `Connection`."""

Root = str | os.PathLike[str]


def query(
    root: Root, batch: Batch | Any, *, h: int | None = None,
    similarity: float | None = None, measure: str = "cosine", first: bool = False,
    limit: int | None = None, recall: float = 1.0, method: str = "auto",
    memory: int | None = None, memory_limit: int | None = None, threads: int | None = None,
    **connection: Any,
) -> Matches:
    """The rows within h of each query, as `Shards.query`."""
    with connect(root, **connection) as shards:
        return shards.query(
            batch, h=h, similarity=similarity, measure=measure, first=first,
            limit=limit, recall=recall, method=method, memory=memory, memory_limit=memory_limit,
            threads=threads,
        )


def query_stream(
    root: Root, batches: Iterable[Any] | Any, *, h: int | None = None,
    similarity: float | None = None, measure: str = "cosine", first: bool = False,
    limit: int | None = None, recall: float = 1.0, method: str = "auto",
    memory: int | None = None, memory_limit: int | None = None, threads: int | None = None,
    **connection: Any,
) -> Iterator[Matches]:
    """The answers to batches, as `Connection.query_stream`."""
    with connect(root, **connection) as shards:
        yield from shards.query_stream(
            batches, h=h, similarity=similarity, measure=measure, first=first,
            limit=limit, recall=recall, method=method, memory=memory, memory_limit=memory_limit,
            threads=threads,
        )


def top(
    root: Root, batch: Batch | Any, k: int = 10, *, method: str = "scan",
    max_error: int | str = 2, rerank: int | None = None, recall: float | None = None,
    threads: int | None = None, **connection: Any,
) -> TopMatches:
    """The k rows nearest to each query, as `Shards.top`."""
    with connect(root, **connection) as shards:
        return shards.top(
            batch, k, method=method, max_error=max_error, rerank=rerank, recall=recall,
            threads=threads,
        )


def ingest(
    root: Root, batch: Batch | Any, *, h: int | None = None,
    similarity: float | None = None, measure: str = "cosine", recall: float = 1.0,
    first: bool = False, method: str = "auto", memory_limit: int | None = None,
    threads: int | None = None, **connection: Any,
) -> Matches:
    """Finds the matches of a batch and adds it, as `Shards.ingest`."""
    with connect(root, **connection) as shards:
        return shards.ingest(
            batch, h=h, similarity=similarity, measure=measure, recall=recall, first=first,
            method=method, memory_limit=memory_limit, threads=threads,
        )


def pairs(
    root: Root, *, h: int | None = None, similarity: float | None = None,
    measure: str = "cosine", recall: float = 1.0, collapse_equal: bool = False,
    memory_limit: int | None = None, threads: int | None = None, **connection: Any,
) -> Iterator[Pairs]:
    """All pairs of rows within h, as `Shards.pairs`."""
    with connect(root, **connection) as shards:
        yield from shards.pairs(
            h=h, similarity=similarity, measure=measure, recall=recall,
            collapse_equal=collapse_equal, memory_limit=memory_limit, threads=threads,
        )


def clusters(
    root: Root, *, h: int | None = None, similarity: float | None = None,
    measure: str = "cosine", recall: float = 1.0, mode: str = "star", singletons: bool = True,
    memory_limit: int | None = None, threads: int | None = None, **connection: Any,
) -> Clusters:
    """Groups of near-duplicates, as `Shards.clusters`."""
    with connect(root, **connection) as shards:
        return shards.clusters(
            h=h, similarity=similarity, measure=measure, recall=recall, mode=mode,
            singletons=singletons, memory_limit=memory_limit, threads=threads,
        )


def dedup(
    root: Root, *, h: int | None = None, similarity: float | None = None,
    measure: str = "cosine", recall: float = 1.0, memory_limit: int | None = None,
    threads: int | None = None, **connection: Any,
) -> Losers:
    """The rows to drop, as `Shards.losers`."""
    with connect(root, **connection) as shards:
        return shards.dedup(
            h=h, similarity=similarity, measure=measure, recall=recall, memory_limit=memory_limit,
            threads=threads,
        )
