"""An open index directory: its life, and the commit it sees.

    opened      the catalog's environment, shared within the process; a writer, which holds the lock
    followed    commits by others are seen by the next call (storage/view.py)
    changed     by one call at a time; after one that was cut off, the handle only reads (change.py)
    closed      by `close`, by a fork in the child, at the end of the process
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Literal

from simindex.errors import ClosedIndex, InvalidOption, ReadOnlyIndex
from simindex.index.change import Change
from simindex.index.opening import check_agreement
from simindex.options import IndexOptions
from simindex.query.answerer import Answerer
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.registry import Lease
from simindex.storage.files import filesystem
from simindex.storage.files import format as durable
from simindex.storage.files.refusals import remedied, told, translated, typed
from simindex.storage.files.verification import Verify
from simindex.storage.opened import check_age, described, leased
from simindex.storage.snapshot import Snapshot, live_rows
from simindex.storage.view import View
from simindex.writing.recent import Recent
from simindex.writing.writer import Writer

Mode = Literal["r", "w", "c", "n"]

_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    """What every handle has; `Index` is what users hold."""

    def __init__(
        self,
        path: Path,
        mode: Mode = "r",
        *,
        options: IndexOptions | None = None,
        refresh: bool = True,
        verify: Verify = "lazy",
    ) -> None:
        path = path.absolute()  # so that it outlives a change of the working directory
        self.path, self.mode = path, mode
        self._closed = self._ended = True
        self._verify = verify
        self._pinned = mode == "r" and not refresh
        self._pid = os.getpid()
        self._lock = RLock()
        self._writer: Writer | None = None
        self._change: Change | None = None
        """The call that changes the index now, or that was cut off."""
        writable = mode != "r"
        try:
            with remedied(path):
                self._open(options, writable=writable)
            _handles.add(self)
        except BaseException:
            if not self._ended:  # it was interrupted once it was open
                self._end()
            raise
        self._closed = False

    def _open(self, options: IndexOptions | None, *, writable: bool) -> None:
        path = self.path
        lease: Lease | None = None
        try:
            with translated(path, writable):
                self._uuid, lease = leased(path, writable=writable)
            self._lease, self._environment = lease, lease.environment
            self._catalog = Catalog(self._environment)
            with translated(path, writable):
                found = described(self._catalog, index=self._uuid)
                if options is not None:
                    check_agreement(path, found.options, found.recipe, options)
                filesystem.check_storage(path, allow_remote=found.options.allow_remote)
                self._view = View(
                    path, self._catalog, found, index=self._uuid, pinned=self._pinned,
                    verify=self._verify,
                )
                if writable:
                    self._writer = Writer(self._view)
                self._view.open()
            if writable:
                for segment in self._last().segments:
                    durable.check_features(segment.envelope.path, segment.envelope.read_compatible)
            else:
                check_age(path, self._catalog, self._last())
            self._answerer = Answerer(self._catalog, self.options)
            self._recent = Recent(self.options)
            self._ended = False
        except BaseException:
            try:
                if self._writer is not None:
                    self._writer.close()
            finally:
                if lease is not None:
                    lease.release()
            raise

    # -- life --------------------------------------------------------------------------------------

    @property
    def options(self) -> IndexOptions:
        """What the index was created with, and the structures that its segments carry now."""
        return self._view.options

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"mode {self.mode!r}"
        return f"<simindex.Index {str(self.path)!r}, {state}>"

    @typed
    def close(self) -> None:
        """Closes the handle; what a writer has not committed is discarded. May be called twice.

        Merges that run are given up, which loses nothing but their work; leaving a ``with`` block
        cleanly, and `compact`, wait for them. The function that `compact` tells of its progress may
        not close its handle: InvalidOption.
        """
        with self._lock:
            if self._ended:
                return
            self._check_not_within_a_change()
            self._closed = True
            if self._pid != os.getpid():
                self._ended = True
                return  # nothing here is the child's own
            try:
                self._end()
            except BaseException:
                self._end()  # whatever an interrupt has kept it from
                raise

    def _end(self) -> None:
        """Gives back what the handle holds; may be called again, after an interrupt."""
        try:
            if self._writer is not None:
                try:
                    if self._change is not None:
                        self._writer.refuse(self._cut_off(self._change))
                    self._writer.discard()
                finally:
                    self._writer.close()
        finally:
            if not self._ended:
                self._lease.release()
                # Maps and descriptors of the segments go with them; running calls hold their own.
                self._answerer = Answerer(self._catalog, self.options)
                self._recent = Recent(self.options)
                self._view.close()
                self._ended = True

    def __del__(self) -> None:
        # A handle that was dropped must not keep the writer's lock.
        if not getattr(self, "_ended", True):
            with suppress(Exception):
                self.close()

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise ClosedIndex(
                f"the handle on {self.path} was opened before a fork: open the index again here",
                path=str(self.path),
            )
        if self._closed:
            raise self._view.closed_error()

    def _check_not_within_a_change(self) -> None:
        """Under the lock, which only the thread of the change can have taken meanwhile."""
        change = self._change
        if change is not None and change.under_way(self):
            change.disturbed = True
            raise InvalidOption(
                f"progress: `{change.call}` is changing {self.path}, and what it calls may not "
                f"change or close it: do so once `{change.call}` has returned. A signal handler "
                "may raise an exception to end it",
                option="progress",
            )

    def _cut_off(self, change: Change) -> str:
        return f"`{change.call}` was interrupted, at a place where what it had done is not known"

    def _writing(self) -> Writer:
        self._check_open()
        if self._writer is None:
            raise ReadOnlyIndex(
                f"{self.path} was opened for reading: open it with mode 'w'", path=str(self.path)
            )
        return self._writer

    def _changing(self) -> Writer:
        """The writer, for a change; under the lock."""
        writer = self._writing()
        self._check_not_within_a_change()
        if self._change is not None:
            writer.refuse(self._cut_off(self._change))
        writer.check_usable()
        return writer

    @typed
    def refresh(self) -> bool:
        """Follows new commits now instead of at the next call. Returns whether there were any.

        Raises ClosedIndex if another index, or a repaired catalog, has taken the place of this one.
        """
        self._check_open()
        before = self._last()
        self._view.check_place()
        return self._view.newest() is not before

    def _current(self) -> Snapshot:
        return self._view.current()

    def _last(self) -> Snapshot:
        return self._view.last()

    @property
    def _recipe(self) -> Recipe | None:
        return self._view.recipe if self._writer is None else self._writer.recipe

    # -- what it is --------------------------------------------------------------------------------

    @property
    def recipe(self) -> Recipe | None:
        """How texts become this index's fingerprints, if it knows."""
        return self._recipe

    @property
    @typed
    def generation(self) -> int:
        """Number of the last commit seen."""
        self._check_open()
        return self._current().head.generation

    @typed
    def __len__(self) -> int:
        """Live, committed rows. Reads all ids once after something was deleted."""
        self._check_open()
        snapshot = self._current()
        return snapshot.stored_rows - snapshot.dead_rows

    def __bool__(self) -> bool:
        """True, also without rows: `if index:` asks whether there is an index, as for a file."""
        return True

    def rows(self, *, chunk_rows: int = 1 << 16) -> Iterator[Batch]:
        """All live rows as batches of 1 to `chunk_rows`, without weights, as of one commit.

        Raises InvalidOption if `chunk_rows` is no whole number of 1 or more.
        """
        self._check_open()
        whole = isinstance(chunk_rows, int) and not isinstance(chunk_rows, bool)
        if not whole or chunk_rows < 1:
            raise InvalidOption(
                f"chunk_rows={chunk_rows!r}: give a whole number of 1 or more",
                option="chunk_rows", found=chunk_rows,
            )
        with told(self.path):
            snapshot = self._current()
            yield from live_rows(snapshot, chunk_rows, self.options, self._recipe)


def _after_fork() -> None:
    # The child must not keep the parent's writer lock alive, nor wait for threads it lacks.
    for handle in list(_handles):
        handle._lock = RLock()
        handle._view.forget_lock()
        handle._change = None
        if handle._writer is not None:
            handle._writer.forget_lock()


os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    # A process that ends does not wait for merges, nor leave their files behind.
    for handle in list(_handles):
        if handle._writer is not None and handle._pid == os.getpid():
            handle._writer.cancel_merges()


atexit.register(_at_exit)
