"""A run of `build`: the groups of its contents into a new index, or into one that is there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import field
from itertools import chain
from os.path import samestat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simindex
from simindex.cli.app import uninterrupted
from simindex.cli.chunks import rows_bytes
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.final_merge import merge_behind_a_bar
from simindex.cli.new_index import NewIndex
from simindex.cli.slots import Slot, read_ahead
from simindex.cli.stored_documents import Choice, Existing
from simindex.cli.workers import at_once
from simindex.index.origin import keep_origin
from simindex.values import dataclass
from simindex.writing.ownership import exists

if TYPE_CHECKING:
    from simindex.cli.contents import Contents
    from simindex.cli.lock_wait import LockWait
    from simindex.cli.progress import Progress
    from simindex.cli.pruned_documents import Pruning

EXISTING = {
    "replaced": "replaced {0} that {1} had",
    "skipped": "skipped {0} that {1} had",
}
"""What is said of documents that an index had before."""


class NothingRead(Exception):
    """The inputs hold no document, or none of the kind that it names."""


@dataclass
class Run:
    """What it adds, where, and how far it is."""

    path: Path
    contents: Contents[Any]
    append: bool
    overwrite: bool
    commit_every: int
    started: float
    on_existing: Choice
    quiet: bool
    pruning: Pruning | None
    wait: LockWait
    progress: Progress = field(init=False)
    """Of what was added to the index."""
    place: Path = field(init=False)
    """Where rows go: `path`, or next to it while an old index is there."""
    made: NewIndex | None = None
    inode: os.stat_result = field(init=False)
    """Of the directory, once made."""
    added: int = 0
    """Rows handed to the index."""
    committed: int = 0
    rows: int = 0
    h: int = field(init=False)
    """The radius that the index stores."""
    bits: int = field(init=False)
    existing: Existing | None = None
    """What of the index was there before; None of one that this run makes."""

    def __post_init__(self) -> None:
        self.place = self.path

    def fill(self, options: dict[str, Any]) -> None:
        contents = self.contents
        most = min(contents.most, self.commit_every or contents.most)
        slot: Slot[tuple[Any, Any]] = Slot(self._held_bytes)
        with closing(read_ahead(self._batches(most), slot)) as batches:
            # Read before the index is created: if the first document cannot be, nothing is made.
            first = next(batches, None)
            if first is None:
                raise NothingRead
            self._add(chain([first], batches), {**contents.options(first[0]), **options})

    def _held_bytes(self, made: tuple[Any, Any]) -> int:
        group, batch = made
        return self.contents.held_bytes(group) + rows_bytes(batch)

    def _batches(self, most: int) -> Iterator[tuple[Any, Any]]:
        """Groups with their rows, which are made while others are read and others added."""
        slot: Slot[Any] = Slot(self.contents.held_bytes)
        with closing(read_ahead(self.contents.groups(most), slot)) as groups:
            made = at_once(groups, self.contents.work(), lambda: slot.waits)
            with closing(made):
                for group, rows in made:
                    yield group, self.contents.batch(group, rows)

    def _add(self, batches: Iterable[tuple[Any, Any]], options: dict[str, Any]) -> None:
        with self._open(options) as index, self._looking() as before:
            if self.contents.noun == "document":
                keep_origin(index)
            for group, batch in batches:
                if before is not None:
                    batch = self.contents.admitted(before, index, group, batch)
                    if self.pruning is not None:
                        self.pruning.note(before.names)
                index.append(batch)
                self.added += len(batch)
                self.progress.advance(*self.contents.size(group))
                fresh = self.progress.documents - self.committed
                if self.commit_every and fresh >= self.commit_every:
                    self._commit(index)
            whole = not self.contents.intake.bad_records
            if self.pruning is not None and before is not None and whole:
                self.pruning.prune(index, before.before)
            if not (self.append or self.committed or self.added):
                raise NothingRead("with a fingerprint")
            self.progress.then("writing the index")
            self._commit(index)
            self.rows, self.h, self.bits = len(index), index.h, index.options.bits
            merge_behind_a_bar(index, self.path, self.progress, quiet=self.quiet)

    def _open(self, options: dict[str, Any]) -> Any:
        if self.append:
            return self.wait.open(self.place)
        stored = simindex.IndexOptions(**options)
        self.made = NewIndex.at(self.place, stored, overwrite=self.overwrite)
        self.inode = self.place.stat()
        return self.made.index

    @contextmanager
    def _looking(self) -> Iterator[Existing | None]:
        """What the index had before this run."""
        if not self.append:
            yield None
            return
        self.existing = Existing(self.place, self.on_existing)
        try:
            yield self.existing
        finally:
            self.existing.close()

    def _commit(self, index: Any) -> None:
        with uninterrupted():
            index.commit()
            self.committed = self.progress.documents

    def abandon(self) -> str:
        """Remove an index that this run made and committed nothing to; says what is left."""
        if self.made is None and not self.append:
            return left_at(self.path)
        made = self.made if self.place == self.path and not self.committed else None
        if made is not None and made.removed():
            return f"{self.path} was not created"
        if self.place != self.path and not self._took_the_place():
            return f"{self.path} is as it was"
        if self.committed:
            added = count(self.committed, self.contents.noun)
            return f"{added} of this run are committed in {self.path}"
        if self.made is not None:
            return f"nothing of this run is committed, {self.path} is empty"
        return f"nothing of this run is committed, {self.path} is as it was"

    def _took_the_place(self) -> bool:
        """Whether what was built next to an old index is in its place."""
        return (
            self.made is not None and self.path.exists()
            and samestat(self.inode, self.path.stat())
        )

    def _existing_counts(self) -> dict[str, int]:
        found = self.existing
        if found is None:
            return {}
        pruned = {} if self.pruning is None else {"pruned": self.pruning.pruned}
        return {"replaced": found.replaced, "skipped": found.skipped, **pruned}

    def report(self, as_json: bool, quiet: bool) -> None:
        seconds = time.perf_counter() - self.started
        done, contents = self.progress, self.contents
        if as_json:
            emit(
                {
                    f"{contents.noun}s": done.documents,
                    "without_fingerprint": contents.without.number,
                    "bad_records": contents.intake.bad_records,
                    **({} if contents.short is None else {"short_texts": contents.short.number}),
                    **contents.counts(),
                    **self._existing_counts(),
                    "characters" if contents.noun == "document" else "bytes": done.characters,
                    "rows": self.rows,
                    "h": self.h,
                    "seconds": round(seconds, 3),
                    **({} if contents.lesson is None else {"idf": contents.lesson.record()}),
                }
            )
        contents.without.close()
        if quiet or as_json:
            return
        contents.say(done.documents)
        for what, number in self._existing_counts().items():
            if number and what in EXISTING:
                say(EXISTING[what].format(count(number, "document"), self.path))
        if self.pruning is not None:
            say(self.pruning.told(self.path, contents.intake.bad_records))
        say(
            f"{count(done.documents, contents.noun)} ({megabytes(done.characters)}) in "
            f"{duration(seconds)}, {done.documents / seconds:,.0f} a second; {self.path} holds "
            f"{count(self.rows, 'row')}; near-duplicates: within {self.h} of {self.bits} bits"
        )


def left_at(path: Path) -> str:
    """What there is at a path where nothing was made."""
    return f"{path} {'is as it was' if exists(path) else 'was not created'}"
