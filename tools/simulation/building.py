"""A collection that is built from texts or fingerprints.

    shard 0    text in pieces: received | fingerprints, on all cores
               or fingerprints that one process hands to tasks, one after the other
               rows: one core, merges included | disk | to shared storage | replicas fetch it

The shards of a lost node are built again by others, from the start: `build_shard` publishes whole
shards only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import simpy

from simindex.planning.fleet import Fleet, Rates, ShardWork, merge_passes, shard_built_s
from simulation.cluster import Cluster, Load, Node, Process

HANDED_BYTES = 16
"""Of a row that is handed to a task: fingerprint and id."""

PIECES = 4
"""Of a shard's text for each core: one is received while others are turned into fingerprints."""


@dataclass(slots=True)
class Built:
    """What happened."""

    seconds: float = 0.0
    published: list[int] = field(default_factory=list)
    """Shards, in the order in which they were."""
    again: int = 0
    """Shards that were begun anew."""


class _Building:
    def __init__(
        self, cluster: Cluster, text_bytes: float, rates: Rates, handed_bytes_s: float
    ) -> None:
        self.cluster, self.env, self.rates = cluster, cluster.env, rates
        self.handed_bytes_s, self.hand = handed_bytes_s, simpy.Resource(cluster.env)
        self.text_bytes, self.built = text_bytes / cluster.shards, Built()

    def run(self) -> Built:
        self.env.run(self.cluster.all_of(*map(self._shard, range(self.cluster.shards))))
        self.built.seconds = self.env.now
        return self.built

    def _shard(self, shard: int) -> Process:
        copies = self.cluster.hosts(shard)
        node = min(copies, key=lambda one: one.asked)
        while True:
            node.asked += 1
            building = self.env.process(self._build(shard, node))
            yield building | node.lost
            if not building.is_alive:
                break
            building.interrupt("its node is lost")
            self.built.again += 1
            yield self.env.timeout(self.cluster.load.notice_s)
            hosts = self.cluster.hosts(shard)
            node = hosts[0] if hosts else self.cluster.place(shard)
        self.built.published.append(shard)
        others = [one for one in self.cluster.hosts(shard) if one is not node]
        size = self.cluster.work.disk_bytes * self.cluster.share(shard)
        if others:
            yield self.cluster.all_of(*(self.cluster.send(None, one, size) for one in others))

    def _build(self, shard: int, node: Node) -> Process:
        cluster, share = self.cluster, self.cluster.share(shard)
        try:
            if self.text_bytes:
                pieces = PIECES * cluster.fleet.cores
                size = self.text_bytes * share / pieces
                yield cluster.all_of(*(self._fingerprints(node, size) for _ in range(pieces)))
            rows = cluster.work.rows * share
            passes = merge_passes(round(rows))
            with self.hand.request() as hand:
                yield hand
                yield self.env.timeout(rows * HANDED_BYTES / self.handed_bytes_s)
            yield self.env.process(
                cluster.build(node, shard_built_s(rows, passes, self.rates), self.rates)
            )
            stored = cluster.work.disk_bytes * share
            speed = min(cluster.disk_bytes_s, self.rates.written_bytes_s)
            yield self.env.process(cluster.use_disk(node, (1 + passes) * stored / speed))
            yield self.env.process(cluster.transfer([node.sending], stored))
        except simpy.Interrupt:
            return

    def _fingerprints(self, node: Node, size_bytes: float) -> Process:
        with node.receiving.request() as link:
            yield link
            yield self.env.timeout(size_bytes / self.cluster.fleet.network_bytes_s)
        yield self.env.process(
            self.cluster.compute(node, size_bytes / self.rates.text_bytes_s)
        )


def build(
    fleet: Fleet,
    work: ShardWork,
    *,
    disk_bytes_s: float,
    text_bytes: float = 0,
    rates: Rates | None = None,
    load: Load | None = None,
    handed_bytes_s: float = inf,
) -> Built:
    """Simulates a build. `fleet` has its number of shards, as of `Fleet.checked`.

    `handed_bytes_s` is how fast one process gives rows to all tasks, if it does.
    """
    cluster = Cluster(fleet, work, load or Load(), disk_bytes_s)
    return _Building(cluster, text_bytes, rates or Rates(), handed_bytes_s).run()
