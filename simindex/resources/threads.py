"""How many threads a call uses, and what it does where it gets fewer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, Thread
from typing import ParamSpec, TypeVar

from simindex.checks import is_whole
from simindex.errors import InvalidOption

VARIABLE = "SIMINDEX_THREADS"
"""Environment variable: threads of calls that name none."""


def begin(thread: Thread) -> None:
    """Starts a thread. Raises RuntimeError where the system gives none.

    An exception that a signal handler raises meanwhile may keep the thread from its work, and
    `threading` may keep the thread's object for ever: it must not refer to the work.
    """
    handled = sys.exc_info()[1]
    try:
        thread.start()
    except BaseException as error:
        thread._target = None  # type: ignore[attr-defined]
        _raise_of_a_handler(error, handled)
        raise


def _raise_of_a_handler(error: BaseException, handled: BaseException | None) -> None:
    """Raises what a signal handler raised where `threading` raised an error in its place.

    It raises KeyError where the thread is at work already, and RuntimeError where it gives back a
    lock that the handler kept it from taking again. `handled` is what was handled before the call.
    """
    cause = error.__context__
    if isinstance(error, (KeyError, RuntimeError)) and cause is not None and cause is not handled:
        raise cause from None


Given = ParamSpec("Given")
Result = TypeVar("Result")


class Pool(ThreadPoolExecutor):
    """Threads for the work of a call; what the system gives no thread for is done by the caller.

    Such work must not wait for other work.
    """

    def submit(
        self, work: Callable[Given, Result], /, *arguments: Given.args, **named: Given.kwargs
    ) -> Future[Result]:
        """The work's future, which has ended if there was no thread."""
        done: Future[Result] = Future()
        unclaimed = Lock()

        def once() -> None:
            # Work that got no thread of its own waits in the queue of the existing threads.
            if not unclaimed.acquire(blocking=False) or not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(work(*arguments, **named))
            except BaseException as error:
                done.set_exception(error)

        handled = sys.exc_info()[1]
        try:
            super().submit(once)
        except (KeyError, RuntimeError) as error:
            _raise_of_a_handler(error, handled)
            once()  # the system gives no thread, or the interpreter ends
        return done


def processors() -> int:
    """How many processors the process may use; macOS does not keep it to some of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None, items: int, *, worth: int) -> int:
    """Threads for `items` pieces of work: as many as asked for, else one for each processor.

    Without an answer in `threads`, `SIMINDEX_THREADS` is asked first, and fewer than `worth` items
    get one thread. Never more threads than items. Raises InvalidOption on a number below 1.
    """
    if threads is None:
        if items <= 1:
            return 1
        given = os.environ.get(VARIABLE)
        if given is None:
            threads = processors() if items >= worth else 1
        elif given.isdecimal() and int(given) >= 1:
            threads = int(given)
        else:
            raise InvalidOption(
                f"environment variable {VARIABLE}={given!r} is not valid",
                remedy="give a whole number from 1 on", option=VARIABLE, found=given,
                expected="1 or more",
            )
    elif not is_whole(threads) or threads < 1:
        raise InvalidOption(
            f"threads={threads!r} is not valid",
            remedy="give a whole number from 1 on", option="threads", found=threads,
            expected="1 or more",
        )
    return max(1, min(int(threads), items))
