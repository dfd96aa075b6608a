"""Workers: threads that work on some items at once, whose results come in the order of the items.

    items       a b c d e ...
    thread 1    a    c      e        each on its share of the processors
    thread 2      b     d
    results       a   b c  d ...

A kernel that divides one item among all processors ends with the last of its threads. Where other
threads need a processor, too, that one may have to wait for it, and what follows the kernel is done
by a single thread. Two items at once leave no processor idle meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from simindex.cli.chunks import CHUNK_DOCUMENTS
from simindex.resources.threads import Pool, thread_count

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 2
"""Items that are worked on. Each may be large, so more processors share an item instead."""

NAME = "simindex-working"
"""Of the threads."""

HELD = 3
"""Items worked on, and those that are done or wait for a thread."""


def at_once(
    items: Iterable[T], work: Callable[[T, int], R], ready: Callable[[], bool]
) -> Generator[tuple[T, R], None, None]:
    """Each item with what `work` makes of it on so many threads.

    At most `HELD` items are taken before the first of them is given, and none is waited for while
    another one is worked on: `ready` says whether the next one is there. What `items` or `work`
    raises is raised after the results before it.
    """
    threads = thread_count(None, CHUNK_DOCUMENTS, worth=1)
    if threads == 1:
        for item in items:
            yield item, work(item, 1)
        return
    call = partial(_called, work, -(-threads // AT_ONCE))
    waiting: deque[tuple[T, Future[R]]] = deque()
    rest, more, error = iter(items), True, None
    pool = Pool(AT_ONCE, NAME)
    try:
        while more or waiting:
            if more and (not waiting or (len(waiting) < HELD and ready())):
                try:
                    item = next(rest)
                except StopIteration:
                    more = False
                except Exception as raised:
                    more, error = False, raised
                else:
                    waiting.append((item, pool.submit(call, item)))
                    del item
                continue
            first, future = waiting.popleft()
            yield first, future.result()
            del first, future
        if error is not None:
            raise error
    finally:
        error = None  # which refers to this frame
        pool.shutdown(wait=False, cancel_futures=True)


def _called(work: Callable[[T, int], R], threads: int, item: T) -> R:
    return work(item, threads)
