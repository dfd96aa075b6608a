"""What a commit changes, as one edit of the catalog.

    rows        enough for a segment: written as one, with the pending rows
                fewer: a pending run, with as many earlier ones as there are too many
    deletions   a run of tombstones, likewise; as a file if it is long. Runs that every table has
                been purged of are dropped. And the time before which rows have expired
    samples     join the stored reservoir, unless the pending run holds them
    values      as they are, the recipe's bytes, and the options where the first rows gave them keys
                or sketches
"""

from __future__ import annotations

from collections.abc import Sequence

from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.records import Run, encode_pending
from simindex.storage.catalog.sealed_values import pack
from simindex.storage.segment_files import SegmentFiles, Written
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.table import Table
from simindex.storage.tables.tombstones import Tombstones
from simindex.writing import policy
from simindex.writing.waiting import Rows, Waiting, sorted_rows

FANOUT = 8
"""Runs of about one size that are merged."""


MAX_PENDING_KEY_BYTES = 1 << 26
"""Of the keys of pending rows, which every reader holds: with more, they are written as a segment.
"""


def composed(
    waiting: Waiting, snapshot: Snapshot, files: SegmentFiles, catalog: Catalog,
    written: list[str], *, seal_pending: bool,
) -> Edit:
    """What a commit of `waiting` changes; the names of files made for it are added to `written`."""
    head = snapshot.head
    options = files.options
    rows = waiting.rows + head.pending_rows
    edit = Edit(snapshot.value, head, generation=waiting.sequence)
    generation = edit.head.generation
    deleted = waiting.tombstones()
    dead = snapshot.tombstones
    if len(deleted) or waiting.expired > head.expired:
        dead = dead.and_later(deleted, waiting.expired)
    living, withdrawn = waiting.living()
    edit.add_rows(waiting.added)
    edit.set_times(waiting.latest, waiting.expired)
    edit.withdrawn = waiting.withdrawn + withdrawn
    samples, sealed = list(waiting.samples), list[Written]()
    full = rows >= options.seal_rows or _key_bytes(waiting, snapshot) > MAX_PENDING_KEY_BYTES
    if rows and (seal_pending or (waiting.rows and full)):
        live = [_live(table, dead) for table in snapshot.pending]
        table = sorted_rows([*live, *living], options, horizon=generation)
        samples += _drop_pending(edit, snapshot, dead, head.pending)
        if len(table):
            sealed.append(files.write(table, head.generation + 1))
            written += sealed[0][0].files
    else:
        overdue = [
            run for run in head.pending
            if policy.keeps_too_many(dead.concerning(run.horizon), snapshot.stored_rows)
        ]
        if waiting.rows or overdue:
            samples = _add_pending(edit, snapshot, dead, living, samples, files, overdue)
    if samples:
        samples.insert(0, _stored(catalog, snapshot, options.words))
        edit.set_value("reservoir", Reservoir.merged(samples, options.reservoir_rows).encode())
    for record, directories in [*waiting.spilled, *sealed]:
        edit.add_segment(record, directories)
    for name, payload in waiting.values.items():
        edit.set_value(name, payload)
    if waiting.recipe is not None:
        edit.set_value("recipe", waiting.recipe.to_bytes())
    if waiting.options is not None:
        edit.set_value("options", pack(waiting.options.to_dict()))
    horizons = [segment.horizon for segment in snapshot.segments]
    horizons += [run.horizon for run in edit.head.pending]
    horizons += [record.horizon for record, _ in waiting.spilled]
    oldest = min(horizons, default=generation)
    edit.deletions = len(deleted)
    if len(deleted) and oldest < generation:
        written += _add_tombstones(edit, snapshot, deleted, oldest, files)
    drop_settled(edit, oldest)
    return edit


def _key_bytes(waiting: Waiting, snapshot: Snapshot) -> int:
    """Of the keys of rows in memory and of pending rows."""
    heaps = [table.keys for table in snapshot.pending]
    return waiting.key_bytes + sum(len(keys.data) for keys in heaps if keys is not None)


def drop_settled(edit: Edit, oldest: int) -> None:
    """Drops earlier tombstones that every table has been purged of."""
    for run in edit.before.tombstones:
        if run in edit.head.tombstones and run.horizon <= oldest:
            edit.drop_run("tombstones", run)


def _add_tombstones(
    edit: Edit, snapshot: Snapshot, deleted: Tombstones, oldest: int, files: SegmentFiles
) -> list[str]:
    """Adds a run of them, merged with as many short ones as there are too many.

    Of those, only tombstones stay that concern a table of the oldest horizon. Returns the names of
    files that were written.
    """
    runs = edit.before.tombstones
    short = [place for place, run in enumerate(runs) if not run.file]
    chosen = policy.pick([*(runs[place].rows for place in short), len(deleted)], FANOUT)
    merged = [short[one] for one in chosen if one < len(short)] if len(short) in chosen else []
    for place in merged:
        edit.drop_run("tombstones", runs[place])
    parts = [snapshot.tombstones.runs[place].since(oldest) for place in merged]
    run = Tombstones.merged([*parts, deleted], keyed=deleted.keyed) if parts else deleted
    return edit.add_tombstones(files.deletions(run, edit.before.generation + 1), len(run))


def _add_pending(
    edit: Edit, snapshot: Snapshot, dead: Deletions, living: Sequence[Rows],
    samples: list[Reservoir], files: SegmentFiles, overdue: Sequence[Run],
) -> list[Reservoir]:
    """Adds a run of rows, with those of earlier runs; returns samples that it does not hold.

    The runs that are overdue are among these earlier ones.
    """
    runs, options = edit.before.pending, files.options
    chosen = policy.pick([*(run.rows for run in runs), sum(map(len, living))], FANOUT)
    chosen = chosen if len(runs) in chosen else []
    merged = [place for place, run in enumerate(runs) if place in chosen or run in overdue]
    rows = [_live(snapshot.pending[place], dead) for place in merged]
    table = sorted_rows([*rows, *living], options, horizon=edit.head.generation)
    parts = samples
    parts += _drop_pending(edit, snapshot, dead, [runs[place] for place in merged])
    if not len(table):
        return parts
    sample = Reservoir.merged([Reservoir.empty(options.words), *parts], options.reservoir_rows)
    edit.add_run("pending", encode_pending(table, sample), len(table))
    return []


def _drop_pending(
    edit: Edit, snapshot: Snapshot, dead: Deletions, runs: Sequence[Run]
) -> list[Reservoir]:
    """Drops runs, and accounts for their dead rows; returns their samples."""
    samples = []
    for place, run in enumerate(snapshot.head.pending):
        if run in runs:
            edit.drop_pending(run, dead.count(snapshot.pending[place]))
            samples.append(snapshot.samples[place])
    return samples


def _live(table: Table, dead: Deletions) -> Rows:
    whole = Rows(
        table.fingerprints, table.ids, table.keys, times=table.times, sketches=table.sketches
    )
    rows = dead.alive(table, 0, len(table))
    if rows is None:
        return whole
    return whole.take(rows)


def _stored(catalog: Catalog, snapshot: Snapshot, words: int) -> Reservoir:
    with catalog.reading() as reading:
        payload = reading.value(snapshot.head, "reservoir")
    if payload is None:
        return Reservoir.empty(words)
    return Reservoir.decode("the index", payload, words)
