"""The one writer of an index: what is buffered, what a commit makes of it.

    append   rows collect in memory; every batch_rows of them are written as a segment file that is
             not yet part of the index
    commit   one LMDB transaction makes all of it live, with the tombstones; fewer rows than a
             segment takes go to the catalog as a pending run, and pending runs are sealed into a
             segment once they are that many together
    discard  forgets the buffer and unlinks the files
    merges   segments that became too many are merged by threads (merging.py); a commit starts them,
             and installs those that have ended in a transaction of its own

The commit rule: data is durable under its final name before the transaction that names it, and
files are unlinked after the transaction that stops naming them. An error inside that transaction
leaves its outcome unknown, so the writer then refuses to go on, and unlinks nothing more.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

from simindex.arrays import U64
from simindex.errors import (
    ClosedIndex,
    CommitFailed,
    CorruptFile,
    ReadOnlyIndex,
    SimindexError,
    raised_by_a_handler,
)
from simindex.options import IndexOptions, checked_structures
from simindex.records.batch import Batch
from simindex.records.reports import Progress
from simindex.storage.catalog import pending
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.edit import Edit
from simindex.storage.catalog.head import Run
from simindex.storage.catalog.registry import check_place
from simindex.storage.catalog.values import pack, seal
from simindex.storage.files import locks, removal
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.names import TEMPORARY
from simindex.storage.files.verification import verified
from simindex.storage.opened import catalog_is_older
from simindex.storage.segmentfiles import Merged, SegmentFiles, Written
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables import permuted, slicelist
from simindex.storage.tables.designs import checked_designs, slice_design
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import NAME, StructureRecord, generation_of
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.segment import Segment
from simindex.storage.tables.table import Table, sort_table
from simindex.storage.tables.tombstones import Tombstones
from simindex.writing import policy
from simindex.writing.buffer import Buffer, Mark, Rows
from simindex.writing.merges import Merge, Merges, State, put_off, release

OURS = (NAME, permuted.NAME, slicelist.NAME)
"""Names of the files that a writer makes, and removes where no commit names them."""

MAX_SEGMENTS = 64
"""From so many on, those being merged included, a commit waits until a merge has ended."""

PATIENCE = 0.6
"""Share of its own time that a commit waits for merges which are late: the less each waits, the
more alike they are."""

log = logging.getLogger("simindex")

_Before = tuple[Mark, list[Reservoir], int, int]
"""What was buffered before a call: the buffer, and how many samples and spilled segments."""

STAGED_PAGES = 16
"""Pages of header directories, 128 KiB each, that one commit stores for a merged segment. One of
12.8 M rows has 25 MB of them; all in one transaction took as long as the rest of the commit."""


class Writer:
    """Holds the index's lock from creation to `close`."""

    def __init__(
        self, directory: Path, catalog: Catalog, *, index: bytes, options: IndexOptions
    ) -> None:
        self._directory, self._segments = directory, directory / "segments"
        self._catalog, self._index, self._options = catalog, index, options
        self._files = SegmentFiles(
            self._segments, index, options, tuple(checked_designs(options))
        )
        self._merges = Merges()
        self._retired: list[Segment] = []
        self._held: list[Descriptor] = []
        self._commit_s = 0.0
        self._failed: str | None = None
        self._lock: Descriptor | None = None
        try:
            self._lock = locks.lock(directory / "LOCK")
            self._snapshot_value, self._head = self._read_head()
            self._forget()
            self.remove_strays()
        except BaseException:
            self.close()
            raise

    def _read_head(self) -> tuple[bytes, Any]:
        with self._catalog.reading() as reading:
            return reading.head()

    def _forget(self) -> None:
        self._buffer = Buffer(self._options, self._head.generation)
        self._spilled: list[Written] = []
        self._drawn: list[Reservoir] = []
        self._values: dict[str, bytes] = {}

    def close(self) -> None:
        """Ends merges and gives the lock back; what was not committed is discarded.

        May be called again, after an interrupt.
        """
        try:
            self.cancel_merges()
            self.release_retired()
        finally:
            if self._lock is not None:
                locks.unlock(self._lock)

    def forget_lock(self) -> None:
        """In a forked child: closes the inherited descriptor; the lock stays the parent's."""
        if self._lock is not None:
            self._lock.close()

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        buffer = self._buffer
        return bool(buffer.rows or buffer.deletions or self._spilled or self._values)

    @property
    def appended(self) -> int:
        """Rows ever appended, the buffered ones included."""
        return int(self._head.appended) + self._buffer.appended

    @property
    def generation(self) -> int:
        """Of the last commit."""
        return int(self._head.generation)

    def refuse(self, reason: str) -> None:
        """Changes nothing from now on, and unlinks nothing that a commit may have named."""
        if self._failed is None:
            self._failed = reason

    def check_usable(self) -> None:
        """Raises ReadOnlyIndex once a commit has failed, or a change was cut off."""
        self._check_usable()

    def _check_usable(self) -> None:
        if self._failed is not None:
            raise ReadOnlyIndex(
                f"{self._directory} is no longer written by this handle: {self._failed}. "
                "Close it and open the index again, which holds its last commit",
                path=str(self._directory),
            )

    def remove_strays(self) -> None:
        """Unlinks what an interrupted writer left; never on a catalog older than its files."""
        newest = self._head.generation + 1
        try:
            found = sorted(self._segments.iterdir())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CorruptFile(
                f"{self._segments} is missing: bring it back, with the files in it",
                path=str(self._segments),
            ) from error
        ours = [
            path for path in found
            if any(name.fullmatch(path.name) for name in OURS) and not path.is_dir()
        ]
        live = set(self._head.segments)
        if any(path.suffix != ".rows" for path in ours):
            live |= self._live_structures()
        strays = [path for path in ours if path.name not in live]
        for path in strays:
            if generation_of(path.name) > newest:
                raise catalog_is_older(path)
        strays += [path for path in found if TEMPORARY.fullmatch(path.name)]
        staged = [path for path in strays if self._catalog.staged(path.name)]
        for path in strays:
            if path not in staged:
                removal.remove(path)
        if staged:
            try:
                self._catalog.unstage(self._snapshot_value, [path.name for path in staged])
            except OSError as error:
                if raised_by_a_handler(error):
                    raise
                log.warning("what an interrupted merge left is not removed yet: %s", error)
                return
            for path in staged:
                removal.remove(path)

    def _live_structures(self) -> set[str]:
        """Names of the live segments' files of permuted tables and slice lists."""
        with self._catalog.reading() as reading:
            records = [reading.segment(self._head, name) for name in self._head.segments]
        return {structure.name for record in records for structure in record.structures}

    # -- buffering ---------------------------------------------------------------------------------

    def append(self, batch: Batch) -> U64:
        """Buffers the rows of a checked batch, all or none; returns their ids, uint64 (n,)."""
        self._check_usable()
        ordinal = self.appended
        keys = None
        if batch.keys is not None:
            keys = KeyHeap.of(batch.keys)
            ids = np.ascontiguousarray(keys.hashes(self._options.stored_secret)[:, 0])
        elif batch.ids is not None:
            ids = batch.ids.copy()
        else:
            ids = np.arange(ordinal, ordinal + len(batch), dtype=np.uint64)
        before = self._mark()
        try:
            self._buffer_rows(batch, ids, keys, ordinal)
        except BaseException:
            self._restore(before)
            raise
        return ids

    def replace(self, batch: Batch) -> U64:
        """`delete` of the ids or keys of a checked batch, then `append` of it; all or none."""
        self._check_usable()
        before = self._mark()
        try:
            self.delete(None if batch.keys is not None else batch.ids, batch.keys)
            return self.append(batch)
        except BaseException:
            self._restore(before)
            raise

    def _mark(self) -> _Before:
        return self._buffer.mark(), self._drawn, len(self._drawn), len(self._spilled)

    def _restore(self, before: _Before) -> None:
        """Buffers as they were, and no file of what was spilled since."""
        mark, drawn, drawn_count, spilled_count = before
        more = self._spilled[spilled_count:]
        del drawn[drawn_count:], self._spilled[spilled_count:]
        self._drawn = drawn
        self._buffer.restore(mark)
        self._files.remove(record for record, _ in more)  # last: it may be interrupted

    def _buffer_rows(self, batch: Batch, ids: U64, keys: KeyHeap | None, ordinal: int) -> None:
        start, count, buffer = 0, len(batch), self._buffer
        while start < count:
            stop = min(count, start + self._options.batch_rows - buffer.rows)
            buffer.append(
                batch.rows[start:stop].copy(), ids[start:stop].copy(),
                None if keys is None else keys.slice(start, stop),
            )
            if batch.weights is not None and self._options.reservoir_rows:
                self._draw(batch, start, stop, ordinal)
            start = stop
            if buffer.rows >= self._options.batch_rows:
                self._spill()

    def _draw(self, batch: Batch, start: int, stop: int, ordinal: int) -> None:
        assert batch.weights is not None
        size = self._options.reservoir_rows
        self._drawn.append(
            Reservoir.drawn(
                batch.rows[start:stop], batch.weights[start:stop], first=ordinal + start, size=size
            )
        )
        if sum(len(part) for part in self._drawn) > 2 * size:
            self._drawn = [Reservoir.merged(self._drawn, size)]

    def _spill(self) -> None:
        living, withdrawn = self._buffer.living()
        table = self._sorted("", living, self._buffer.sequence)
        if len(table):
            self._spilled.append(self._files.write(table, self._head.generation + 1))
        self._buffer.spilled(withdrawn)

    def delete(self, ids: U64 | None, keys: list[str] | list[bytes] | None) -> int:
        """Buffers deletions of all rows before them; returns how many ids or keys were given."""
        self._check_usable()
        self._buffer.delete(
            None if ids is None else ids.copy(), None if keys is None else KeyHeap.of(keys)
        )
        return len(ids) if ids is not None else len(keys or [])

    def set_value(self, name: str, payload: bytes) -> None:
        """Buffers a whole value of the catalog."""
        self._check_usable()
        self._values[name] = payload

    def discard(self) -> None:
        """Forgets everything since the last commit."""
        spilled = self._spilled
        self._forget()
        if self._failed is None:
            self._files.remove(record for record, _ in spilled)  # last: it may be interrupted

    # -- committing --------------------------------------------------------------------------------

    def commit(self, snapshot: Snapshot, *, seal_pending: bool = False) -> bool:
        """Makes the buffer durable and visible, all or nothing. Returns whether there was any.

        `snapshot` is the index as of the last commit. `seal_pending` writes pending rows as a
        segment, however few they are.
        """
        self._check_usable()
        rows = self._buffer.rows + self._head.pending_rows
        if not self.changed and not (seal_pending and rows):
            return False
        self._check_alone(snapshot)
        began = thread_time()
        written: list[Written] = []
        try:
            edit = self._edited(snapshot, written, seal_pending=seal_pending)
        except BaseException:
            self._files.remove(record for record, _ in written)
            raise
        self._finish(edit, [name for record, _ in written for name in record.files])
        self._commit_s = thread_time() - began
        return True

    def _check_alone(self, snapshot: Snapshot) -> None:
        """Refuses to change an index that another writer has changed, or may change now.

        LOCK keeps others out for as long as its name leads to it.
        """
        if snapshot.value != self._snapshot_value:
            self._failed = "another writer has changed the index, though this one held LOCK"
        elif self._lock is None or not locks.is_locked(self._lock, self._directory / "LOCK"):
            self._failed = "its LOCK was removed or replaced, so that another writer may be open"
        else:
            return
        raise CommitFailed(
            f"{self._directory} was not changed: {self._failed}. Nothing may remove LOCK while a "
            "writer is open. Open the index again, and repeat what was not committed",
            path=str(self._directory),
        )

    def _edited(self, snapshot: Snapshot, written: list[Written], *, seal_pending: bool) -> Edit:
        """What the commit changes in the catalog; a segment made for it is added to `written`."""
        buffer = self._buffer
        rows = buffer.rows + self._head.pending_rows
        edit = Edit(self._snapshot_value, self._head, generation=buffer.sequence)
        generation = edit.head.generation
        deleted = buffer.tombstones()
        dead = snapshot.tombstones
        if len(deleted):
            dead = Tombstones.merged([dead, deleted], keyed=deleted.keyed)
        living, withdrawn = buffer.living()
        edit.add_rows(buffer.appended)
        edit.withdrawn = buffer.withdrawn + withdrawn
        samples = list(self._drawn)
        if rows and (seal_pending or (buffer.rows and rows >= self._options.seal_rows)):
            live = [self._live(table, dead) for table in snapshot.pending]
            table = self._sorted("", [*live, *living], generation)
            samples += self._drop_pending(edit, snapshot, dead, list(self._head.pending))
            if len(table):
                written.append(self._files.write(table, self._head.generation + 1))
        elif buffer.rows:
            samples = self._add_pending(edit, snapshot, dead, living, samples)
        if samples:
            size = self._options.reservoir_rows
            samples.insert(0, self._stored_reservoir())
            edit.set_value("reservoir", Reservoir.merged(samples, size).encode())
        for record, directories in [*self._spilled, *written]:
            edit.add_segment(record, directories)
        for name, payload in self._values.items():
            edit.set_value(name, payload)
        horizons = [segment.horizon for segment in snapshot.segments]
        horizons += [run.horizon for run in edit.head.pending]
        horizons += [record.horizon for record, _ in self._spilled]
        oldest = min(horizons, default=generation)
        edit.deletions = len(deleted)
        if len(deleted) and oldest < generation:
            self._add_tombstones(edit, deleted)
        self._drop_settled(edit, oldest)
        return edit

    def _finish(self, edit: Edit, written: Sequence[str]) -> None:
        """Commits, and unlinks the files written for it only if it is certain that it did not.

        Nobody else unlinks them: who calls this cannot tell what an error means. Raises ClosedIndex
        if another index has taken this one's place.
        """
        try:
            check_place(self._catalog.environment)
            self._files.require(edit.files)
            head = self._catalog.commit(edit)
            self._snapshot_value = seal("head", b"head", head.encode())
            self._head = head
            self._forget()
        except BaseException as error:
            if isinstance(error, (ClosedIndex, OSError)) and not edit.begun:
                self._files.remove_named(written)
            else:
                # An interrupt arrives when the transaction has just ended, most likely well.
                self._failed = str(error) or f"its commit was interrupted by {type(error).__name__}"
            raise

    def _add_tombstones(self, edit: Edit, deleted: Tombstones) -> None:
        """Adds a run of them, merged with as many others as there are too many."""
        runs = list(self._head.tombstones)
        chosen = policy.pick([*(run.rows for run in runs), len(deleted)], 8)
        merged = [runs[place] for place in chosen if place < len(runs)]
        parts = [deleted]
        with self._catalog.reading() as reading:
            for run in merged:
                payload = reading.run("tombstones", run)
                parts.append(
                    Tombstones.decode(f"run {run.number}", payload, keyed=deleted.keyed)
                )
        for run in merged:
            edit.drop_run("tombstones", run)
        together = Tombstones.merged(parts, keyed=deleted.keyed)
        edit.add_run("tombstones", together.encode(), len(together))

    def _drop_settled(self, edit: Edit, oldest: int) -> None:
        """Drops earlier tombstones that every table has been purged of."""
        for run in self._head.tombstones:
            if run in edit.head.tombstones and run.horizon <= oldest:
                edit.drop_run("tombstones", run)

    def _add_pending(
        self, edit: Edit, snapshot: Snapshot, dead: Tombstones, living: Sequence[Rows],
        samples: list[Reservoir],
    ) -> list[Reservoir]:
        """Adds a run of rows, with those of earlier runs; returns samples that it does not hold."""
        runs = list(self._head.pending)
        chosen = policy.pick([*(run.rows for run in runs), sum(map(len, living))], 8)
        merged = [place for place in chosen if place < len(runs)] if len(runs) in chosen else []
        rows = [self._live(snapshot.pending[place], dead) for place in merged]
        table = self._sorted("", [*rows, *living], edit.head.generation)
        parts = samples
        parts += self._drop_pending(edit, snapshot, dead, [runs[place] for place in merged])
        if not len(table):
            return parts
        sample = Reservoir.merged(
            [Reservoir.empty(self._options.words), *parts], self._options.reservoir_rows
        )
        edit.add_run("pending", pending.encode(table, sample), len(table))
        return []

    def _drop_pending(
        self, edit: Edit, snapshot: Snapshot, dead: Tombstones, runs: list[Run]
    ) -> list[Reservoir]:
        """Drops runs, and accounts for their dead rows; returns their samples."""
        samples = []
        for run, table, sample in zip(
            self._head.pending, snapshot.pending, snapshot.samples, strict=True
        ):
            if run in runs:
                edit.drop_pending(run, dead.count(table))
                samples.append(sample)
        return samples

    def _live(self, table: Table, dead: Tombstones) -> Rows:
        rows = dead.alive(table, 0, len(table))
        if rows is None:
            return Rows(table.fingerprints, table.ids, table.keys)
        keys = None if table.keys is None else table.keys.take(rows)
        return Rows(table.fingerprints[rows], table.ids[rows], keys)

    def _sorted(self, name: str, parts: Sequence[Rows], horizon: int) -> Table:
        keys = None
        if self._options.keyed:
            keys = KeyHeap.joined([part.keys for part in parts if part.keys is not None])
        return sort_table(
            name,
            np.concatenate(
                [np.empty((0, self._options.words), np.uint64), *(p.fingerprints for p in parts)]
            ),
            np.concatenate([np.empty(0, np.uint64), *(part.ids for part in parts)]),
            keys,
            horizon=horizon,
        )

    def _stored_reservoir(self) -> Reservoir:
        with self._catalog.reading() as reading:
            payload = reading.value(self._head, "reservoir")
        if payload is None:
            return Reservoir.empty(self._options.words)
        return Reservoir.decode("the index", payload, self._options.words)

    # -- merging -----------------------------------------------------------------------------------

    def due(self, snapshot: Snapshot, fanout: int) -> list[Segment]:
        """Segments that have become too many, oldest first, but those that are being merged."""
        busy = self._merges.inputs
        free = [segment for segment in snapshot.segments if segment.name not in busy]
        return [free[place] for place in policy.pick([len(s) for s in free], fanout)]

    def start_merges(self, snapshot: Snapshot) -> None:
        """Begins to merge segments that have become too many."""
        while not self._merges.full:
            inputs = self.due(snapshot, self._options.min_merge)
            if not inputs or not self._merges.start(
                self._files, inputs, snapshot.tombstones, horizon=snapshot.head.generation,
                appended=snapshot.head.appended,
            ):
                return

    def keep_pace(self, snapshot: Snapshot) -> None:
        """Waits for merges that are late, at most a part of what the last commit took.

        Where there are `MAX_SEGMENTS`, it waits until a merge has ended, however long that takes.
        """
        if len(snapshot.segments) >= MAX_SEGMENTS:
            self.start_merges(snapshot)
            self._merges.wait(self._merges.any_ended)
        elif self._merges:
            appended = self._head.appended
            patience_s = PATIENCE * self._commit_s
            self._merges.wait(lambda: self._merges.on_time(appended), patience_s)

    def await_merges(self) -> bool:
        """Waits for the merges that run. Returns whether there are any to install."""
        self._merges.wait(self._merges.all_ended)
        return len(self._merges) > 0

    def install_merge(self, snapshot: Snapshot, *, whole: bool) -> bool | None:
        """Makes a merge that has ended part of the index; None if none has, or none can be yet.

        Unless `whole`, no more than `STAGED_PAGES` of its directories are stored at a time, and it
        is installed when these are the last ones. A full disk puts it off to a later commit, which
        gives False.
        """
        self._check_usable()
        merge = self._merges.next_ended()
        if merge is None:
            return None
        self._check_alone(snapshot)
        before = self._snapshot_value
        try:
            if len(merge.unstaged) > STAGED_PAGES and not (
                whole or len(snapshot.segments) >= MAX_SEGMENTS
            ):
                self._stage(merge)
                return None
            merged = replace(merge.merged, pages=merge.unstaged)
            self._merges.take(merge)
            self._install(snapshot, merge.inputs, merged, merge.horizon, unlink=False)
        except OSError as error:
            committed = self._failed is not None or self._snapshot_value != before
            if committed or raised_by_a_handler(error):
                raise
            if merge in self._merges:
                self._merges.take(merge)
            self._remove_merged(merge)
            put_off(error)
            return False
        self._retired += merge.inputs
        self._held += self._files.remove_held(segment.record for segment in merge.inputs)
        return True

    def _stage(self, merge: Merge) -> None:
        """Stores some of a merged segment's directories ahead of its installing."""
        count, merge.staged = max(0, merge.staged), -1
        pages = merge.merged.pages[count : count + STAGED_PAGES]
        try:
            self._catalog.stage(self._snapshot_value, pages)
        except CommitFailed as error:
            self._failed = str(error)
            raise
        merge.staged = count + len(pages)

    def _remove_merged(self, merge: Merge) -> None:
        """Removes what a merge has written: its directories, then its files, which tell of them.

        What cannot be removed now is left to the next writer.
        """
        record = merge.merged.record if merge.state is State.WRITTEN else None
        if record is not None and merge.staged:
            if self._failed is not None:
                return
            try:
                self._catalog.unstage(self._snapshot_value, [record.name])
            except (SimindexError, OSError, MemoryError) as error:
                if raised_by_a_handler(error):
                    raise
                log.warning("%s is not removed yet, the next writer does: %s", record.name, error)
                return
        merge.cancel()  # which unlinks its files

    def release_retired(self) -> None:
        """Gives up the inputs of installed merges, once no snapshot of the writer's has them."""
        if self._retired or self._held:
            release(self._retired, self._held)  # which empties them, also if it is interrupted
            self._retired, self._held = [], []

    @property
    def merging(self) -> bool:
        """Whether merges run, or have ended and are not installed."""
        return len(self._merges) > 0

    def cancel_merges(self) -> None:
        """Ends the merges that run; nothing of them stays."""
        try:
            for merge in self._merges.take_staged():
                self._remove_merged(merge)
        finally:
            self._merges.cancel()

    @property
    def uninstalled(self) -> set[str]:
        """Names of files of this writer that no commit names yet: of rows that were appended, and
        of merges that have ended."""
        spilled = {name for record, _ in self._spilled for name in record.files}
        return spilled | self._merges.files

    def compact(
        self, snapshot: Snapshot, inputs: Sequence[Segment], progress: Progress | None
    ) -> None:
        """Replaces some segments by one, without their dead rows; drops settled tombstones."""
        self._check_usable()
        self._check_alone(snapshot)
        horizon = self._head.generation
        merged = self._files.merge(
            inputs, snapshot.tombstones, horizon=horizon, generation=horizon + 1, progress=progress
        )
        self._install(snapshot, inputs, merged, horizon, unlink=True)
        self._files.remove(segment.record for segment in inputs)

    def _install(
        self, snapshot: Snapshot, inputs: Sequence[Segment], merged: Merged, horizon: int, *,
        unlink: bool,
    ) -> None:
        """Puts a merged segment in the place of its inputs, whose files may then be unlinked.

        With `unlink`, the merged segment's files go if it is certain that the commit failed.
        """
        edit = Edit(self._snapshot_value, self._head)
        edit.merge_segments(
            [segment.record for segment in inputs], merged.record, merged.pages, merged.dead
        )
        gone = {segment.name for segment in inputs}
        horizons = [table.horizon for table in snapshot.tables if table.name not in gone]
        self._drop_settled(edit, min([*horizons, horizon]))
        written = merged.record.files if unlink and merged.record is not None else ()
        self._finish(edit, written)

    def restructure(self, snapshot: Snapshot, structures: Sequence[str]) -> bool:
        """Gives all segments these structures, in one commit; returns whether anything changed.

        Tables and lists that are there and undamaged stay; their files are read to know it.
        """
        self._check_usable()
        self._check_alone(snapshot)
        options = replace(self._options, structures=checked_structures(structures))
        designs, slices = checked_designs(options), slice_design(options)
        edit = Edit(self._snapshot_value, self._head)
        if options.structures != self._options.structures:
            edit.set_value("options", pack(options.to_dict()))
        added: list[str] = []
        dropped: list[str] = []
        try:
            for segment in snapshot.segments:
                kept = [
                    s for s in segment.record.structures
                    if s.structure in options.structures and _sound(segment, s)
                ]
                stale = [s.name for s in segment.record.structures if s not in kept]
                names = {structure.structure for structure in kept}
                record = replace(segment.record, structures=tuple(kept))
                missing = [design for design in designs if design.structure not in names]
                lists = None if slices is None or slices.structure in names else slices
                if not stale and not missing and lists is None:
                    continue
                if missing or lists is not None:
                    segment.envelope.verify()
                made, directories = self._files.beside(
                    record, segment.fingerprints, missing, lists, self._head.generation + 1
                )
                added += [structure.name for structure in made]
                dropped += stale
                edit.change_structures(
                    segment.record, replace(record, structures=(*kept, *made)), directories
                )
            if not edit.puts:
                return False
        except BaseException:
            self._files.remove_named(added)
            raise
        self._finish(edit, added)
        self._options = options
        self._files = replace(self._files, options=options, designs=tuple(designs))
        self._files.remove_named(dropped)
        return True


def _sound(segment: Segment, structure: StructureRecord) -> bool:
    """Whether a segment's tables or lists are whole, and are those that its rows make."""
    lists = segment.slices
    try:
        rows = verified(segment.fingerprints)
        if lists is not None and lists.record == structure:
            lists.envelope.verify()
            wrong = slicelist.disorder(lists, rows)
        else:
            tables = segment.structures[structure.structure]
            tables.envelope.verify()
            wrong = permuted.disorder(tables, permuted.content_sum(rows))
        return next(wrong, None) is None
    except CorruptFile:
        return False
