"""`Shards`: a collection of shards that is asked and added to as one index.

    Shards(root, run=pool.map)
        run(function, shards) gives function(shard) of each, in their order: `map`, the `map` of a
        pool of threads or processes, or a function that sends tasks to other machines

All work is done by functions of this folder, which are given to `run` with values that pickle. An
engine may call them itself: then this class shows in which order.

Invariants
1. A call takes the map once. What it answers is of that generation. If its shards were replaced and
   removed meanwhile, it begins again with the newest map.
2. A call that writes publishes new shards first and replaces the map last. Until then nobody sees
   anything, and after an error or a kill everything is as it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from simindex.arrays import U64
from simindex.checks import require_whole
from simindex.distributed import additions, calls, deduplication, shard_check, shardmap
from simindex.distributed.creation import (
    Run,
    listed,
    options_for,
    parts_of,
    require_new,
    write_first_map,
)
from simindex.distributed.growth import split_shard
from simindex.distributed.nearness import Near
from simindex.distributed.publication import build_of, build_shard
from simindex.distributed.shard import opened
from simindex.distributed.shard_plan import By, plan_shards
from simindex.distributed.shardmap import ShardMap, read_map, write_map
from simindex.errors import CorruptFile, IndexLocked, IndexNotFound, InvalidOption
from simindex.options import IndexOptions
from simindex.pairs.clusters import MODES
from simindex.records.batch import Batch
from simindex.records.clusters import Clusters
from simindex.records.matches import Matches, TopMatches
from simindex.records.pairs import Pairs
from simindex.records.reports import Finding

TRIES = 5
"""How often a call begins anew because the shards of its map were replaced and removed."""

GONE = (IndexNotFound, CorruptFile)
"""Errors of a shard that is being removed: first half of it is there."""

Answer = TypeVar("Answer")


class Shards:
    """The shards in the folder `root`. Opening it looks at all of them, and reads no rows.

    Parameters
    ----------
    run : function
        Runs the tasks of each call: `map`, or that of an executor of `concurrent.futures`.

    Raises
    ------
    IndexNotFound, CorruptFile, FormatTooNew, RecipeMismatch, InvalidOption
        If the map or a shard is missing, damaged, or not what the map says. The error names it.
    IndexLocked
        If its shards are replaced and removed faster than a call reads them. Each call begins anew
        up to four times before that.
    """

    def __init__(self, root: str | os.PathLike[str], *, run: Run = map) -> None:
        self.root: Path = Path(root).absolute()
        self._run: Run = run
        self._read: tuple[tuple[int, ...], ShardMap] | None = None
        self.check()

    def __repr__(self) -> str:
        return f"<simindex.distributed.Shards {str(self.root)!r}>"

    @property
    def shard_map(self) -> ShardMap:
        """The newest map.

        Reading it takes 2 ms, so it is read anew only if the file is another one: it is replaced by
        a rename.
        """
        before = shardmap.version(self.root)
        read = self._read
        if read is None or read[0] != before:
            read = before, read_map(self.root)
            self._read = read
        return read[1]

    def __len__(self) -> int:
        """Number of rows of all shards."""
        return self.shard_map.rows

    @classmethod
    def build(
        cls,
        root: str | os.PathLike[str],
        batches: Batch | Sequence[Batch] | Any,
        shards: int,
        *,
        by: By = "rows",
        options: IndexOptions | None = None,
        work: str | os.PathLike[str] | None = None,
        run: Run = map,
    ) -> Shards:
        """Builds all shards of rows in memory, verifies them, and writes the map.

        Parameters
        ----------
        batches : Batch or fingerprints, or a list of them
            All rows, with unique ids, unique keys, or no names: then they are numbered from 0 on.
        shards, by, options
            As of `plan_shards`. The recipe is that of the batches.
        work : path, optional
            A folder on a local disk to build in, as of `build_shard`.

        Raises
        ------
        IndexExists
            If there is a map in `root`.
        InvalidOption, InvalidBatch
            If two rows have one id, or the rows do not fit the options.
        """
        root = require_new(root)
        given = listed(batches)
        options = options_for(given, options)
        rows: int | U64 = sum(map(len, given))
        if by != "rows" and given:
            rows = np.concatenate([batch.rows for batch in given])
        plan = plan_shards(rows, shards, by=by, options=options)
        numbers = range(len(plan))
        parts = [parts_of(plan, number, given) for number in numbers]
        build = partial(build_shard, plan, root=root, work=None if work is None else Path(work))
        write_first_map(root, tuple(run(build, numbers, parts)), run)
        return cls(root, run=run)

    # -- questions ---------------------------------------------------------------------------------

    def query(
        self, batch: Batch | Any, *, h: int | None = None, similarity: float | None = None,
        measure: str = "cosine", first: bool = False, limit: int | None = None,
        recall: float = 1.0, method: str = "auto", memory: int | None = None,
        memory_limit: int | None = None, threads: int | None = None,
    ) -> Matches:
        """The rows of all shards within h of each query, as `Index.query` returns them.

        `batch` is a Batch or fingerprints. Only shards with a region near a query are asked. With
        `first` it is one match for each query that has one. `memory`, `memory_limit` and `threads`
        are those of each task. Raises what `Index.query` raises.

        Equal byte for byte to the answer of one index of all rows: within `h` with a recall of 1,
        with ``method="scan"``, or if the queries have no weights. Otherwise, with `similarity` or a
        recall below 1, each shard fits flips of bits to its own rows: then both have that recall,
        and which matches are missing may differ. With `first`, which match it is may differ.
        """
        near = Near(h, similarity, measure, recall)
        how = {
            "first": first, "limit": limit, "recall": recall, "method": method, "memory": memory,
            "memory_limit": memory_limit, "threads": threads,
        }
        return self._current(lambda now: calls.query(self._run, now, batch, near, how))

    def top(
        self, batch: Batch | Any, k: int = 10, *, method: str = "scan", max_error: int | str = 2,
        rerank: int | None = None, recall: float | None = None, threads: int | None = None,
    ) -> TopMatches:
        """The k rows of all shards nearest to each query, as `Index.top` returns them.

        Exact by default. Slice lists, ``method="issl"``, have an answer for each shard, and
        `rerank` is that of each shard.
        """
        how = {
            "method": method, "max_error": max_error, "rerank": rerank, "recall": recall,
            "threads": threads,
        }
        return self._current(lambda now: calls.top(self._run, now, batch, k, how))

    def pairs(
        self, *, h: int | None = None, similarity: float | None = None, measure: str = "cosine",
        recall: float = 1.0, collapse_equal: bool = False, memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Iterator[Pairs]:
        """All pairs of rows within h: a part for each two shards, each ordered by (a, b).

        With `collapse_equal` the row of the smallest id represents the equal rows of its shard.
        `memory_limit` is that of the search of each task; its part of the answer is in memory, too.

        All parts are of one generation. If a shard was replaced and removed before the first part,
        the call begins again; once a part was given it raises IndexLocked. Repeat it then, without
        the parts that it gave.
        """
        near = Near(h, similarity, measure, recall)
        limits = {"memory_limit": memory_limit, "threads": threads}
        for left in reversed(range(TRIES)):
            now = self.check()
            given = False
            try:
                for part in calls.pairs(
                    self._run, now, near, limits, collapse_equal=collapse_equal
                ):
                    given = True
                    yield part
                return
            except GONE as error:
                if given or not left:
                    self._require_newest(now, "all pairs were given", error)
                if given or self.shard_map == now:
                    raise

    def clusters(
        self, *, h: int | None = None, similarity: float | None = None, measure: str = "cosine",
        recall: float = 1.0, mode: str = "star", singletons: bool = True,
        memory_limit: int | None = None, threads: int | None = None,
    ) -> Clusters:
        """Groups near-duplicates, as `Index.clusters` does with the same `mode`.

        Stars take all pairs of different fingerprints into memory, up to 160 bytes each.
        `memory_limit` is that of the search of each task.
        """
        if mode not in MODES:
            raise InvalidOption(
                f"mode={mode!r} is unknown", remedy=f"give one of {', '.join(MODES)}",
                option="mode", found=mode, expected=MODES,
            )
        near = Near(h, similarity, measure, recall)
        limits = {"memory_limit": memory_limit, "threads": threads}
        return self._current(lambda now: calls.clusters(
            self._run, self._looked_at(now), near, limits, mode=mode, singletons=singletons
        ))

    def losers(
        self, *, h: int | None = None, similarity: float | None = None, measure: str = "cosine",
        recall: float = 1.0, memory_limit: int | None = None, threads: int | None = None,
    ) -> deduplication.Losers:
        """The rows to drop so that no two rows within h are left; the smaller id stays.

        Each with the nearest row that stays, which has a smaller id. It is what `simindex dedup`
        decides of documents in the order of their ids.
        """
        near = Near(h, similarity, measure, recall)
        limits = {"memory_limit": memory_limit, "threads": threads}
        return self._current(
            lambda now: calls.losers(self._run, self._looked_at(now), near, limits)
        )

    # -- changes -----------------------------------------------------------------------------------

    def append(self, batch: Batch | Any) -> U64:
        """Adds rows, and returns their ids, uint64 (n,): the given ones, or the next numbers.

        The next number is that of rows in all shards, as in an index that has got the same rows.
        Each row goes to the smallest shard that takes it. One new version of each of these shards
        is published, then the map is replaced.

        Raises
        ------
        InvalidBatch, RecipeMismatch
            If an id or key comes twice, a shard has it already, or the batch does not fit.
        IndexLocked
            If somebody replaced the map meanwhile. Nothing has changed: repeat the call.
        IndexNotFound, CorruptFile
            If a shard is missing, or one that gets rows has other bytes than it was published with.
            Nothing has changed.
        """
        return self._changed(lambda now: additions.append(
            self._run, now, additions.named(self._run, now, batch)
        ))

    def ingest(
        self, batch: Batch | Any, *, h: int | None = None, similarity: float | None = None,
        measure: str = "cosine", recall: float = 1.0, first: bool = False, method: str = "auto",
        memory_limit: int | None = None, threads: int | None = None,
    ) -> Matches:
        """Finds the matches of a batch in all shards and in itself, and adds it: `Index.ingest`.

        `memory_limit` is that of each task, and of the matches within the batch. Answers are equal
        to those of one index where `query` says so. Raises what `append` and `query` raise, and
        TooManyMatches. After any error nothing of the batch is kept.
        """
        started = time.perf_counter()
        near = Near(h, similarity, measure, recall)
        how = {
            "first": first, "recall": recall, "method": method, "memory_limit": memory_limit,
            "threads": threads,
        }
        return self._changed(
            lambda now: additions.ingest(self._run, now, batch, near, how, started=started)
        )

    def split(self, number: int) -> ShardMap:
        """Replaces a shard by two, of rows that differ in the first leading bit that tells them
        apart; returns the new map. Together they take all rows that the shard took. Raises what
        `split_shard` and `append` raise."""
        number = require_whole(number, "number", 0)

        def divided(now: ShardMap) -> ShardMap:
            free = max(one.number for one in now.shards) + 1
            task = partial(split_shard, number=free, root=self.root)
            (halves,) = self._run(task, [now.shard(number)])
            return now.replaced(halves)

        return self._changed(lambda now: _written(divided(now)))

    def add_shard(self) -> ShardMap:
        """Adds an empty shard that takes any row, and returns the new map.

        It gets all rows until it is as large as others that take them. Every query asks it: where
        shards have regions, `split` one instead.
        """
        def larger(now: ShardMap) -> ShardMap:
            with opened(now.shards[0]) as index:
                options = replace(index.options, recipe=index.recipe)
            number = max(one.number for one in now.shards) + 1
            return now.replaced([build_of(options, number, "", [], self.root)])

        return self._changed(lambda now: _written(larger(now)))

    def sweep(self, *, older_than_s: float = shardmap.KEEP_S) -> list[str]:
        """Removes shards that no map names any more; see `shardmap.sweep`."""
        return shardmap.sweep(self.root, older_than_s=older_than_s)

    # -- looking after it --------------------------------------------------------------------------

    def check(self) -> ShardMap:
        """Looks at all shards, and returns the map. Raises as `Shards` does; reads no rows."""
        return self._current(self._looked_at)

    def verify(self) -> list[Finding]:
        """Reads all shards. An empty list means that they are what the map says."""
        return self._current(lambda now: calls.verify(self._run, now), again=bool)

    # -- within ------------------------------------------------------------------------------------

    def _looked_at(self, now: ShardMap) -> ShardMap:
        """The map, once all its shards were looked at."""
        for _ in self._run(shard_check.check_shard, now.shards):
            pass
        return now

    def _current(
        self, call: Callable[[ShardMap], Answer], *, again: Callable[[Answer], bool] | None = None
    ) -> Answer:
        """A call with the newest map; anew if its shards were replaced and removed meanwhile.

        `again` says of which answers that may be the reason. Raises IndexLocked if they were each
        time: no shard is damaged then.
        """
        why: Exception | None = None
        for _ in range(TRIES):
            now = self.shard_map
            try:
                answer = call(now)
            except GONE as error:
                if self.shard_map == now:
                    raise
                why = error
            else:
                if again is None or not again(answer) or self.shard_map == now:
                    return answer
                why = None
        raise self._replaced(now, self.shard_map, "a call ended") from why

    def _changed(self, call: Callable[[ShardMap], Answer]) -> Answer:
        """A call that replaces the map, which it takes once all shards were looked at."""
        now = self.check()
        try:
            return call(now)
        except GONE as error:
            self._require_newest(now, "a change was made", error)
            raise

    def _require_newest(self, now: ShardMap, what: str, error: Exception) -> None:
        """Raises IndexLocked, because of an error, unless a map is still the newest one."""
        found = self.shard_map
        if found != now:
            raise self._replaced(now, found, what) from error

    def _replaced(self, now: ShardMap, found: ShardMap, what: str) -> IndexLocked:
        return IndexLocked(
            f"shards of {self.root} were replaced and removed before {what}: its "
            f"map has generation {now.generation}, and the newest one {found.generation}",
            remedy="repeat the call, and give `sweep` more seconds than it takes",
            path=str(self.root), found=found.generation, expected=now.generation,
        )


def _written(new: ShardMap) -> ShardMap:
    write_map(new)
    return new
