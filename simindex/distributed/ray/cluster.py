"""The door to Ray: joining a cluster, sending tasks in bounded numbers, and its errors as ours.

Invariant: no task is cancelled. One that ends, or fails, while `ray.cancel` is on its way is taken
out of the list of pending tasks twice, and Ray then aborts the process that has sent it ("Check
failed: it != submissible_tasks_.end()" in task_manager.cc; pull request 54798 and issue 54846 of
Ray; 2.60 still does it). Nobody can know from outside that a task is not about to end. So those
that were sent run to their end: few, since `in_order` sends few ahead.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from simindex.checks import is_seconds, require
from simindex.errors import ClusterFailed, SimindexError

WAIT_S = 60.0
"""How long a cluster may take to start what it has room for."""

ENDLESS_S = 1e9
"""A longer time is none that Ray can count."""

LEFT_S = 2.0
"""How long an error waits, at most, for the tasks that were sent with the one that failed: then
nothing of a call that raised still writes, unless its tasks are long."""

Told = Callable[[int, int], None]
"""Is told how many tasks of how many are done."""


class Sent(NamedTuple):
    """A task that was sent."""

    reference: Any
    """Of its result."""
    what: str
    """It in a message."""
    ended: Callable[[], None]
    """Is called once its result was taken, or nobody wants it any more."""


def join(address: str | None = None) -> None:
    """Joins a cluster, or starts one, unless this process is in one already.

    `address` is that of `ray.init`: "auto" for the cluster that runs here, "local" for a new one,
    None for what the environment says, else a new one.
    """
    if ray.is_initialized():
        return
    with failures("the cluster of Ray"):
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except RayError:
            raise
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ClusterFailed(
                f"no cluster of Ray at {address or 'the default address'} ({error})",
                remedy="start one with `ray start --head`, or give the address local",
                address=address,
            ) from error
        except Exception as error:
            # What Ray raises of a node that aborted while it started has no type of its own.
            if type(error) is not Exception:
                raise
            raise ClusterFailed(
                f"the cluster of Ray did not start ({error})",
                remedy="repeat the call: Ray gives up on a busy machine, and raylet.err in "
                "/tmp/ray/session_latest/logs says why",
                address=address,
            ) from error


def require_room(count: int, cpus: float, what: str) -> None:
    """Raises ClusterFailed unless the cluster has processors for so much, if all are free.

    Without this the tasks would wait for ever.
    """
    if count * cpus > _processors() + 1e-9:
        raise too_little(count, cpus, what)


def too_little(count: int, cpus: float, what: str) -> ClusterFailed:
    """The error of a cluster that has no room for so much."""
    now = free()
    return ClusterFailed(
        f"{count:,} {what} take {count * cpus:g} processors, and the cluster has "
        f"{_processors():g}, of which {now:g} are free",
        remedy="give a smaller cpus=, close other connections, or add machines",
        found=now, expected=count * cpus,
    )


def free() -> float:
    """Processors that nobody has taken."""
    return float(ray.available_resources().get("CPU", 0.0))


def _processors() -> float:
    return float(ray.cluster_resources().get("CPU", 0.0))


def require_cpus(cpus: float, most: int, what: str) -> float:
    """The processors of a task or an actor; raises InvalidOption unless they are from 0 to `most`.
    """
    require(is_seconds(cpus) and cpus <= most, "cpus", cpus, f"{what}, from 0 to {most}")
    return float(cpus)


def are_there(references: list[Any], wait_s: float) -> bool:
    """Whether all of these are there after so many seconds; their errors are raised."""
    try:
        ray.get(references, timeout=wait_s if wait_s < ENDLESS_S else None)
    except GetTimeoutError:
        return False
    return True


def in_order(
    send: Callable[..., Sent], tasks: Iterable[tuple[Any, ...]], most: int,
    told: Told | None = None,
) -> Iterator[Any]:
    """The results of tasks in their order, of which at most so many are sent and not yet taken.

    Tasks are taken from an iterator as they are sent; `told` is for tasks of a known number. After
    an error no task is sent any more, and those that were sent are left to end.
    """
    left = iter(tasks)
    total = len(tasks) if isinstance(tasks, Sized) else None
    done = 0
    waiting: deque[Sent] = deque()
    try:
        while True:
            waiting.extend(send(*task) for task in islice(left, most - len(waiting)))
            if not waiting:
                return
            try:
                with failures(waiting[0].what):
                    result = ray.get(waiting[0].reference)
            except Exception:  # a KeyboardInterrupt does not wait
                _settle(waiting)
                raise
            waiting.popleft().ended()
            done += 1
            if told is not None and total is not None:
                told(done, total)
            yield result
    finally:
        for sent in waiting:  # after an error, or if nobody wants the rest
            sent.ended()


def _settle(sent: Iterable[Sent]) -> None:
    """Waits a little until tasks have ended, and takes their errors, which Ray prints otherwise."""
    until = time.monotonic() + LEFT_S
    for one in sent:
        with suppress(Exception):
            ray.get(one.reference, timeout=max(0.0, until - time.monotonic()))


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Errors of tasks as they were raised, and those of the cluster as ClusterFailed."""
    try:
        yield
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, SimindexError):
            raise cause from error
        raise
    except RayError as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ClusterFailed(
            f"{what} did not end ({type(error).__name__}: {first})",
            remedy="repeat the call; a worker that is killed again and again has too little memory",
        ) from error
