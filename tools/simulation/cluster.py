"""Machines, shards and who has which, in simulated time.

    asker --- network --- node 0    cores | disk | network in | network out    shards 0, 4, 8
                      --- node 1                                               shards 1, 5, 9
                      --- storage, which sends what the networks of the nodes take

1. A core, a disk and each direction of a network do one thing at a time, first come first served.
   A long message lets others pass after each piece.
2. A node has its tables in memory if those of all its shards fit. Else each batch reads them.
3. A lost node answers nothing from then on. What is on the way to or from it arrives.
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from simindex.planning.fleet import Fleet, Rates, ShardWork, crowding

Process = Generator[simpy.Event, Any, Any]

PARTS = 16
"""Of the building of a shard."""

PIECE_BYTES = 1 << 28
"""What goes over the network without a pause for others."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked and what happens meanwhile. By default nothing does."""

    batches: int = 1
    in_flight: int = 1
    """Batches that are asked before the first of them is answered."""
    queries_share: float = 1.0
    """Of a batch, that each shard is asked. Less than 1 for shards by prefix."""
    hot: float = 1.0
    """How many times as many rows and queries shard 0 has as each of the others."""
    slow_share: float = 0.0
    """Of the machines are stragglers, drawn by the seed."""
    slowness: float = 4.0
    """How many times as long the processor and the disk of one take."""
    lost_at_s: float | None = None
    """When machine 0 is lost."""
    notice_s: float = 1.0
    """From then on until others take its shards."""
    added_at_s: float | None = None
    """When shards are added, which machines fetch from shared storage."""
    added: int = 0
    seed: int = 0


@dataclass(slots=True)
class Node:
    """A machine."""

    number: int
    slowness: float
    cores: simpy.Resource
    disk: simpy.Resource
    receiving: simpy.Resource
    sending: simpy.Resource
    lost: simpy.Event
    shards: set[int] = field(default_factory=set)
    asked: int = 0
    """Sweeps that are not answered yet."""
    busy_s: float = 0.0
    """Of all cores."""


class Cluster:
    """All nodes, and which has which shards."""

    def __init__(self, fleet: Fleet, work: ShardWork, load: Load, disk_bytes_s: float) -> None:
        self.env = simpy.Environment()
        self.fleet, self.work, self.load, self.disk_bytes_s = fleet, work, load, disk_bytes_s
        self.shards = fleet.shards or 1
        drawn = random.Random(load.seed)
        self.nodes = [
            self._node(number, load.slowness if drawn.random() < load.slow_share else 1.0)
            for number in range(fleet.machines)
        ]
        self.asker = self._node(-1, 1.0)
        for shard in range(self.shards):
            for _ in range(fleet.replicas):
                self.place(shard)
        if load.lost_at_s is not None:
            self.env.process(self._lose(self.nodes[0], load.lost_at_s))

    def _node(self, number: int, slowness: float) -> Node:
        env = self.env
        return Node(
            number, slowness, simpy.Resource(env, self.fleet.cores), simpy.Resource(env),
            simpy.Resource(env), simpy.Resource(env), simpy.Event(env),
        )

    def _lose(self, node: Node, at_s: float) -> Process:
        yield self.env.timeout(at_s)
        node.lost.succeed()

    def alive(self) -> list[Node]:
        """Those that are not lost, by number."""
        found = [node for node in self.nodes if not node.lost.triggered]
        if not found:
            raise SystemExit("the last machine is lost: simulate more machines")
        return found

    def hosts(self, shard: int) -> list[Node]:
        """Those of them that have a shard."""
        return [node for node in self.alive() if shard in node.shards]

    def place(self, shard: int) -> Node:
        """Gives a shard to the node with the fewest that does not have it."""
        free = [node for node in self.alive() if shard not in node.shards]
        chosen = min(free, key=lambda node: len(node.shards))
        chosen.shards.add(shard)
        return chosen

    def share(self, shard: int) -> float:
        """Rows of a shard, and queries that it is asked, as parts of what all have on average."""
        if shard >= self.shards:
            return 1.0
        hot = self.load.hot
        return (hot if shard == 0 else 1.0) * self.shards / (hot + self.shards - 1)

    def in_memory(self, node: Node) -> bool:
        """Whether its tables are."""
        held = sum(self.share(shard) for shard in node.shards) * self.work.memory_bytes
        return held <= self.fleet.memory_bytes

    def send(self, source: Node | None, target: Node, size_bytes: float) -> Process:
        """A message; from shared storage if no node sends it."""
        yield self.env.timeout(self.fleet.latency_s)
        links = [target.receiving] if source is None else [source.sending, target.receiving]
        yield self.env.process(self.transfer(links, size_bytes))

    def transfer(self, links: list[simpy.Resource], size_bytes: float) -> Process:
        """Over all of some directions of the network, in pieces that let others pass."""
        pieces = max(1, math.ceil(size_bytes / PIECE_BYTES))
        for _ in range(pieces):
            requests = [link.request() for link in links]
            yield simpy.AllOf(self.env, requests)
            yield self.env.timeout(size_bytes / pieces / self.fleet.network_bytes_s)
            for link, request in zip(links, requests, strict=True):
                link.release(request)

    def compute(self, node: Node, seconds: float) -> Process:
        """On one core."""
        with node.cores.request() as core:
            yield core
            yield self.env.timeout(seconds * node.slowness)
            node.busy_s += seconds * node.slowness

    def build(self, node: Node, seconds: float, rates: Rates) -> Process:
        """On one core, in parts: each takes as long as the cores that are at work by then let it.
        """
        with node.cores.request() as core:
            yield core
            for _ in range(PARTS):
                yield self.env.timeout(0)  # others may begin at the same time
                slower = crowding(node.cores.count, self.fleet.cores, rates)
                spent_s = seconds / PARTS * slower * node.slowness
                yield self.env.timeout(spent_s)
                node.busy_s += spent_s

    def use_disk(self, node: Node, seconds: float) -> Process:
        """To read, or to write."""
        with node.disk.request() as disk:
            yield disk
            yield self.env.timeout(seconds * node.slowness)

    def all_of(self, *processes: Process) -> simpy.Event:
        """Happens when the last of them ends."""
        return simpy.AllOf(self.env, [self.env.process(one) for one in processes])
