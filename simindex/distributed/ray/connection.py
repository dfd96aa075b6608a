"""`Connection`: the shards of a collection on a cluster, asked and added to as one index."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np

from simindex.distributed.collection import Shards
from simindex.distributed.deduplication import Losers
from simindex.distributed.ray.blocks import batches_of
from simindex.distributed.ray.cluster import WAIT_S, Told, join
from simindex.distributed.ray.holders import MOST_CPUS, Holders
from simindex.distributed.shardmap import read_map
from simindex.records.batch import Batch
from simindex.records.matches import Matches


class Connection(Shards):
    """The shards in the folder `root`, each kept open by an actor of its own.

    It has all calls of `Shards`. Every machine of the cluster that runs an actor must have the
    folder under the same path. Close it, or use it with `with`: actors take processors and memory.
    A shard that is added or split off gets actors of its own once the cluster has processors for
    them. Until then those of the other shards open it for each task.

    Parameters
    ----------
    address : str, optional
        Of the cluster, as `ray.init` takes it: ``"auto"``, ``"local"``, or the address of another
        machine. Without effect if this process has joined one.
    replicas : int
        Actors for each shard. A task goes to the least busy one.
    cpus : float
        The part of a processor that each actor takes from what Ray shares out. It does not limit
        `threads`.
    in_flight : int
        Tasks for each actor that are sent at once, and batches of `query_stream`.
    wait_s : float
        How many seconds the actors may take to start.
    progress : function, optional
        Is told, after each task of a call, how many of how many are done.

    Raises
    ------
    MissingExtra
        If Ray is not installed.
    ClusterFailed
        If there is no cluster, or it has too few free processors for the actors.
    IndexNotFound, CorruptFile, FormatTooNew, RecipeMismatch, InvalidOption
        As `Shards`.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, address: str | None = None, replicas: int = 1,
        cpus: float = MOST_CPUS, in_flight: int = 2, wait_s: float = WAIT_S,
        progress: Told | None = None,
    ) -> None:
        self._holders = Holders(
            replicas=replicas, cpus=cpus, in_flight=in_flight, wait_s=wait_s, told=progress
        )
        self._batches = in_flight
        now = read_map(Path(root))  # what is wrong with it is said before anything starts
        join(address)
        try:
            self._holders.start(shard.number for shard in now.shards)
            super().__init__(root, run=self._holders.run)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<simindex.distributed.ray.Connection {str(self.root)!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors; calls raise ClosedIndex then. Cluster and shards stay."""
        self._holders.close()

    def query_stream(
        self, batches: Batch | Iterable[Batch | Any] | Any, *, h: int | None = None,
        similarity: float | None = None, measure: str = "cosine", first: bool = False,
        limit: int | None = None, recall: float = 1.0, method: str = "auto",
        memory: int | None = None, memory_limit: int | None = None, threads: int | None = None,
    ) -> Iterator[Matches]:
        """The answers of `query` to batches, in their order, a few of which are asked at once.

        They are equal to those of one index where `Shards.query` says so.

        Parameters
        ----------
        batches : iterable of Batch or of fingerprints, a Batch, or a Dataset of Ray
            They are taken one at a time. A single batch is cut into pieces.

        Yields
        ------
        Matches
            Of one batch each. Queries are numbered through from the first batch on.
        """
        how = {
            "h": h, "similarity": similarity, "measure": measure, "first": first, "limit": limit,
            "recall": recall, "method": method, "memory": memory, "memory_limit": memory_limit,
            "threads": threads,
        }
        waiting: deque[Future[Matches]] = deque()
        start = 0
        with ThreadPoolExecutor(self._batches, "simindex-ray") as pool:
            for batch in batches_of(batches):
                if len(waiting) >= self._batches:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(self._numbered, start, batch, how))
                start += len(batch)
            while waiting:
                yield waiting.popleft().result()

    def dedup(
        self, *, h: int | None = None, similarity: float | None = None, measure: str = "cosine",
        recall: float = 1.0, memory_limit: int | None = None, threads: int | None = None,
    ) -> Losers:
        """The rows to drop, as `losers`."""
        return self.losers(
            h=h, similarity=similarity, measure=measure, recall=recall, memory_limit=memory_limit,
            threads=threads,
        )

    def _numbered(self, start: int, batch: Batch, how: dict[str, Any]) -> Matches:
        found = self.query(batch, **how)
        query = found.query + np.int64(start)
        return Matches(query, found.id, found.distance, found.stats, found.fetch_keys)
