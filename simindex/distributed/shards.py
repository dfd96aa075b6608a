"""`Shards`: a collection of shards that is asked and added to as one index.

    Shards(root, run=pool.map)
        run(function, shards) gives function(shard) of each, in their order: `map`, the `map` of a
        pool of threads or processes, or a function that sends tasks to other machines

All work is done by functions of this folder, which are given to `run` with values that pickle. An
engine may call them itself: then this class shows in which order.

Invariants
1. A call takes the map once. What it answers is of that generation.
2. A call that writes publishes new shards first and replaces the map last. Until then nobody sees
   anything, and after an error or a kill everything is as it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from simindex.arrays import U64
from simindex.checks import require_whole
from simindex.distributed import deduplication, forests, pairing, shardmap, verifying
from simindex.distributed.adding import places_of, require_free
from simindex.distributed.asking import (
    asked_of,
    query_shard,
    question,
    radius_of,
    settled,
    told_of,
    top_shard,
)
from simindex.distributed.building import (
    build_of,
    build_shard,
    extend_shard,
    require_recipe,
    split_shard,
)
from simindex.distributed.creation import (
    Run,
    listed,
    options_for,
    parts_of,
    require_new,
    write_first_map,
)
from simindex.distributed.labels import merge_labels
from simindex.distributed.merging import merge_matches, merge_top
from simindex.distributed.nearness import Near
from simindex.distributed.plan import By, ShardPlan, plan_shards
from simindex.distributed.shard import ids_of, opened, verify_shard
from simindex.distributed.shardmap import ShardMap, read_map, write_map
from simindex.errors import (
    CorruptFile,
    IndexNotFound,
    InvalidOption,
)
from simindex.options import IndexOptions
from simindex.pairs.clusters import MODES
from simindex.records.batch import Batch
from simindex.records.clusters import Clusters
from simindex.records.matches import Matches, TopMatches
from simindex.records.pairs import Pairs
from simindex.records.reports import Finding
from simindex.resources.memory import answer_bytes
from simindex.resources.threads import thread_count
from simindex.writing import ingestion

TRIES = 5
"""How often a call begins anew because the shards of its map were replaced and removed."""

WORTH_THREADS = 4096

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
        return self._current(lambda now: self._query(now, batch, near, how))

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
        return self._current(lambda now: self._top(now, batch, k, how))

    def pairs(
        self, *, h: int | None = None, similarity: float | None = None, measure: str = "cosine",
        recall: float = 1.0, collapse_equal: bool = False, memory_limit: int | None = None,
        threads: int | None = None,
    ) -> Iterator[Pairs]:
        """All pairs of rows within h: a part for each two shards, each ordered by (a, b).

        With `collapse_equal` the row of the smallest id represents the equal rows of its shard.
        `memory_limit` is that of the search of each task; its part of the answer is in memory, too.
        """
        now = self.check()
        near, radius = settled(now, Near(h, similarity, measure, recall))
        tasks = pairing.pair_tasks(now.shards, radius)
        task = partial(
            pairing.pair_shards, **near.options, collapse_equal=collapse_equal,
            memory_limit=memory_limit, threads=threads,
        )
        yield from self._run(task, [one for one, _ in tasks], [other for _, other in tasks])

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
        now = self.check()
        near, radius = settled(now, Near(h, similarity, measure, recall))
        told = told_of(now, near)
        if mode == "star":
            parts = self.pairs(
                **near.options, collapse_equal=True, memory_limit=memory_limit, threads=threads
            )
            grown = forests.forest_of_stars(parts)
        else:
            tasks = pairing.pair_tasks(now.shards, radius)
            task = partial(
                forests.forest_of_shards, **near.options, memory_limit=memory_limit,
                threads=threads,
            )
            grown = reduce(
                forests.merge_forests,
                self._run(task, [one for one, _ in tasks], [other for _, other in tasks]),
                forests.forest([]),
            )
        grown = grown.below()
        named = np.unique(grown.root)
        fetch = partial(forests.rows_of, ids=named, near=near)
        roots = forests.merge_rows(self._run(fetch, now.shards))
        label = partial(forests.label_shard, grown=grown, roots=roots, near=near)
        del grown, named, fetch, roots  # tasks have them until the last one was sent
        labels = iter(self._run(label, now.shards))
        del label
        return merge_labels(labels, singletons=singletons, mode=mode, **told)

    def losers(
        self, *, h: int | None = None, similarity: float | None = None, measure: str = "cosine",
        recall: float = 1.0, memory_limit: int | None = None, threads: int | None = None,
    ) -> deduplication.Losers:
        """The rows to drop so that no two rows within h are left; the smaller id stays.

        Each with the nearest row that stays, which has a smaller id. It is what `simindex dedup`
        decides of documents in the order of their ids.
        """
        return deduplication.losers(self.pairs(
            h=h, similarity=similarity, measure=measure, recall=recall, collapse_equal=True,
            memory_limit=memory_limit, threads=threads,
        ))

    # -- changes -----------------------------------------------------------------------------------

    def append(self, batch: Batch | Any) -> U64:
        """Adds rows, and returns their ids, uint64 (n,): the given ones, or the next numbers.

        Each row goes to the smallest shard that takes its leading bits. One new version of each of
        these shards is published, then the map is replaced.

        Raises
        ------
        InvalidBatch, RecipeMismatch
            If an id or key comes twice, a shard has it already, or the batch does not fit.
        IndexLocked
            If somebody replaced the map meanwhile. Nothing has changed: repeat the call.
        """
        now = self.check()
        return self._append(now, self._fitting(now, batch))

    def ingest(
        self, batch: Batch | Any, *, h: int | None = None, threads: int | None = None
    ) -> Matches:
        """Finds the matches of a batch in all shards and in itself, and adds it: `Index.ingest`.

        Raises what `append` raises. After any error nothing of the batch is kept.
        """
        started = time.perf_counter()
        now = self.check()
        given = self._fitting(now, batch)
        h = radius_of(now, h)
        workers = thread_count(threads, len(given), worth=WORTH_THREADS)
        inside = ingestion.within(
            given.rows, h, first=False, threads=workers, limit_bytes=answer_bytes()
        )
        stored = self._query(now, given, Near(h), {"threads": threads})
        ids = self._append(now, given)
        return ingestion.joined(stored, inside, ids, given.keys, first=False, started=started)

    def split(self, number: int) -> ShardMap:
        """Replaces a shard by two, of rows that differ in the first leading bit that tells them
        apart; returns the new map. Raises what `split_shard` and `append` raise."""
        now = self.check()
        shard = now.shard(require_whole(number, "number", 0))
        free = max(one.number for one in now.shards) + 1
        (halves,) = self._run(partial(split_shard, number=free, root=self.root), [shard])
        new = now.replaced(halves)
        write_map(new)
        return new

    def add_shard(self) -> ShardMap:
        """Adds an empty shard that takes any row, and returns the new map.

        It gets all rows until it is as large as others that take them. Every query asks it: where
        shards have regions, `split` one instead.
        """
        now = self.check()
        with opened(now.shards[0]) as index:
            options = replace(index.options, recipe=index.recipe)
        number = max(one.number for one in now.shards) + 1
        new = now.replaced([build_of(options, number, "", [], self.root)])
        write_map(new)
        return new

    def sweep(self, *, older_than_s: float = shardmap.KEEP_S) -> list[str]:
        """Removes shards that no map names any more; see `shardmap.sweep`."""
        return shardmap.sweep(self.root, older_than_s=older_than_s)

    # -- looking after it --------------------------------------------------------------------------

    def check(self) -> ShardMap:
        """Looks at all shards, and returns the map. Raises as `Shards` does; reads no rows."""
        def look(now: ShardMap) -> ShardMap:
            for _ in self._run(verifying.check_shard, now.shards):
                pass
            return now

        return self._current(look)

    def verify(self) -> list[Finding]:
        """Reads all shards. An empty list means that they are what the map says."""
        now = self.shard_map
        found = list(chain.from_iterable(self._run(verify_shard, now.shards)))
        if found:
            return found
        pairs = verifying.overlapping(now.shards)
        shared = self._run(
            verifying.shared_ids, [one for one, _ in pairs], [other for _, other in pairs]
        )
        return [
            Finding("error", other.path, f"{one.said} and {other.said} both have the id {ids[0]}")
            for (one, other), ids in zip(pairs, shared, strict=True) if len(ids)
        ]

    # -- within ------------------------------------------------------------------------------------

    def _current(self, call: Callable[[ShardMap], Answer]) -> Answer:
        """A call with the newest map; anew if its shards were replaced and removed meanwhile."""
        for left in reversed(range(TRIES)):
            now = self.shard_map
            try:
                return call(now)
            except (IndexNotFound, CorruptFile):  # what is being removed is first half there
                if not left or self.shard_map.generation == now.generation:
                    raise
        raise AssertionError

    def _query(
        self, now: ShardMap, batch: Batch | Any, near: Near, how: dict[str, Any]
    ) -> Matches:
        asked = question(now, batch, near)
        task = partial(query_shard, batch=asked.batch, **{**how, **asked.near.options})
        limit = 1 if how.get("first") else how.get("limit")
        return merge_matches(self._run(task, asked.shards), len(asked.batch), limit=limit)

    def _top(
        self, now: ShardMap, batch: Batch | Any, k: int, how: dict[str, Any]
    ) -> TopMatches:
        asked = asked_of(now, batch)
        require_whole(k, "k", 1)
        if k > now.rows and len(asked):
            raise InvalidOption(
                f"k={k} exceeds the {now.rows:,} rows of all shards",
                remedy=f"give at most {now.rows}" if now.rows else "append rows first",
                option="k", found=k, expected=now.rows,
            )
        task = partial(top_shard, batch=asked, k=k, **how)
        return merge_top(self._run(task, now.shards), k)

    def _fitting(self, now: ShardMap, given: Batch | Any) -> Batch:
        """The batch with names, which are not yet in any shard, before anything is written."""
        batch = asked_of(now, given)
        with opened(now.shards[0]) as index:
            options = index.options
            require_recipe(batch, index.recipe)
        plan = ShardPlan(options, ("",), (0,))
        batch = plan.named(batch, now.next_id)
        ids = ids_of(batch, options.key_secret)
        known = partial(verifying.known_names, ids=ids, batch=batch)
        require_free(ids, batch, self._run(known, now.shards), now)
        return batch

    def _append(self, now: ShardMap, batch: Batch) -> U64:
        places = places_of(now, batch)
        grown = [place for place in range(len(now.shards)) if (places == place).any()]
        parts = [batch.take(np.flatnonzero(places == place)) for place in grown]
        new = tuple(self._run(
            partial(extend_shard, root=self.root), [now.shards[place] for place in grown], parts
        ))
        if new:
            write_map(now.replaced(new))
        with opened(now.shards[0]) as index:
            return ids_of(batch, index.options.key_secret)
