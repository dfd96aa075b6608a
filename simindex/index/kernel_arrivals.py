"""Texts that come one at a time: one call of a kernel each.

    ready     what a snapshot's rows and the recipe make of such a call, once for each commit
    asked     the kernel puts the text's row into the first free place of what waits, and tells
              which row is nearest to it: of the commit, or of those that wait
    found     if one is near enough, it is returned
    added     if none is, the row is counted

Whatever may raise an error, or is rare, is left to the usual way (arrivals.py): long texts,
similarities, a recall below 1, rows that other calls have left for a commit, a nearest row that is
deleted or damaged.

If another thread makes such calls, too, the kernel runs without the lock, beside that thread:

    asked     the kernel puts the row into a place apart, and tells what is nearest to it
    taken     under the lock, if all is as it was but for rows that came since: the row goes into
              the first free place, and is compared with those rows

1. The lock is held from what is asked to what is added, or else rows that came between both are
   compared. So of equal texts one is added.
2. A signal handler may call the handle between any two steps. What is in the free place counts
   only if nothing was added or committed meanwhile. Rows that waited when the kernel was called,
   and those of the commit, stay as they were in what the call holds.
3. The commit that is asked is that of the writer. Nobody else commits while it holds LOCK. Where
   LOCK was removed, its next commit is refused.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ReferenceType, ref

from simindex._kernels import _native
from simindex.errors import CorruptFile
from simindex.index.writing_call import WritingCall
from simindex.options import MAX_KEY_BYTES, KeyKind
from simindex.simhash.recipe_kernels import kernel_of_arrivals
from simindex.writing.recent import nearer

if TYPE_CHECKING:
    from simindex.index.counts import Tally
    from simindex.index.deadline import Deadline
    from simindex.index.handle import Handle
    from simindex.query.passages import Ways
    from simindex.records.matches import Match
    from simindex.simhash.recipe import Recipe
    from simindex.storage.catalog.records import Head
    from simindex.storage.snapshot import Snapshot
    from simindex.writing.committer import Committer
    from simindex.writing.recent import Recent

Near = tuple[int | None, float | None, float]
"""How near a row must be: h, similarity and recall of a call."""

MOST_UNITS = 1 << 16
"""Code units of a text that the kernel takes: half a millisecond of words."""

KEY_TYPES: dict[KeyKind, type] = {"str": str, "bytes": bytes}

NEW, UNSURE, NO_FINGERPRINT, NOT_UTF8 = range(4)
"""What the kernel says of a text unless it gives a row that is near."""


class Left(NamedTuple):
    """What is to be asked in the usual way."""

    document: Any
    key: Any


class _Ready(NamedTuple):
    """For texts of one radius, until the next commit."""

    since: Head
    """The commit that rows wait after."""
    version: int
    """Of the plans."""
    h: int | None
    key_type: Any
    """Of the keys of rows; that of None in an index without keys, where rows get numbers."""
    recipe: Recipe
    kernel: _native.TextRecipe
    ways: Ways
    snapshot: ReferenceType[Snapshot]
    """Which has this: a circle would keep its files open."""
    recent: Recent
    apart: list[_native.Places]
    """Places of one row, for texts that arrive beside others."""

    def names_by(self, key: Any) -> bool:
        """Whether it is certain that a row can have this key, without encoding it."""
        kind = type(key)
        if kind is not self.key_type:
            return False
        return key is None or (len(key) <= MAX_KEY_BYTES and (kind is bytes or key.isascii()))


class KernelArrivals:
    """Of one handle."""

    def __init__(self, handle: Handle, deadline: Deadline, seen: Tally) -> None:
        self.handle = handle
        self._deadline, self._seen = deadline, seen
        self._call = WritingCall(handle, "seen_or_add")
        self._baton = _native.Baton()

    def found(
        self, text: Any, key: Any, near: Near, measure: str, commit_s: float | None, *,
        accompanied: bool,
    ) -> Match | Left | None:
        """A nearest row; None once the text is added, or has no fingerprint.

        The kernel runs without the lock if another thread makes such calls, too.
        """
        h, similarity, recall = near
        if (
            (type(text) is not str and type(text) is not bytes) or len(text) > MOST_UNITS
            or similarity is not None or type(recall) is not float or recall != 1.0
            or not (h is None or type(h) is int) or measure != "cosine"
            or not (commit_s is None or (type(commit_s) is float and commit_s >= 0))
        ):
            return Left(text, key)
        handle = self.handle
        handle.writing()  # first: in the child of a fork the lock may be held for ever
        with handle.lock:
            ready = self._asked_with(h, key, commit_s)
            snapshot = None if ready is None else ready.snapshot()
            if ready is None or snapshot is None:
                return Left(text, key)
            recent = ready.recent
            if not accompanied:
                changed = handle.last_change
                try:
                    told = ready.kernel.arrive(
                        text, recent.places, recent.count, ready.ways.passages
                    )
                except CorruptFile:  # which the usual way may go round
                    snapshot.ready = None
                    return Left(text, key)
                return self._settled(ready, snapshot, told, text, key, commit_s, changed)
            places, count = recent.places, recent.count
        apart = ready.apart.pop() if ready.apart else recent.place_apart()
        try:
            told = ready.kernel.arrive(
                text, places, count, ready.ways.passages, apart, self._baton
            )
        except CorruptFile:
            snapshot.ready = None
            return Left(text, key)
        with handle.lock:
            if self._asked_with(h, key, commit_s) is not ready:
                return Left(text, key)
            changed = handle.last_change
            if told == NEW or type(told) is tuple:
                came = recent.places.take(apart, count, recent.count, ready.ways.passages)
                told = told if came is None else _nearest_of(told, *came)
            found = self._settled(ready, snapshot, told, text, key, commit_s, changed)
            ready.apart.append(apart)
            return found

    def _asked_with(self, h: int | None, key: Any, commit_s: float | None) -> _Ready | None:
        """What a text is asked with now; None where the usual way has to be taken. Under the lock.
        """
        handle = self.handle
        committer = handle.check_may_change().committer
        handle.view.look()
        recent, waiting = committer.recent, committer.waiting
        ready: Any = handle.view.last().ready
        if (
            ready is None or ready.since is not waiting.since or ready.h != h
            or ready.recent is not recent or ready.version != handle.answerer.plans.version
        ):
            ready = self._ready(committer, h)
        if (
            ready is None or recent.due(commit_s) or not waiting.empty or not ready.names_by(key)
        ):
            return None
        return ready  # type: ignore[no-any-return]

    def _settled(
        self, ready: _Ready, snapshot: Snapshot, told: Any, text: Any, key: Any,
        commit_s: float | None, changed: float,
    ) -> Match | Left | None:
        """The text is counted if it is new, and nothing has changed since its row got its place."""
        handle, recent = self.handle, ready.recent
        if told == NO_FINGERPRINT:
            return None
        if told == NEW:
            with self._call as writer:
                if handle.last_change == changed:
                    number = writer.committer.waiting.appended + recent.count
                    recent.put(number if key is None else recent.hashed(key), key, commit_s)
                    if recent.due_at < inf:
                        self._deadline.expect(recent.due_at)
                    self._seen.added += 1
                    return None
        elif type(told) is tuple:
            match = self._match(ready.ways, snapshot, recent, *told)
            if match is not None:
                with self._call:  # it may be closed meanwhile
                    self._seen.found += 1
                    return match
        if told == NOT_UTF8 or handle.last_change != changed:
            return Left(text, key)
        return Left(recent.rejected(ready.recipe, key), None)

    def _match(
        self, ways: Ways, snapshot: Snapshot, recent: Recent, distance: int, place: int,
        number: int, row: int,
    ) -> Match | None:
        """The nearest of rows that the kernel has found; None where a search has to tell."""
        waits = None if place < 0 else recent.match(place, distance)
        if number < 0:
            return waits
        try:
            stored = ways.match(snapshot, number, row, distance)
        except CorruptFile:
            return None
        return None if stored is None else nearer(waits, stored)

    def _ready(self, committer: Committer, h: int | None) -> _Ready | None:
        """What the last commit is asked with; None where the usual way has to be taken."""
        handle = self.handle
        options, recipe, waiting = handle.options, handle.recipe, committer.waiting
        if recipe is None or options.keys is None or not waiting.empty:
            return None
        kernel = kernel_of_arrivals(recipe)
        snapshot = handle.view.current()
        if (
            kernel is None or snapshot.head.generation != waiting.since.generation
            or (recipe.bits, recipe.sketch_bits) != (options.bits, options.sketch_bits)
        ):
            return None
        answerer = handle.answerer
        question = answerer.question(h=handle.radius(h, recipe), first=True, threads=1)
        found = self._ways(snapshot, question)
        if found is None:
            return None
        key_type = KEY_TYPES[options.key_kind] if options.keyed else type(None)
        ready = _Ready(
            waiting.since, answerer.plans.version, h, key_type, recipe, kernel, found,
            ref(snapshot), committer.recent, [],
        )
        snapshot.ready = ready
        return ready

    def _ways(self, snapshot: Snapshot, question: Any) -> Ways | None:
        try:
            return self.handle.answerer.ways(snapshot, question)
        except CorruptFile:
            return None


def _nearest_of(told: Any, distance: int, place: int) -> tuple[int, int, int, int]:
    """What the kernel has told, with a row that came since: the first of equally near ones."""
    if told == NEW or distance < told[0]:
        return distance, place, -1, -1
    if distance == told[0] and told[1] < 0:
        return distance, place, told[2], told[3]
    return told  # type: ignore[no-any-return]
