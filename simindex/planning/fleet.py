"""What a collection of shards on several machines would take and reach, by formulas.

    build    texts from shared storage, while all cores make fingerprints of others; then shards,
             each on one core, in segments that are merged; these and what is merged to the disk;
             the shards to shared storage, and to other machines
    send     the batch, which each machine that has it passes on: log2(N + 1) rounds, rounded up
    sweep    each machine answers the batch for its shards, on all cores
    return   the matches, to the machine that asked
    merge    there, on one core for each batch

A batch takes the sum of the last four. Where batches overlap, the slowest step sets the rate.

What a sweep takes is what the planner says of an index of the size of a shard, of which threads
share a part. So constants of the machine are in `machine` alone, and those of building, of threads
and of merging here. Shared storage sends what
the networks of the machines take. Shards are equal, machines too, and none fails:
`tools/simulate.py` shows what it costs if this is not so.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

from simindex.checks import require, require_whole
from simindex.options import IndexOptions
from simindex.planning import cold_calls
from simindex.planning.calibration import Calibration
from simindex.planning.forecast import Outline, outlines
from simindex.planning.machine import Machine
from simindex.values import dataclass

MOST_MACHINES = MOST_SHARDS = 10_000

MOST_PRICE_H = 1e12
"""Costs stay numbers that JSON has."""

MATCH_BYTES = 8 + 8 + 2
"""The columns of `Matches`: query, id, distance."""

MOST_SPARED = 0.5
"""Share of a call that matches of other shards would take, at most."""

WEIGHT_BYTES = 4
"""Of each bit of a query that is asked with a recall below 1."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one core does to build shards and to merge their answers.

    The defaults are those of an AMD EPYC, by `tools/simulate.py measure`.
    """

    text_bytes_s: float = 50e6
    """JSON lines that become marked JSON lines and an index."""
    built_rows_s: float = 2.6e6
    """Rows in four permuted tables of a shard, read back and verified, without merges and the disk.
    """
    merged_rows_s: float = 2.9e6
    """Rows in segments that are merged into one; see `merge_passes`."""
    written_bytes_s: float = 1.2e9
    """To the disk, until they are durable, if the disk is not slower."""
    crowded: float = 1.2
    """How many times as long a core builds a shard while all others of its machine do, too."""
    undivided_share: float = 0.2
    """Of a call on one thread, that more threads do not share."""
    called_share: float = 1.0
    """What a call on one thread takes, as a share of what the planner says."""
    match_ns: float = 40.0
    """Of a call, for each match: the planner counts all of them in each shard."""
    merged_ns: float = 6.0
    """A match of a shard that becomes one of all shards."""
    match_share: float = cold_calls.MATCHED_SHARE
    """Matches of a query, on average, in all shards together."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Equal machines, and how shards are divided among them."""

    machines: int
    cores: int = 16
    memory_bytes: int = 64 << 30
    """That tables may take on a machine."""
    disk_bytes_s: float | None = None
    """None: as the constants of the machine say."""
    network_bytes_s: float = 1.25e9
    """Of each machine, in each direction; 10 Gbit/s."""
    latency_s: float = 0.001
    """Of each message."""
    replicas: int = 1
    """How many machines have each shard."""
    shards: int | None = None
    """None: as few as keep all machines busy, one for each machine of a replica."""
    price_h: float = 0.0
    """Of a machine for an hour, in any currency."""

    def checked(self, rows: int) -> Fleet:
        """With the number of shards of so many rows. Raises InvalidOption."""
        require_whole(self.machines, "machines", 1, MOST_MACHINES)
        require_whole(self.cores, "cores", 1, MOST_MACHINES)
        require_whole(self.replicas, "replicas", 1, self.machines)
        if self.shards is not None:
            require_whole(self.shards, "shards", 1, MOST_SHARDS)
        for name in ("network_bytes_s", "disk_bytes_s", "memory_bytes"):
            value = getattr(self, name)
            require(value is None or value > 0, name, value, "a number above 0")
        require(
            0 <= self.price_h <= MOST_PRICE_H, "price_h", self.price_h, f"0 to {MOST_PRICE_H:g}"
        )
        require(self.latency_s >= 0, "latency_s", self.latency_s, "0 or more")
        shards = self.machines // self.replicas if self.shards is None else self.shards
        return replace(self, shards=min(shards, max(1, rows)))


@dataclass(frozen=True, slots=True)
class FleetForecast:
    """What a collection with one structure takes and reaches."""

    method: str
    """As of `Forecast`."""
    recall: float
    tables: int
    machines: int
    shards: int
    rows_per_shard: int
    """Of the largest."""
    shards_per_machine: int
    """Of the machine that has most, replicas included."""
    disk_bytes: int
    """Of that machine."""
    memory_bytes: int
    fits: bool
    """Whether that machine has its tables in memory. If not, it reads them for each batch."""
    batch: int
    """Queries in a batch."""
    sent_bytes: int
    """Of a batch, to all machines together."""
    returned_bytes: int
    """Of its matches."""
    send_s: float
    sweep_s: float
    return_s: float
    merge_s: float
    batch_s: float
    """The sum of these four."""
    queries_s: float
    """If the next batch is sent before the last one is answered."""
    build_s: float
    """Until all shards are published and each machine has its own."""
    text_s: float
    """The part of it that makes fingerprints."""
    build_cost: float
    """Of all machines for this time."""
    batch_cost: float
    """Of all machines for a batch, at `queries_s`."""
    chosen: bool = False
    """Answers a batch in the least time."""



@dataclass(frozen=True, slots=True)
class ShardWork:
    """What one shard takes. The formulas and the simulation both begin with this."""

    rows: int
    disk_bytes: int
    memory_bytes: int
    call: cold_calls.Call
    """A batch on one thread, from the disk."""
    thread_call: cold_calls.Call
    """The same of the queries of one of `threads` threads."""
    threads: int
    """Cores that a sweep gets."""
    elsewhere: float = 0.0
    """Matches that the planner counts in a call, and that other shards have."""


def shard_work(one: Outline, fleet: Fleet, batch: int) -> ShardWork:
    """Of one of the shards whose outline is given, if all shards of a machine are asked at once."""
    asked = -(-(fleet.shards or 1) // fleet.machines)
    threads = max(1, min(fleet.cores // asked, batch))
    share = -(-batch // threads)
    return ShardWork(
        one.rows, one.disk_bytes, one.memory_bytes,
        one.cold_call(one.planned(batch), batch), one.cold_call(one.planned(share), share), threads,
        batch * cold_calls.MATCHED_SHARE * (1 - 1 / (fleet.shards or 1)),
    )


def merge_passes(rows: int) -> float:
    """How often each row of a shard is written again by merges, on average.

    Rows are sorted in segments of `batch_rows`. Merges leave one or a few of them, by the policy of
    writers: up to 8 become one at once, and 1,600 in five passes.
    """
    segments = rows / IndexOptions().batch_rows
    if segments <= 1:
        return 0.0
    return 1.0 + 0.53 * max(0.0, log2(segments / 8))


def shard_built_s(rows: float, passes: float, rates: Rates) -> float:
    """On one core, from the rows to a shard that is read back and verified, without the disk."""
    return rows / rates.built_rows_s + rows * passes / rates.merged_rows_s


def crowding(cores_at_work: int, cores: int, rates: Rates) -> float:
    """How many times as long each of some cores takes that build shards at once."""
    return 1.0 + (rates.crowded - 1.0) * (cores_at_work - 1) / max(1, cores - 1)


def called_s(work: ShardWork, rates: Rates) -> tuple[float, float]:
    """Of a call for one shard: what one thread does alone, and then each of all."""
    undivided = rates.undivided_share if work.threads > 1 else 0.0
    whole_s = rates.called_share * work.call.processor_s
    spared = min(MOST_SPARED, work.elsewhere * rates.match_ns * 1e-9 / whole_s) if whole_s else 0.0
    called = rates.called_share * (1 - spared)
    return (
        called * undivided * work.call.processor_s,
        called * (1 - undivided) * work.thread_call.processor_s,
    )


def send_s(fleet: Fleet, machines: int, size_bytes: float) -> float:
    """Until all of some machines have a message that each one with it passes on."""
    rounds = ceil(log2(machines + 1))
    return rounds * (fleet.latency_s + size_bytes / fleet.network_bytes_s)


def fleet_forecast(
    rows: int,
    fleet: Fleet,
    *,
    h: int | None = None,
    recall: float = 1.0,
    bits: int = 64,
    batch: int = 1_000_000,
    text_bytes: int = 0,
    machine: Machine | None = None,
    rates: Rates | None = None,
    calibration: Calibration | None = None,
) -> list[FleetForecast]:
    """Every structure that the shards may have; that of the fastest batch is marked.

    Parameters
    ----------
    batch : int
        Queries in a batch.
    text_bytes : int
        Of all documents. Default: the rows are fingerprints already.
    rates : Rates, optional
        By default the usual ones.
    h, recall, bits, machine, calibration
        As of `forecast`.

    Raises
    ------
    InvalidOption
        If an option is out of range.
    """
    fleet = fleet.checked(rows)
    require_whole(batch, "batch", 1)
    require_whole(text_bytes, "text_bytes", 0)
    machine, rates = machine or Machine(), rates or Rates()
    if fleet.disk_bytes_s is not None:
        machine = replace(machine, disk_bytes_s=fleet.disk_bytes_s)
    found = [
        _of_shards(one, rows, fleet, batch, text_bytes, rates)
        for one in outlines(
            -(-rows // (fleet.shards or 1)), h=h, recall=recall, bits=bits, machine=machine,
            calibration=calibration,
        )
    ]
    best = min(found, key=lambda one: one.batch_s)
    return [replace(one, chosen=one is best) for one in found]


def query_bytes(one: Outline) -> int:
    """Of a query that is sent."""
    bits = one.each.bits
    return bits // 8 + (WEIGHT_BYTES * bits if one.question.recall < 1 else 0)


def _of_shards(
    one: Outline, rows: int, fleet: Fleet, batch: int, text_bytes: int, rates: Rates
) -> FleetForecast:
    shards = fleet.shards or 1
    work = shard_work(one, fleet, batch)
    held = -(-shards * fleet.replicas // fleet.machines)
    asked_machines = min(fleet.machines, shards)
    fits = held * work.memory_bytes <= fleet.memory_bytes
    sweep = sweep_s(work, -(-shards // fleet.machines), fleet, one.machine, fits, rates)
    matches = batch * rates.match_share
    sent, returned = batch * query_bytes(one), matches * MATCH_BYTES
    sending = send_s(fleet, asked_machines, sent)
    returning = fleet.latency_s + returned / fleet.network_bytes_s
    merging = matches * rates.merged_ns * 1e-9
    # Replicas answer other batches at the same time, and other cores merge them.
    busy_s = sweep * min(1.0, shards / fleet.machines)
    slowest = max(sending, busy_s, returning, merging / fleet.cores)
    own = -(-shards // fleet.machines)
    text_s = own * text_bytes / shards / min(
        fleet.cores * rates.text_bytes_s, fleet.network_bytes_s
    )
    build_s = text_s + shards_built_s(work, fleet, one.machine, rates)
    design = one.design
    return FleetForecast(
        one.method, 1.0 if one.planned(batch).exact else one.question.recall,
        1 if design is None else design.tables, fleet.machines, shards, work.rows, held,
        held * work.disk_bytes, held * work.memory_bytes, fits, batch,
        sent * asked_machines, round(returned), sending, sweep, returning, merging,
        sending + sweep + returning + merging, batch / slowest, build_s, text_s,
        build_s / 3600 * fleet.machines * fleet.price_h,
        slowest / 3600 * fleet.machines * fleet.price_h,
    )


def sweep_s(
    work: ShardWork, asked: int, fleet: Fleet, machine: Machine, in_memory: bool, rates: Rates
) -> float:
    """Of a batch on a machine that answers it for so many shards."""
    processor_s = -(-asked // fleet.cores) * sum(called_s(work, rates))
    if in_memory:
        return processor_s
    # Its threads share what is read.
    call = work.call.times(asked)
    return replace(call, processor_s=processor_s).seconds(machine)


def shards_built_s(work: ShardWork, fleet: Fleet, machine: Machine, rates: Rates) -> float:
    """From fingerprints to shards: each on one core, written and merged, sent and fetched."""
    shards = fleet.shards or 1
    own = -(-shards // fleet.machines)
    turns = -(-own // fleet.cores)
    held = -(-shards * fleet.replicas // fleet.machines)
    stored = own * work.disk_bytes
    passes = merge_passes(work.rows)
    return (
        turns * shard_built_s(work.rows, passes, rates)
        * crowding(min(own, fleet.cores), fleet.cores, rates)
        + (1 + passes) * stored / min(machine.disk_bytes_s, rates.written_bytes_s)
        + stored / fleet.network_bytes_s
        + max(0, held - own) * work.disk_bytes / fleet.network_bytes_s
    )
