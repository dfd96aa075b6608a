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
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Literal

from simindex.errors import ClosedIndex, InvalidOption, ReadOnlyIndex
from simindex.index.agreement import check_agreement
from simindex.index.change import Change
from simindex.options import IndexOptions
from simindex.query.answerer import Answerer
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.registry import Lease
from simindex.storage.files import format as durable
from simindex.storage.files.refusals import remedied, translated
from simindex.storage.files.verification import Verify
from simindex.storage.location import check_age, check_storage, described, leased
from simindex.storage.view import View
from simindex.writing.writer import Writer

Mode = Literal["r", "w", "c", "n"]

_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    """Of one `Index`, which alone holds it: an index that is dropped is closed."""

    def __init__(
        self,
        path: Path,
        mode: Mode = "r",
        *,
        options: IndexOptions | None = None,
        refresh: bool = True,
        verify: Verify = "lazy",
    ) -> None:
        self.path = path
        self.closed = self._ended = True
        self._verify = verify
        self._pinned = mode == "r" and not refresh
        self._pid = os.getpid()
        self.lock = RLock()
        self.writer: Writer | None = None
        self.change: Change | None = None
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
        self.closed = False

    def _open(self, options: IndexOptions | None, *, writable: bool) -> None:
        path = self.path
        lease: Lease | None = None
        try:
            with translated(path, writable):
                uuid, lease = leased(path, writable=writable)
            self.lease, self.environment = lease, lease.environment
            self.catalog = Catalog(self.environment)
            with translated(path, writable):
                found = described(self.catalog, index=uuid)
                if options is not None:
                    check_agreement(path, found.options, found.recipe, options)
                check_storage(path, allow_remote=found.options.allow_remote)
                self.view = View(
                    path, self.catalog, found, index=uuid, pinned=self._pinned,
                    verify=self._verify,
                )
                if writable:
                    self.writer = Writer(self.view)
                self.view.open()
            if writable:
                for segment in self.view.last().segments:
                    durable.check_features(segment.envelope.path, segment.envelope.read_compatible)
            else:
                check_age(path, self.catalog, self.view.last())
            self.answerer = Answerer(self.view)
            self._ended = False
        except BaseException:
            try:
                if self.writer is not None:
                    self.writer.close()
            finally:
                if lease is not None:
                    lease.release()
            raise

    # -- life --------------------------------------------------------------------------------------

    def close(self) -> None:
        """See `Index.close`."""
        with self.lock:
            if self._ended:
                return
            self._check_not_within_a_change()
            self.closed = True
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
            if self.writer is not None:
                try:
                    if self.change is not None:
                        self.writer.refuse(self._cut_off(self.change))
                    self.writer.discard()
                finally:
                    self.writer.close()
        finally:
            if not self._ended:
                self.lease.release()
                # Maps and descriptors of the segments go with them; running calls hold their own.
                self.answerer = Answerer(self.view)
                self.view.close()
                self._ended = True

    def __del__(self) -> None:
        # A handle that was dropped must not keep the writer's lock.
        if not getattr(self, "_ended", True):
            with suppress(Exception):
                self.close()

    def check_open(self) -> None:
        """Raises ClosedIndex after `close`, and in the child of a fork."""
        if self._pid != os.getpid():
            raise ClosedIndex(
                f"the handle on {self.path} was opened before a fork: open the index again here",
                path=str(self.path),
            )
        if self.closed:
            raise self.view.closed_error()

    def _check_not_within_a_change(self) -> None:
        """Under the lock, which only the thread of the change can have taken meanwhile."""
        change = self.change
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

    def writing(self) -> Writer:
        """The writer; ReadOnlyIndex where there is none."""
        self.check_open()
        if self.writer is None:
            raise ReadOnlyIndex(
                f"{self.path} was opened for reading: open it with mode 'w'", path=str(self.path)
            )
        return self.writer

    def changing(self) -> Writer:
        """The writer, for a change; under the lock."""
        writer = self.writing()
        self._check_not_within_a_change()
        if self.change is not None:
            writer.refuse(self._cut_off(self.change))
        writer.check_usable()
        return writer

    @property
    def recipe(self) -> Recipe | None:
        """Of the index, or of what waits for a commit."""
        return self.view.recipe if self.writer is None else self.writer.recipe


def _after_fork() -> None:
    # The child must not keep the parent's writer lock alive, nor wait for threads it lacks.
    for handle in list(_handles):
        handle.lock = RLock()
        handle.view.forget_lock()
        handle.change = None
        if handle.writer is not None:
            handle.writer.forget_lock()


os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    # A process that ends does not wait for merges, nor leave their files behind.
    for handle in list(_handles):
        if handle.writer is not None and handle._pid == os.getpid():
            handle.writer.cancel_merges()


atexit.register(_at_exit)
