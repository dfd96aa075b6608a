"""An open index directory: its life, the commit it sees, the call that changes it.

    opened      the catalog's environment, shared within the process; a writer, which holds the lock
    followed    commits by others are seen by the next call (storage/view.py)
    changed     by one call at a time (index/writing_call.py)
    closed      by `close`, by a fork in the child, at the end of the process
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import warnings
import weakref
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, cast

from simindex.errors import ClosedIndex, InvalidOption, ReadOnlyIndex, SimindexError
from simindex.index.agreement import check_agreement
from simindex.index.counts import Counts
from simindex.index.deferred_half import DeferredHalf
from simindex.index.turns import Turns
from simindex.index.writing_call import CallNote, WritingCall, foreseen
from simindex.planning.similarity import require_measure, similar
from simindex.resources.threads import processors
from simindex.simhash.radius import raw_radius
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.files import format as durable
from simindex.storage.files.refusals import remedied, translated
from simindex.storage.location import check_age, check_storage, described, leased
from simindex.storage.view import View

if TYPE_CHECKING:
    from simindex.options import IndexOptions
    from simindex.query.answerer import Answerer
    from simindex.storage.catalog.environment import Environment
    from simindex.storage.catalog.leases import Lease
    from simindex.storage.files.checksums import Verify
    from simindex.writing.writer import Writer

Mode = Literal["r", "w", "c", "n"]

log: logging.Logger = logging.getLogger(__package__)

_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


_process = os.getpid()
"""This process, as `_after_fork` keeps it: to ask the system takes 0.2 us."""


class Handle:
    """Of one `Index`, which alone holds it: an index that is dropped is closed."""

    closed: bool
    lock: RLock
    turns: Turns
    counts: Counts
    last_change: float
    lease: Lease
    view: View
    answerer: Answerer
    """The reading half."""

    def __init__(
        self, path: Path, mode: Mode, options: IndexOptions | None, *, refresh: bool, verify: Verify
    ) -> None:
        self.path = path
        self.closed = self._ended = True
        self._pid = os.getpid()
        self.lock, self.turns = RLock(), _turns()
        self.counts = Counts()
        self.writer: Writer | None = None
        self.last_change = 0.0
        """Time of `monotonic` at which a call that changes the index has ended."""
        self.note: CallNote | None = None
        """Of the call that changes the index now, or that was cut off."""
        writable = mode != "r"
        try:
            with remedied(path):
                self._open(options, writable=writable, refresh=refresh, verify=verify)
            _handles.add(self)
            if writable:
                _watch_worker()
            self.closed = False
        except BaseException:
            if not self._ended:  # it was interrupted once it was open
                self._end()
            raise

    def _open(
        self, options: IndexOptions | None, *, writable: bool, refresh: bool, verify: Verify
    ) -> None:
        path = self.path
        lease: Lease | None = None
        try:
            with translated(path, writable):
                uuid, lease = leased(path, writable=writable)
            self.lease, catalog = lease, Catalog(lease.environment)
            with translated(path, writable):
                found = described(catalog, index=uuid)
                if options is not None:  # before a wait for the writer's turn
                    check_agreement(path, found.options, found.recipe, options)
                check_storage(path, allow_remote=found.options.allow_remote)
                self.view = View(
                    path, catalog, found, index=uuid, pinned=not (writable or refresh),
                    verify=verify,
                )
                if writable:
                    from simindex.writing.writer import Writer

                    self.writer = Writer(self.view)
                else:
                    self.view.open()
                if options is not None:  # and again, should another writer have decided meanwhile
                    check_agreement(path, self.view.options, self.view.recipe, options)
            if writable:
                for segment in self.view.last().segments:
                    durable.check_features(segment.envelope.path, segment.envelope.read_compatible)
            else:
                check_age(path, catalog, self.view.last())
            self.answerer = cast("Answerer", DeferredHalf(partial(_answerer, self.view)))
            self._ended = False
        except BaseException:
            with translated(path, writable):
                try:
                    if self.writer is not None:
                        self.writer.close()
                finally:
                    if lease is not None:
                        lease.release()
            raise

    def prepare_answers(self) -> None:
        """Imports the reading half, so that no call does."""
        self.answerer = _answerer(self.view)

    # -- life --------------------------------------------------------------------------------------

    def close(self, *, discard: bool = False) -> None:
        """See `Index.close`; with `discard`, what waits is thrown away."""
        with self.turns, self.lock:
            if self._ended:
                return
            self._check_not_within_a_call()
            if self._pid != os.getpid():
                self.closed = self._ended = True
                return  # nothing here is the child's own
            try:
                if not discard and not self.closed:  # else a close went on to its end
                    self._commit_what_waits()
            except BaseException as error:
                if self._can_be_repeated(error):
                    raise  # and the handle stays open, so that nothing is lost
                self._end_for_sure()
                raise
            self._end_for_sure()

    def _can_be_repeated(self, error: BaseException) -> bool:
        """Whether a commit that failed may succeed later, as once there is space on the disk."""
        refused = isinstance(error, (OSError, MemoryError)) and foreseen(error)
        return refused and self._stopped() is None

    def _stopped(self) -> str | None:
        """Why this handle, a writer's, commits nothing any more; None if it does."""
        assert self.writer is not None
        if self.note is not None:
            return self._cut_off(self.note)
        return self.writer.committer.failed

    def _commit_what_waits(self) -> None:
        if self.writer is None or not self.writer.committer.anything_waits:
            return
        stopped = self._stopped()
        if stopped is None:
            with WritingCall(self, "close") as writer:
                writer.commit()
        else:
            log.warning("%s is closed without what waited for a commit: %s", self.path, stopped)

    def _end_for_sure(self) -> None:
        self.closed = True
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
                    if self.note is not None:
                        self.writer.committer.refuse(self._cut_off(self.note))
                    self.writer.committer.discard()
                finally:
                    self.writer.close()
        finally:
            if not self._ended:
                self.lease.release()
                # Maps and descriptors of the segments go with them; running calls hold their own.
                self.answerer = cast("Answerer", DeferredHalf(partial(_answerer, self.view)))
                self.view.close()
                self._ended = True

    def __del__(self) -> None:
        # A handle that was dropped must not keep the writer's lock.
        if not getattr(self, "_ended", True):
            try:
                try:
                    self.save("was dropped")
                finally:
                    self.close(discard=True)
            except Exception:  # noqa: S110 - at the end of Python the names here are None
                pass

    def save(self, how: str) -> None:
        """Commits what waits of a handle that nobody has closed, if it can, and warns of it."""
        writer = self.writer
        if writer is None or self._pid != os.getpid() or not writer.committer.anything_waits:
            return
        lost = self._stopped()
        if lost is None:
            try:
                writer.commit()
            except (SimindexError, OSError, MemoryError) as error:
                lost = str(error)
        saved = "was committed" if lost is None else f"is lost: {lost}"
        _warn(
            f"{self.path} {how} and not closed. What waited for a commit {saved}. Call `close`, or "
            "use a `with` block"
        )

    def check_open(self) -> None:
        """Raises ClosedIndex after `close`, and in the child of a fork."""
        if self._pid != _process:
            raise ClosedIndex(
                f"the handle on {self.path} was opened before this process was forked",
                remedy="open the index again in this process", path=str(self.path),
            )
        if self.closed:
            raise self.view.closed_error()

    def _check_not_within_a_call(self) -> None:
        """Under the lock, which only the thread of that call can have taken meanwhile."""
        note = self.note
        if note is not None and note.under_way(self):
            note.disturbed = True
            raise InvalidOption(
                f"progress: `{note.call}` is changing {self.path}, so the function that it calls "
                "may not change or close it",
                remedy=f"do so once `{note.call}` has returned. A signal handler may raise an "
                "exception to end it", option="progress",
            )

    def _cut_off(self, note: CallNote) -> str:
        return f"`{note.call}` was interrupted, and it is not known how much it had done"

    def writing(self) -> Writer:
        """The writer; ReadOnlyIndex where there is none."""
        self.check_open()
        if self.writer is None:
            raise ReadOnlyIndex(
                f"{self.path} was opened for reading",
                remedy="open it with mode 'w'", path=str(self.path),
            )
        return self.writer

    def check_may_change(self) -> Writer:
        """The writer, unless it may change nothing now: then an error says why. Under the lock."""
        own = self.writer
        if (  # at once, as for nearly every call: the checks below take 0.4 us
            own is not None and self.note is None and not self.closed
            and own.committer.failed is None and self._pid == _process
        ):
            return own
        writer = self.writing()
        self._check_not_within_a_call()
        if self.note is not None:
            writer.committer.refuse(self._cut_off(self.note))
        writer.committer.check_usable()
        return writer

    @property
    def catalog(self) -> Catalog:
        """Of the view."""
        return self.view.catalog

    @property
    def environment(self) -> Environment:
        """Of the catalog, as long as the handle's lease lasts."""
        return self.lease.environment

    @property
    def options(self) -> IndexOptions:
        """Of the index, or of what waits for a commit."""
        return self.view.options if self.writer is None else self.writer.committer.options

    @property
    def no_rows(self) -> bool:
        """Whether no row ever came into the index, nor waits for a commit."""
        if self.writer is not None:
            return self.writer.committer.no_rows
        return self.view.current().head.appended == 0

    @property
    def undecided(self) -> bool:
        """Whether the first row will say if rows have keys: no row came yet, nor an option."""
        return self.options.keys is None and self.no_rows

    @property
    def recipe(self) -> Recipe | None:
        """Of the index, or of what waits for a commit."""
        return self.view.recipe if self.writer is None else self.writer.committer.recipe

    def recipe_of_texts(self) -> Recipe | None:
        """The recipe of texts that are given to it: without rows the default one, as long as there
        is none. None if rows came without a recipe."""
        recipe = self.recipe
        if recipe is None and self.no_rows:
            own = self.options
            recipe = self.recipe or Recipe(bits=own.bits, sketch_bits=own.sketch_bits)
            # another thread may be first
        return recipe

    def radius(self, h: int | None, recipe: Recipe | None) -> int:
        """The radius of a call: h, or where that is None the recipe's, or that of raw rows."""
        if h is None and recipe is not None:
            h = recipe.h
        return raw_radius(self.view.options.bits) if h is None else h

    def nearness(
        self, h: int | None, similarity: float | None, recall: float, recipe: Recipe | None,
        measure: str = "cosine", *, weighted: bool = False,
    ) -> dict[str, Any]:
        """What `Questions.asked` takes for a call's h or similarity, and its recall.

        `weighted` is whether the queries have weights.
        """
        if similarity is None:
            require_measure(measure, None, None)
            return {"h": self.radius(h, recipe), "recall": recall}
        own = self.options
        found = similar(
            similarity, h=h, recall=recall, bits=own.bits, sketch_bits=own.sketch_bits,
            measure=measure, recipe=recipe, weighted=weighted,
        )
        return {"h": found.h, "recall": found.recall, "similar": found}


def _turns() -> Turns:
    return Turns(most=min(2, processors()))


def _answerer(view: View) -> Answerer:
    from simindex.query.answerer import Answerer

    return Answerer(view)


def _after_fork() -> None:
    global _process
    _process = os.getpid()
    # The child must not keep the parent's writer lock alive, nor wait for threads it does not have.
    for handle in list(_handles):
        handle.lock, handle.turns = RLock(), _turns()
        handle.view.forget_lock()
        handle.note = None
        if handle.writer is not None and handle.writer.committer.lock is not None:
            handle.writer.committer.lock.close()  # it stays the parent's


os.register_at_fork(after_in_child=_after_fork)


def _warn(what: str) -> None:
    warnings.warn(what, ResourceWarning, stacklevel=2)


EXIT_WAIT_S = 10.0
"""A process that ends waits so long for a thread that is changing an index still."""


def _at_exit() -> None:
    # A process that ends saves what waits. It does not wait for merges, nor leave their files.
    for handle in list(_handles):
        if handle.writer is None or handle._pid != os.getpid():
            continue
        handle.writer.merges.over = True
        locked = handle.lock.acquire(timeout=EXIT_WAIT_S)
        try:
            if locked:
                handle.save("was open when its process ended")
            handle.writer.cancel_merges()
        finally:
            if locked:
                handle.lock.release()


atexit.register(_at_exit)

_watched = 0
"""The process that has `_watch_worker` done."""


def _watch_worker() -> None:
    """Has `multiprocessing` call `_at_exit`: its processes end without `atexit`."""
    global _watched
    util = sys.modules.get("multiprocessing.util")
    if util is not None and _watched != os.getpid():
        util.Finalize(None, _at_exit, exitpriority=0)
        _watched = os.getpid()
