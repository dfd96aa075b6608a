"""Adding rows to the shards of a map: their names, to which shard each goes, and what they match.

    named       the batch with a name for each row, once nothing has these names
    append      new versions of the shards that get rows, and the next map
    ingest      both, and the matches of the rows before that
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import I64, U64, Bools
from simindex.distributed import calls, regions, shard_check
from simindex.distributed.creation import Run
from simindex.distributed.growth import extend_shard
from simindex.distributed.nearness import Near
from simindex.distributed.publication import require_fitting
from simindex.distributed.question import asked_of
from simindex.distributed.shard import ids_of, opened
from simindex.distributed.shard_plan import ShardPlan
from simindex.distributed.shardmap import ShardMap, write_map
from simindex.errors import InvalidBatch
from simindex.planning.question import Questions
from simindex.records.batch import Batch
from simindex.records.matches import Matches
from simindex.resources.memory import answer_bytes
from simindex.resources.threads import thread_count
from simindex.writing import ingestion

WORTH_THREADS = 4096


class Named(NamedTuple):
    """Rows that may be added, each with a name."""

    batch: Batch
    ids: U64


def named(run: Run, now: ShardMap, given: Batch | Any) -> Named:
    """A batch with names, which are not yet in any shard, before anything is written.

    Rows without a name get the number of rows that came before, as in an index. Raises InvalidBatch
    or RecipeMismatch unless they may be added.
    """
    batch = asked_of(now, given)
    with opened(now.shards[0]) as index:
        options = index.options
        require_fitting(batch, options, index.recipe)
    batch = ShardPlan(options, ("",), (0,)).named(batch, now.rows)
    ids = ids_of(batch, options.key_secret)
    known = partial(shard_check.known_names, ids=ids, batch=batch)
    require_free(ids, batch, run(known, now.shards), now)
    return Named(batch, ids)


def append(run: Run, now: ShardMap, rows: Named) -> U64:
    """Publishes the shards that get the rows, and then their map; returns the ids."""
    places = places_of(now, rows.batch)
    grown = [place for place in range(len(now.shards)) if (places == place).any()]
    parts = [rows.batch.take(np.flatnonzero(places == place)) for place in grown]
    new = tuple(run(
        partial(extend_shard, root=Path(now.root)), [now.shards[place] for place in grown], parts
    ))
    if new:
        write_map(now.replaced(new))
    return rows.ids


def ingest(
    run: Run, now: ShardMap, given: Batch | Any, near: Near, how: dict[str, Any], *,
    started: float,
) -> Matches:
    """See `Shards.ingest`; `how` are the other options of `query_shard`."""
    rows = named(run, now, given)
    with opened(now.shards[0]) as index:
        similar, h = near.similar_in(index), near.radius_in(index)
    share = how["recall"] if similar is None else similar.recall
    question = Questions(now.facts.bits).asked(**{**how, "recall": share}, h=h, similar=similar)
    workers = thread_count(question.threads, len(rows.batch), worth=WORTH_THREADS)
    inside = ingestion.inside(
        rows.batch, question, threads=workers,
        limit_bytes=question.memory_limit or answer_bytes(),
    )
    asked = rows.batch
    if similar is not None and question.method != "psm":
        asked = asked.without_weights()  # else the shards choose a radius for likely flips of bits
    stored = calls.query(run, now, asked, near, {**how, "first": question.first})
    ids = append(run, now, rows)
    return ingestion.joined(
        stored, inside, ids, rows.batch.keys, first=question.first, started=started
    )


def require_free(ids: U64, batch: Batch, known: Iterable[Bools], now: ShardMap) -> None:
    """Raises InvalidBatch if an id or key of a batch comes twice, or a shard has it.

    `ids` are those of its rows.
    """
    def said(row: int) -> str:
        return f"id {ids[row]}" if batch.keys is None else f"key {batch.keys[row]!r}"

    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    remedy = "an id names one row of all shards: leave out rows that are there already"
    if len(again):
        row = int(order[again[0] + 1])
        raise InvalidBatch(
            f"the {said(row)} of row {row} comes twice in the batch", remedy=remedy, row=row
        )
    for shard, there in zip(now.shards, known, strict=True):
        if there.any():
            row = int(np.argmax(there))
            raise InvalidBatch(
                f"{shard.said} has the {said(row)} of row {row} already", remedy=remedy, row=row,
                shard=shard.number,
            )


def places_of(now: ShardMap, batch: Batch) -> I64:
    """Place in the map of the shard that each row goes to, int64 (n,)."""
    places = np.full(len(batch), -1, np.int64)
    by_size = sorted(range(len(now.shards)), key=lambda place: (now.shards[place].rows, place))
    for place in by_size:
        takes = regions.inside(batch.rows, now.shards[place].region)
        places[(places < 0) & takes] = place
    if (places < 0).any():
        row = int(np.argmax(places < 0))
        raise InvalidBatch(
            f"no shard of {now.root} takes row {row}, whose first word is "
            f"{int(batch.rows[row, 0]):#018x}",
            remedy="build the collection again, with regions for all rows", row=row,
        )
    return places
