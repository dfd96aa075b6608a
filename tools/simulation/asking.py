"""Batches that are sent to shards, swept there, and merged.

    asker --> 0 --> 2        each node that has the batch sends it to the next that has not
          --> 1              and sweeps its own shards meanwhile
    0, 1, 2 --> asker        each shard's matches as they are found

A shard whose node is lost is asked again: at a replica, or at another node that first fetches it
from shared storage. Of each shard one answer counts.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

import simpy

from simindex.planning.fleet import MATCH_BYTES, Fleet, Rates, ShardWork, called_s
from simulation.cluster import Cluster, Load, Node, Process


@dataclass(slots=True)
class Asked:
    """What happened."""

    batch_s: list[float] = field(default_factory=list)
    """Of each batch, in the order in which they ended."""
    ended_s: list[float] = field(default_factory=list)
    answers: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How often each shard answered each batch."""
    shards: list[int] = field(default_factory=list)
    """That each batch asked."""
    matches: float = 0.0
    sent_bytes: float = 0.0
    fetched: int = 0
    """Shards that came from shared storage."""
    busy_share: float = 0.0
    """Of all cores, on average."""

    @property
    def seconds(self) -> float:
        """Until the last batch was answered."""
        return max(self.ended_s)


class _Asking:
    def __init__(
        self, cluster: Cluster, batch: int, query_bytes: float, rates: Rates
    ) -> None:
        self.cluster, self.env = cluster, cluster.env
        self.matches, self.size_bytes = batch * rates.match_share, batch * query_bytes
        self.merged_ns, self.found = rates.merged_ns, Asked()
        self.alone_s, self.shared_s = called_s(cluster.work, rates)
        self.known = list(range(cluster.shards))
        self.fetching: dict[tuple[int, int], simpy.Event] = {}

    def run(self) -> Asked:
        load = self.cluster.load
        if load.added_at_s is not None:
            self.env.process(self._add(load.added_at_s, load.added))
        waiting = deque(range(load.batches))
        self.env.run(simpy.AllOf(self.env, [
            self.env.process(self._one_after_another(waiting)) for _ in range(load.in_flight)
        ]))
        cores = self.cluster.fleet.cores * len(self.cluster.nodes)
        busy = sum(node.busy_s for node in self.cluster.nodes)
        self.found.busy_share = busy / cores / self.env.now if self.env.now else 0.0
        return self.found

    def _one_after_another(self, waiting: deque[int]) -> Process:
        while waiting:
            yield self.env.process(self._batch(waiting.popleft()))

    def _batch(self, number: int) -> Process:
        """Sends a batch, waits for all shards that are known now, and merges."""
        began, shards = self.env.now, list(self.known)
        chosen = {shard: self._least_asked(self.cluster.hosts(shard)) for shard in shards}
        targets = list({node.number: node for node in chosen.values()}.values())
        has = {node.number: simpy.Event(self.env) for node in targets}
        self.env.process(self._pass_on(self.cluster.asker, deque(targets), has))
        yield self.cluster.all_of(
            *(self._answer(number, shard, chosen[shard], has) for shard in shards)
        )
        matches = sum(map(self._matches, shards))
        yield self.env.process(
            self.cluster.compute(self.cluster.asker, matches * self.merged_ns * 1e-9)
        )
        self.found.matches += matches
        self.found.shards.append(len(shards))
        self.found.batch_s.append(self.env.now - began)
        self.found.ended_s.append(self.env.now)

    def _matches(self, shard: int) -> float:
        return self.matches / self.cluster.shards * self.cluster.share(shard)

    def _least_asked(self, hosts: list[Node]) -> Node:
        if not hosts:  # all its nodes are lost, and no batch has moved it yet
            return next(node for node in self.cluster.nodes if node.lost.triggered)
        chosen = min(hosts, key=lambda node: node.asked)
        chosen.asked += 1
        return chosen

    def _pass_on(
        self, source: Node, targets: deque[Node], has: dict[int, simpy.Event]
    ) -> Process:
        while targets and not source.lost.triggered:
            target = targets.popleft()
            if target.lost.triggered:
                continue
            yield self.env.process(self.cluster.send(source, target, self.size_bytes))
            self.found.sent_bytes += self.size_bytes
            has[target.number].succeed()
            self.env.process(self._pass_on(target, targets, has))

    def _answer(
        self, number: int, shard: int, node: Node, has: dict[int, simpy.Event]
    ) -> Process:
        while True:
            answering = self.env.process(self._swept(shard, node, has))
            yield answering | node.lost
            if not answering.is_alive:
                break
            answering.interrupt("its node is lost")
            yield self.env.timeout(self.cluster.load.notice_s)
            node = self._elsewhere(shard)
            if node.number not in has:
                has[node.number] = simpy.Event(self.env)
                yield self.env.process(
                    self.cluster.send(self.cluster.asker, node, self.size_bytes)
                )
                self.found.sent_bytes += self.size_bytes
                has[node.number].succeed()
        self.found.answers[number, shard] += 1

    def _elsewhere(self, shard: int) -> Node:
        """A node that has the shard; if none has it, one that begins to fetch it."""
        hosts = self.cluster.hosts(shard)
        if hosts:
            return self._least_asked(hosts)
        node = self.cluster.place(shard)
        node.asked += 1
        self.fetching[node.number, shard] = self.env.process(self._fetch(node, shard))
        return node

    def _fetch(self, node: Node, shard: int) -> Process:
        size = self.cluster.work.disk_bytes * self.cluster.share(shard)
        yield self.env.process(self.cluster.send(None, node, size))
        self.found.fetched += 1

    def _swept(self, shard: int, node: Node, has: dict[int, simpy.Event]) -> Process:
        try:
            yield has[node.number]
            fetching = self.fetching.get((node.number, shard))
            if fetching is not None and not fetching.processed:
                yield fetching
            yield self.env.process(self._sweep(shard, node))
            size = self._matches(shard) * MATCH_BYTES
            yield self.env.process(self.cluster.send(node, self.cluster.asker, size))
            node.asked -= 1
        except simpy.Interrupt:
            return

    def _sweep(self, shard: int, node: Node) -> Process:
        """As `reading.Call.seconds` has it: part of what is read is hidden behind computing."""
        cluster, work = self.cluster, self.cluster.work
        share = cluster.share(shard) * cluster.load.queries_share
        alone_s, shared_s = self.alone_s * share, self.shared_s * share
        processor_s = alone_s + shared_s
        reading, first_s = [], 0.0
        if not cluster.in_memory(node):
            read_s = work.call.read_bytes * cluster.share(shard) / cluster.disk_bytes_s
            hideable_s = work.call.hideable_bytes * cluster.share(shard) / cluster.disk_bytes_s
            hidden_s = work.call.hidden_share * min(processor_s, hideable_s)
            first_s = read_s - hidden_s
            reading = [cluster.use_disk(node, read_s)]
        yield cluster.all_of(*reading, self._compute(node, first_s, alone_s, shared_s))

    def _compute(self, node: Node, first_s: float, alone_s: float, shared_s: float) -> Process:
        """One thread begins alone, and then as many share the rest."""
        cluster = self.cluster
        yield self.env.timeout(first_s * node.slowness)
        if alone_s:
            yield self.env.process(cluster.compute(node, alone_s))
        yield cluster.all_of(
            *(cluster.compute(node, shared_s) for _ in range(cluster.work.threads))
        )

    def _add(self, at_s: float, shards: int) -> Process:
        """Places new shards, each of which is asked when it has been fetched."""
        yield self.env.timeout(at_s)
        new = range(len(self.known), len(self.known) + shards)
        yield self.cluster.all_of(
            *(self._fetch(self.cluster.place(shard), shard) for shard in new)
        )
        self.known.extend(new)


def ask(
    fleet: Fleet,
    work: ShardWork,
    *,
    batch: int,
    query_bytes: float,
    disk_bytes_s: float,
    rates: Rates | None = None,
    load: Load | None = None,
) -> Asked:
    """Simulates batches. `fleet` has its number of shards, as of `Fleet.checked`."""
    cluster = Cluster(fleet, work, load or Load(), disk_bytes_s)
    return _Asking(cluster, batch, query_bytes, rates or Rates()).run()
