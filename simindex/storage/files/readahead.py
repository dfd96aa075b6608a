"""Reading a mapped array in order, once, while a thread brings in what comes next.

    rows     |......|......|xxxxxx|++++++|++++..|......|
             given back    chunk  window, coming in

The chunk is the caller's; the window is what a thread may bring in beyond it. Under a memory limit
the pages behind the chunk are given back, so that chunk and window are all that is resident.

Invariants
1. A chunk is yielded once its pages are resident, and each page is brought in once in a pass: a
   page that two chunks share is given back with the second.
2. Nothing is brought in beyond the last bound; the caller verifies whole chunks of 64 KiB, and so
   may read as far as the one that the bound is in goes. The system's own read-ahead may read some
   megabytes further into its cache, but not where pages are given back.
3. The thread ends before the iterator does, however that ends.
4. What is cut off or cannot be read is found by the thread, as an error. A caller that touches
   such a page would be killed by a signal.

Pages are brought in by MADV_POPULATE_READ: at once, in the order of the file, with the lock of the
interpreter released. A cold file of 512 MB, 8 MB at a time, in GB/s (two cores: idle, then busy):

    populated         1.6 to 2.0   0.9 to 1.3   0.02 s of processor time; cut off is an error
    touched           1.6 to 1.9   0.4          a fault each 64 KiB; cut off is a signal
    advised           1.1 to 1.8   0.2 to 0.6   MADV_WILLNEED a chunk ahead, then touched
    copied            0.9 to 1.6   0.3 to 0.4   preadv; needs the file descriptor, and a copy

With 0.2 s of work on it, the file takes 0.27 s by a window of 32 MB, 0.36 to 0.38 s without one,
and 0.38 to 0.52 s where the work touches the pages. From the cache, 0.05 s more in any way.

Where pages are given back, memory is short, and what the system reads ahead by itself (8 MB here)
pushes out what is about to be used: in a cgroup with room for 48 MB, 760 MB were read of 512. So
there each piece is asked for by MADV_WILLNEED first, which reads just that, in pages of 4 KiB, and
512 are read also with room for 16. Elsewhere the larger pages that the system's own reading makes
serve later probes.

Pages given back (MADV_DONTNEED) leave this process, not the system's cache, where they are clean
and belong to nobody: under pressure the system takes them first, and the next batch, or another
process, finds them there otherwise. So the cache is not told to drop them.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from threading import Condition, RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import U32, U64
from simindex.errors import CorruptFile
from simindex.resources.threads import begin
from simindex.storage.files.checksums import Map, map_of, verify_at

WINDOW_BYTES = 32 << 20
"""Read ahead of a chunk by default: a disk of 1 GB/s is not kept waiting for 32 ms."""

PIECE_BYTES = 4 << 20
"""Brought in by one call: so long, at most, does the end of the iterator wait for the thread."""

SAMPLED_PAGES = 64
"""Looked at to tell whether an array is in memory."""

POPULATE_READ = 22
"""MADV_POPULATE_READ: Linux 5.14; not among Python's constants. Elsewhere MADV_WILLNEED is all."""

THREAD_NAME = "simindex-readahead"

PATIENCE_S = 0.1
"""So long the thread waits for what an interrupt may have kept its caller from telling."""

COLD = 20
"""MADV_COLD: Linux 5.4. What is given back is the first to go, not what is about to come."""

UNREADABLE = frozenset({errno.EFAULT, errno.EIO, getattr(errno, "EHWPOISON", errno.EIO)})


def even_bounds(rows: int, chunk_rows: int) -> list[int]:
    """Bounds of chunks of `chunk_rows` rows each, the last one of what is left."""
    return [*range(0, rows, max(1, chunk_rows)), rows] if rows else [0]


def chunks(
    rows: NDArray[Any],
    bounds: Sequence[int],
    *,
    window_bytes: int = WINDOW_BYTES,
    release: bool = False,
) -> Generator[tuple[int, int]]:
    """(start, stop) of each chunk in order, once its rows are resident.

    Parameters
    ----------
    rows : array (n, ...)
        On an envelope's map, C-contiguous; any other array is passed through as it is.
    bounds : int (c + 1,)
        Rows at which chunks begin and end, not falling.
    window_bytes : int
        What may be brought in beyond the chunk that is worked on; 0 for no thread.
    release : bool
        Give the pages of a chunk back when the next one is asked for, or the iterator closed.

    Raises
    ------
    CorruptFile
        If rows of the chunk cannot be read: the file was cut short, or the disk fails.

    Notes
    -----
    Resident are a chunk, the window and PIECE_BYTES at most. Leaving the loop ends the thread.
    """
    span = _Span.of(rows)
    if span is None:
        yield from pairwise(bounds)
        return
    step = rows.nbytes // len(rows)
    reader = _Reader(
        span, int(bounds[0]) * step, int(bounds[-1]) * step, window_bytes, exactly=release
    )
    try:
        for start, stop in pairwise(bounds):
            reader.bring_in(stop * step)
            yield start, stop
            if release:
                span.give_back(start * step, stop * step)
    finally:
        reader.close()
        if release:
            span.give_back(int(bounds[0]) * step, reader.end, whole=True)


@contextmanager
def brought_in(arrays: Sequence[NDArray[Any]]) -> Iterator[None]:
    """While it is open, a thread brings arrays in, one after the other, each in order.

    For work that goes over them in that order, itself or after some computing; errors are left to
    it. Arrays whose pages are here already cost a few calls.
    """
    spans = [span for span in map(_Span.of, arrays) if span is not None and not span.is_here()]
    if not spans:
        yield
        return
    closed = False

    def run() -> None:
        with suppress(CorruptFile):
            for span in spans:
                for start in range(0, span.size, PIECE_BYTES):
                    if closed:
                        return
                    span.bring_in(start, min(start + PIECE_BYTES, span.size), exactly=False)

    thread = Thread(target=run, name=THREAD_NAME, daemon=True)
    begin(thread)
    try:
        yield
    finally:
        closed = True
        thread.join()


def take_at(values: U64, places: U32) -> U64:
    """`values[places]` of a column (n,), of which no page is read that holds none of them.

    A page on the map that is touched is read with megabytes around it, where nothing else is said.
    The first time, the whole chunk that is verified is read. Raises CorruptFile.
    """
    verify_at(values, places)
    span = _Span.of(values)
    if span is not None and len(places):
        # Neighbours on a page come together, so that most of what repeats is dropped unsorted.
        pages = (span.address + places.astype(np.int64) * values.itemsize) // mmap.PAGESIZE
        pages = np.unique(pages[np.append(True, pages[1:] != pages[:-1])])
        ends = np.flatnonzero(np.append(pages[1:] != pages[:-1] + 1, True))
        firsts = pages[np.append(0, ends[:-1] + 1)]
        for first, last in zip(firsts.tolist(), pages[ends].tolist(), strict=True):
            _advise(
                first * mmap.PAGESIZE, (last + 1 - first) * mmap.PAGESIZE, mmap.MADV_WILLNEED
            )
    return _native.take_at(values, places)


def in_memory(number: int, start: int, length: int) -> bool:
    """Whether the system holds most of some bytes of an open file, by a sample of its pages."""
    page = mmap.PAGESIZE
    first, last = start // page, (start + length - 1) // page
    found, held = ctypes.c_ubyte(), 0
    with mmap.mmap(number, 0, prot=mmap.PROT_READ) as whole:
        rows = np.frombuffer(whole, np.uint8)
        for sample in range(SAMPLED_PAGES):
            at = rows.ctypes.data + (first + (last - first) * sample // (SAMPLED_PAGES - 1)) * page
            held += not _mincore(at, page, ctypes.byref(found)) and found.value & 1
        del rows  # which would keep the map open
    return 2 * held > SAMPLED_PAGES


def bring_file_in(number: int, start: int, length: int) -> None:
    """Brings some bytes of an open file into memory, in order, as passes over rows do."""
    low, end = start // mmap.PAGESIZE * mmap.PAGESIZE, start + length
    with mmap.mmap(number, 0, prot=mmap.PROT_READ) as whole:
        rows = np.frombuffer(whole, np.uint8)
        for at in range(low, end, PIECE_BYTES):
            size = min(PIECE_BYTES, end - at)
            if _advise(rows.ctypes.data + at, size, POPULATE_READ):  # a system without it
                os.preadv(number, [bytearray(size)], at)
        del rows


def forget_file(number: int) -> None:
    """Has the system drop what it holds of an open file, where it can be told to."""
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)


def give_back(rows: NDArray[Any]) -> None:
    """Takes an array's pages out of this process, if they are an envelope's; they stay readable."""
    span = _Span.of(rows)
    if span is not None:
        span.give_back(0, rows.nbytes, whole=True)


class _Span:
    """The bytes of an array on an envelope's map, which it keeps from being unmapped."""

    def __init__(self, address: int, size: int, file_map: Map) -> None:
        self.address, self.size, self.path = address, size, file_map.path
        self._map = file_map

    @classmethod
    def of(cls, rows: NDArray[Any]) -> _Span | None:
        owner = map_of(rows)
        if owner is None or not rows.nbytes or not rows.flags.c_contiguous:
            return None
        return cls(rows.ctypes.data, rows.nbytes, owner)

    def bring_in(self, start: int, stop: int, exactly: bool) -> None:
        """Makes the pages of these bytes resident; CorruptFile if they cannot be read."""
        low = (self.address + start) // mmap.PAGESIZE * mmap.PAGESIZE
        if exactly:
            _advise(low, self.address + stop - low, mmap.MADV_WILLNEED)
        failure = _advise(low, self.address + stop - low, POPULATE_READ)
        if failure in UNREADABLE:
            raise CorruptFile(
                f"{self.path} could not be read ({os.strerror(failure)}): it was made shorter, or "
                "the disk fails",
                path=self.path,
            )
        if failure:
            # No such advice here, or no memory for it: what is touched will be read then.
            _advise(low, self.address + stop - low, mmap.MADV_WILLNEED)

    def is_here(self) -> bool:
        """Whether the pages of a sample are in memory."""
        page = mmap.PAGESIZE
        first, last = self.address // page, (self.address + self.size - 1) // page
        found = ctypes.c_ubyte()
        for sample in range(SAMPLED_PAGES):
            at = (first + (last - first) * sample // (SAMPLED_PAGES - 1)) * page
            if _mincore(at, page, ctypes.byref(found)) or not found.value & 1:
                return False
        return True

    def give_back(self, start: int, stop: int, *, whole: bool = False) -> None:
        """Gives pages back; the last one only if it ends here or is asked for as a `whole`."""
        page = mmap.PAGESIZE
        low = (self.address + start) // page * page
        high = (self.address + stop + (page - 1 if whole else 0)) // page * page
        if high > low:
            _advise(low, high - low, COLD)
            _advise(low, high - low, mmap.MADV_DONTNEED)


class _Reader:
    """Brings in a span in order, a window ahead of what was asked for."""

    def __init__(
        self, span: _Span, start: int, stop: int, window_bytes: int, exactly: bool
    ) -> None:
        self._span, self._stop, self._window = span, stop, window_bytes
        self._exactly = exactly
        self.end = start
        """Up to here pages are resident, or were."""
        self._asked = start
        self._closed = False
        self._failure: BaseException | None = None
        self._lock = RLock()  # entered by itself: an interrupt may keep a condition locked for ever
        self._changed = Condition(self._lock)
        self._piece = min(PIECE_BYTES, max(mmap.PAGESIZE, window_bytes // 2))
        self._alone = window_bytes <= 0 or stop - start <= PIECE_BYTES
        self._thread: Thread | None = None

    def bring_in(self, stop: int) -> None:
        """Returns when all up to `stop` is resident, and lets the thread go on beyond it."""
        if self._alone:
            if stop > self.end:
                self._span.bring_in(self.end, stop, self._exactly)
                self.end = stop
            return
        if self._thread is None:
            self._thread = Thread(target=self._run, name=THREAD_NAME, daemon=True)
            begin(self._thread)
        with self._lock:
            self._asked = stop
            self._changed.notify_all()
            while self.end < stop and self._failure is None:
                self._changed.wait()
            if self.end < stop and self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Ends the thread, after the piece it is at."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while (piece := self._next()) is not None:
                self._span.bring_in(*piece, self._exactly)
                with self._lock:
                    self.end = piece[1]
                    self._changed.notify_all()
        except BaseException as error:
            with self._lock:
                self._failure = error
                self._changed.notify_all()

    def _next(self) -> tuple[int, int] | None:
        """The next piece once the window reaches it, or None at the end."""
        with self._lock:
            while not self._closed and self.end < self._stop:
                limit = min(self._stop, self._asked + self._window)
                # Whole pieces, unless the caller waits or it is the last: small ones cost calls.
                stop = min(self.end + self._piece, limit)
                whole = stop - self.end == self._piece or stop == self._stop
                if whole or self.end < self._asked:
                    return self.end, stop
                self._changed.wait(PATIENCE_S)
        return None


def _library(name: str, last: Any) -> Any:
    """A function of the C library on an address, a size and something."""
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):  # a system without it
        return lambda *_: -1
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, last)
    function.restype = ctypes.c_int
    return function


_madvise = _library("madvise", ctypes.c_int)
"""Python's own holds the interpreter's lock while pages come in."""

_mincore = _library("mincore", ctypes.c_void_p)


def _advise(address: int, size: int, advice: int) -> int:
    """The errno of it, or 0."""
    if advice in (POPULATE_READ, COLD) and not sys.platform.startswith("linux"):
        return errno.EINVAL
    while _madvise(address, size, advice):
        failure = ctypes.get_errno()
        if failure not in (errno.EINTR, errno.EAGAIN):
            return failure or errno.EINVAL
    return 0
