"""Actors that hold shards: one for each shard, or several, and the tasks that they are given.

    shard        0         1         2
    actors     A   B     C   D     E   F          replicas=2
    task of shards 0 and 2                        goes to the least busy one of A, B, E, F

An actor keeps its shard open, so its files stay mapped and its catalog read. It opens the newer
version once a task has it. If it is killed, Ray starts it again and repeats its tasks, which give
the same answer.

Invariants
1. An actor never waits for another one: of two shards, it opens the other one itself. So any actor
   can do any task, and a shard that is new is asked also where there is no room for its actor.
2. Actors take a known part of the processors, so who has room for them all does not wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import Any

import ray

from simindex.checks import require_seconds, require_whole
from simindex.distributed.ray.cluster import (
    Sent,
    Told,
    are_there,
    failures,
    free,
    in_order,
    require_cpus,
    require_room,
    too_little,
)
from simindex.distributed.shard import OpenShard, Shard
from simindex.errors import ClosedIndex, ClusterFailed

MOST_CPUS = 0.25
"""Of a processor that an actor takes by default: tasks of others must find room next to it."""

RETRIES = 3
"""How often a task is repeated whose actor was killed."""


class Holder:
    """Runs tasks, and keeps the shard of one number open."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._open: OpenShard | None = None

    def call(self, function: Callable[..., Any], *task: Any) -> Any:
        """What the function returns for a task, of which shards may be a part."""
        return function(*map(self._held, task))

    def ready(self) -> int:
        """Its number, once it has started."""
        return self._number

    def _held(self, given: Any) -> Any:
        if not isinstance(given, Shard) or given.number != self._number:
            return given
        if self._open is None or not self._open.is_of(given):
            if self._open is not None:
                self._open.index.close()
                self._open = None
            self._open = OpenShard.of(given)
        return self._open


class _Actor:
    """An actor, and how many of its tasks nobody has taken yet."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.busy = 0


class Holders:
    """The actors of a connection."""

    def __init__(
        self, *, replicas: int, cpus: float, in_flight: int, wait_s: float, told: Told | None
    ) -> None:
        self._replicas = require_whole(replicas, "replicas", 1)
        self._in_flight = require_whole(in_flight, "in_flight", 1)
        self._cpus = require_cpus(cpus, 1, "a part of a processor")
        self._wait_s = require_seconds(wait_s, "wait_s")
        self.told: Told | None = told
        self._actors: dict[int, list[_Actor]] = {}
        self._lock = Lock()
        self._closed = False

    def start(self, numbers: Iterable[int]) -> None:
        """Starts the actors of some shards that have none yet.

        Raises ClusterFailed if the cluster has no room for them.
        """
        with self._lock:
            self._require_open()
            new = sorted(set(numbers) - self._actors.keys())
            if not new:
                return
            count = self._replicas * (len(new) + len(self._actors))
            require_room(count, self._cpus, "actors")
            made = {
                number: [self._started(number) for _ in range(self._replicas)] for number in new
            }
            started = [one for actors in made.values() for one in actors]
            with failures("the start of actors"):
                if not are_there([one.handle.ready.remote() for one in started], self._wait_s):
                    _end(started)
                    raise too_little(count, self._cpus, "actors")
            self._actors.update(made)

    def run(self, function: Callable[..., Any], *columns: Iterable[Any]) -> Iterator[Any]:
        """As `map`: each task goes to an actor of one of its shards."""
        tasks = list(zip(*columns, strict=True))
        if not tasks:
            return iter(())
        self._follow({one.number for task in tasks for one in task if isinstance(one, Shard)})
        with failures("a batch"):
            put = ray.put(function)  # once, with the batch in it

        def send(*task: Any) -> Sent:
            shards = [one for one in task if isinstance(one, Shard)]
            with self._lock:
                self._require_open()
                able = [actor for one in shards for actor in self._actors.get(one.number, ())]
                able = able or [actor for held in self._actors.values() for actor in held]
                actor = min(able, key=lambda actor: actor.busy)
                actor.busy += 1
            reference = actor.handle.call.remote(put, *task)
            return Sent(reference, f"a task of {shards[0].said}", lambda: self._ended(actor))

        return in_order(send, tasks, self._in_flight * self._count(), self.told)

    def _follow(self, numbers: set[int]) -> None:
        """Starts the actors of shards that came after the first ones, if there is room by now.

        Else those of other shards open the new ones, for each task: slower, and as right.
        """
        with self._lock:
            self._require_open()
            new = numbers - self._actors.keys()
            short = new and self._actors and free() < self._replicas * len(new) * self._cpus
        if new and not short:
            try:
                self.start(numbers)
            except ClusterFailed:
                if not self._actors:
                    raise

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedIndex(
                "the connection to the shards is closed", remedy="connect to the shards again"
            )

    def close(self) -> None:
        """Ends the actors. Calls raise ClosedIndex from here on."""
        with self._lock:
            self._closed = True
            gone, self._actors = self._actors, {}
        if ray.is_initialized():
            _end(one for actors in gone.values() for one in actors)

    def _started(self, number: int) -> _Actor:
        kind: Any = ray.remote(Holder)
        return _Actor(kind.options(
            num_cpus=self._cpus, max_restarts=-1, max_task_retries=RETRIES,
        ).remote(number))

    def _ended(self, actor: _Actor) -> None:
        with self._lock:
            actor.busy -= 1

    def _count(self) -> int:
        return sum(map(len, self._actors.values()))


def _end(actors: Iterable[_Actor]) -> None:
    for one in actors:
        ray.kill(one.handle)
