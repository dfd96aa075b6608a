"""Questions with weights about stored documents: a million in a call, and one in a call."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path

import numpy as np

import simindex
from benchmarks import peers
from benchmarks.corpora import Corpus, H, oracle
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch

RECALL = 0.95
TRUTH_QUERIES = 50_000
ORACLE_COMPARISONS = 20_000_000_000
"""2,000 queries on 10 M rows: about half a minute of numpy."""

Pairs = set[tuple[int, int]]


def online_psm(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Batch calls of a million queries, half of them near-duplicates of a stored row."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed), directory)
    batch = Batch(stored.queries, weights=stored.weights)
    with simindex.open(stored.path) as index:
        say(f"  querying {len(batch):,} at a time")
        rates, found = watch.rates(
            len(batch), lambda: index.query(batch, h=H, recall=RECALL, threads=1)
        )
        truth, sample = exact_pairs(index, stored)
        got = pairs_of(found, sample)
        if not got <= truth:
            raise SystemExit("a match is none: precision is below 1")
        planted = stored.partner >= 0
        hit = found.id.astype(np.int64) == stored.partner[found.query]
        stats = index.stats()
        ours = Measurement(
            "online-psm", f"simindex {found.stats.method}", options.rows, rates, "queries/s",
            bytes_per_row=disk_bytes(stored.path) / options.rows,
            recall=len(got) / len(truth),
            notes=(
                f"asked {RECALL}; k = {found.stats.flips}, {stats.segments} segments; found "
                f"{int(hit.sum()) / int(planted.sum()):.4f} of {int(planted.sum()):,} planted "
                f"pairs; truth of {sample:,} queries, {len(truth):,} pairs; whole calls of "
                f"{len(batch):,}"
            ),
        )
    return [ours, *peer_online(options, stored, truth, watch)]


def exact_pairs(index: simindex.Index, stored: Stored) -> tuple[Pairs, int]:
    """All pairs of the first queries, by an exact call that brute force has confirmed."""
    sample = min(TRUTH_QUERIES, len(stored.queries))
    exact = index.query(
        Batch(stored.queries[:sample], weights=stored.weights[:sample]),
        h=H, recall=1.0, threads=1,
    )
    truth = pairs_of(exact, sample)
    checked = min(2_000, sample, ORACLE_COMPARISONS // len(stored.fingerprints))
    say(f"  checking {checked:,} exact answers by brute force")
    # In parts of the rows: the blocks of the oracle then stay in the cache.
    brute: Pairs = set()
    for first in range(0, len(stored.fingerprints), 1 << 20):
        part = np.array(stored.fingerprints[first : first + (1 << 20)])
        near = oracle.matches(part, stored.queries[:checked], H)
        brute |= {(int(query), int(row) + first) for query, row, _ in near}
    if brute != {pair for pair in truth if pair[0] < checked}:
        raise SystemExit("the exact answer differs from brute force")
    return truth, sample


def pairs_of(found: simindex.Matches, below: int) -> Pairs:
    """(query, id) of the matches of the first queries."""
    kept = found.query < below
    return set(zip(found.query[kept].tolist(), found.id[kept].tolist(), strict=True))


def peer_online(
    options: Namespace, stored: Stored, truth: Pairs, watch: Stopwatch
) -> list[Measurement]:
    """The same questions to FAISS, as many of them as its speed allows."""
    if options.peer == "none":
        return []
    peer = peers.build(peers.chosen(options.peer, options.rows), stored.fingerprints)
    say(f"  {peer.name}: built in {peer.build_seconds:.1f} s")
    asked = min(peer.queries, len(stored.queries))
    rates, (limits, rows) = watch.rates(asked, lambda: peer.query(stored.queries[:asked]))
    query = np.repeat(np.arange(asked), np.diff(limits.astype(np.int64)))
    below = min(asked, TRUTH_QUERIES)
    got = {pair for pair in zip(query.tolist(), rows.tolist(), strict=True) if pair[0] < below}
    wanted = {pair for pair in truth if pair[0] < below}
    return [
        Measurement(
            "online-psm", peer.name, options.rows, rates, "queries/s",
            bytes_per_row=peer.bytes_per_row,
            recall=len(got & wanted) / len(wanted) if wanted else None,
            notes=f"calls of {asked:,}; bytes in memory; built in {peer.build_seconds:.1f} s",
        )
    ]


def online_single(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """One query in each Python call, as a crawler asks."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed), directory)
    calls = min(options.calls, len(stored.queries))
    batches = [
        Batch(stored.queries[at : at + 1], weights=stored.weights[at : at + 1])
        for at in range(calls)
    ]
    measured = []
    with simindex.open(stored.path) as index:
        engine = "simindex"
        for name, call in (
            ("", lambda at: index.query(batches[at], h=H, recall=RECALL, threads=1)),
            (
                " with making the Batch",
                lambda at: index.query(
                    Batch(stored.queries[at : at + 1], weights=stored.weights[at : at + 1]),
                    h=H, recall=RECALL, threads=1,
                ),
            ),
        ):
            runs = [latencies(call, calls) for _ in range(watch.repeat + 1)][1:]
            measured += percentiles("online-single", engine + name, options.rows, runs)
    if options.peer != "none":
        peer = peers.build(peers.chosen(options.peer, options.rows), stored.fingerprints)
        few = min(calls, peer.queries)
        singles = [peers.as_bytes(stored.queries[at : at + 1]) for at in range(few)]
        runs = [
            latencies(lambda at: peer.index.range_search(singles[at], H + 1), few)
            for _ in range(watch.repeat)
        ]
        measured += percentiles("online-single", peer.name, options.rows, runs)
    return measured


def latencies(call: object, calls: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Microseconds of each call, one after the other, by the wall clock."""
    assert callable(call)
    times = np.empty(calls)
    for at in range(calls):
        start = time.perf_counter_ns()
        call(at)
        times[at] = time.perf_counter_ns() - start
    return times / 1e3


def percentiles(
    workload: str, engine: str, rows: int,
    runs: list[np.ndarray[tuple[int], np.dtype[np.float64]]],
) -> list[Measurement]:
    """p50 and p99, each over all repetitions."""
    return [
        Measurement(
            f"{workload} p{percent}", engine, rows,
            tuple(float(np.percentile(run, percent)) for run in runs), "µs",
            notes=f"{len(runs[0]):,} calls of one query",
        )
        for percent in (50, 99)
    ]
