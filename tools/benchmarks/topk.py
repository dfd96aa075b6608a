"""The K nearest of wide signatures: exact scan and slice lists compared with FAISS, in one run.

    all rows, clustered     scan, slice lists; Flat, IVF and MultiHash
    a part of them          the same two and HNSW, on two kinds of signatures (`signatures`):
                            `clustered`, and `latent`, on which a graph index is strong

Engines are asked in turn in every round, once with all queries in a call and once with one query
in a call; times are of a query. Every index is of one segment; ids are row numbers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks import machine, toppeers
from benchmarks.building import remove
from benchmarks.corpora import U64
from benchmarks.report import Measurement
from benchmarks.signatures import BITS, Nearest, Signatures, drawn
from benchmarks.stopwatch import CLOCKS, Stopwatch, say
from simindex import IndexOptions, _kernels

K = 10
QUERIES = 1000
SLICE_BITS = 16
MAX_ERRORS = (0, 1, 2)
APPENDED_ROWS = 1 << 18
PART = 10
"""HNSW takes half a minute for a tenth of the rows."""

Top = Callable[[U64], U64]
"""Ids (m, K) of queries (m, 16)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An engine with its setting, and how many queries are enough to time it."""

    engine: str
    top: Top
    queries: int
    notes: Callable[[], str]
    bytes_per_row: float | None = None


def topk(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Compares with Flat, IVF and MultiHash on all rows, and with HNSW on a part of two kinds."""
    queries = min(options.queries, QUERIES)
    peer = options.peer != "none"
    measured: list[Measurement] = []
    if options.rows > 0:
        every = drawn("clustered", options.rows, queries, options.seed)
        kinds = ("flat", "ivf", "multihash") if peer else ()
        measured += of_set("topk", options, every, kinds, directory, watch)
        del every
    part = options.rows // PART if options.graph_rows is None else options.graph_rows
    if part > 0:
        for kind in ("clustered", "latent"):
            some = drawn(kind, part, queries, options.seed)
            graph = ("hnsw",) if peer else ()
            measured += of_set(f"topk graph {kind}", options, some, graph, directory, watch)
    return measured


def of_set(
    name: str, options: Namespace, of: Signatures, kinds: tuple[str, ...], directory: Path,
    watch: Stopwatch,
) -> list[Measurement]:
    """Every engine on one set of signatures."""
    n = len(of.rows)
    say(f"{name}: {n:,} rows")
    truth = Nearest(of, K)
    path = directory / f"topk-{n}.sim"
    remove(path)
    try:
        builds = [slice_lists(name, of.rows, watch), *indexes(name, path, of.rows, watch)]
        with simindex.open(path) as index:
            asked = [scan(index, path, n, of.queries, truth), *issl(index, options, path, n, of)]
            peers = [toppeers.build(kind, of.rows, options.nlist) for kind in kinds]
            builds += [build_of(name, n, peer) for peer in reversed(peers)]
            asked += [setting for peer in peers for setting in settings(peer, of)]
            measured = [*timed(name, of, asked, truth, watch), *builds]
    finally:
        remove(path)
    return measured


# -- engines ---------------------------------------------------------------------------------------


def scan(
    index: simindex.Index, path: Path, n: int, queries: U64, truth: Nearest
) -> Asked:
    """The exact scan; its answers become the truth."""
    top = partial(_scan, index)
    truth.learn(top(queries))
    return Asked(
        "simindex scan", top, len(queries),
        lambda: f"{truth.checked} queries confirmed by brute force", 8 + BITS / 8,
    )


def _scan(index: simindex.Index, queries: U64) -> U64:
    return index.top(queries, k=K, method="scan", threads=1).id


def issl(
    index: simindex.Index, options: Namespace, path: Path, n: int, of: Signatures
) -> list[Asked]:
    """Slice lists with each limit of errors."""
    size = machine.disk_bytes(path) / n
    lists = sum(map(machine.disk_bytes, path.rglob("*.issl"))) / n
    made = []
    for max_error in options.max_error or MAX_ERRORS:
        top = partial(
            index.top, k=K, method="issl", max_error=max_error, rerank=options.rerank, threads=1
        )
        made.append(Asked(
            f"simindex issl, max_error {max_error}", partial(_ids, top), len(of.queries),
            partial(_work, top, of.queries, lists), size,
        ))
    return made


def _ids(top: Callable[[U64], simindex.TopMatches], queries: U64) -> U64:
    return top(queries).id


def _work(
    top: Callable[[U64], simindex.TopMatches], queries: U64, lists: float
) -> str:
    found, m = top(queries).stats, len(queries)
    return (
        f"rerank {found.rerank}; {found.lists / m:,.0f} lists and {found.rows_compared / m:,.0f} "
        f"rows compared a query; lists are {lists:.1f} bytes a row"
    )


def settings(peer: toppeers.TopPeer, of: Signatures) -> list[Asked]:
    """A FAISS index, as it is asked with each of its settings."""

    def top(setting: toppeers.Setting, queries: U64) -> U64:
        setting.set()
        return peer.top(queries, K)

    return [
        Asked(
            one.name, partial(top, one), max(1, int(one.share * len(of.queries))),
            lambda: f"built in {peer.build_seconds:.1f} s; bytes in memory", peer.bytes_per_row,
        )
        for one in peer.settings
    ]


# -- times -----------------------------------------------------------------------------------------


def timed(
    name: str, of: Signatures, asked: list[Asked], truth: Nearest, watch: Stopwatch
) -> list[Measurement]:
    """Milliseconds a query of each engine: all queries in a call, one in a call; recall of each."""
    n = len(of.rows)

    def singly(one: Asked) -> None:
        for at in range(singles[one.engine]):
            one.top(of.queries[at : at + 1])

    say("  asking in batches")
    batches = watch.in_turn({
        one.engine: partial(one.top, of.queries[: one.queries]) for one in asked
    })
    singles = {
        one.engine: few(batches[one.engine], one.queries, one.queries) for one in asked
    }
    say("  asking one at a time")
    calls: dict[str, Callable[[], object]] = {
        one.engine: partial(singly, one) for one in asked
    }
    calls["memory"] = partial(machine.read_words, of.rows)
    alone = watch.in_turn(calls)
    recall = {one.engine: truth.recall(one.top(of.queries[: one.queries])) for one in asked}
    notes = {one.engine: one.notes() for one in asked}
    measured = []
    for suffix, times, queries in (
        ("", batches, {one.engine: one.queries for one in asked}), (" single", alone, singles)
    ):
        for one in asked:
            m = queries[one.engine]
            ms = tuple(1e3 * seconds / m for seconds in times[one.engine])
            calls_of = f"calls of {m:,}" if not suffix else f"{m:,} calls"
            measured.append(Measurement(
                name + suffix, one.engine, n, ms, "ms", one.bytes_per_row, recall[one.engine],
                f"{calls_of}; {notes[one.engine]}",
            ))
            say(
                f"    {one.engine}{suffix}: {measured[-1].median:.3f} ms, "
                f"recall {recall[one.engine]:.3f}"
            )
    scanned = singles["simindex scan"] * of.rows.nbytes / 1e9
    measured += [
        Measurement(
            f"{name} read", engine, n, tuple(size / seconds for seconds in alone[called]), "GB/s",
            notes=f"{of.rows.nbytes / 1e6:.0f} MB; {how}",
        )
        for engine, called, size, how in (
            ("memory, read once", "memory", of.rows.nbytes / 1e9, machine.READ_BY),
            ("simindex scan", "simindex scan", scanned, "one query at a time; bytes of signatures"),
        )
    ]
    return measured


def few(times: list[float], queries: int, most: int) -> int:
    """How many single calls take about as long as a second of a batch does, or all of them."""
    each = float(np.median(times)) / queries
    return max(1, min(most, int(1 / each)))


# -- building --------------------------------------------------------------------------------------


def slice_lists(name: str, rows: U64, watch: Stopwatch) -> Measurement:
    """The slice lists of all rows, in memory."""
    slices = BITS // SLICE_BITS
    rates, (starts, numbers) = watch.rates(
        len(rows),
        lambda: _kernels._native.slice_lists(rows, SLICE_BITS, 0, slices, threads=1),
    )
    size = starts.nbytes + numbers.nbytes
    return Measurement(
        f"{name} build", "simindex slice lists", len(rows), rates, "signatures/s",
        size / len(rows), notes=f"in memory; {slices} slices of {SLICE_BITS} bits",
    )


def indexes(name: str, path: Path, rows: U64, watch: Stopwatch) -> list[Measurement]:
    """Append with ids, commit and compact to one segment; the last one is left at the path."""
    measured = []
    for structures in (("psm",), ("psm", "issl")):
        rates = []
        for _ in range(watch.repeat):
            remove(path)
            start = CLOCKS[watch.clock]()
            build(path, rows, structures)
            rates.append(len(rows) / (CLOCKS[watch.clock]() - start))
        measured.append(Measurement(
            f"{name} build", f"simindex {','.join(structures)}", len(rows), tuple(rates),
            "signatures/s", machine.disk_bytes(path) / len(rows),
            notes="append, commit, compact to one segment; bytes on disk",
        ))
        say(f"  {measured[-1].engine}: {measured[-1].median:,.0f} signatures/s")
    return measured


def build(path: Path, rows: U64, structures: tuple[str, ...]) -> None:
    """An index of the rows in one segment."""
    options = IndexOptions(bits=BITS, structures=structures)
    with simindex.open(path, "n", options=options) as index:
        for first in range(0, len(rows), APPENDED_ROWS):
            part = rows[first : first + APPENDED_ROWS]
            index.append(part, ids=np.arange(first, first + len(part), dtype=np.uint64))
        index.commit()
        index.compact(full=True)


def build_of(name: str, n: int, peer: toppeers.TopPeer) -> Measurement:
    """What it took to build a FAISS index, once."""
    return Measurement(
        f"{name} build", peer.name, n, (n / max(peer.build_seconds, 1e-9),), "signatures/s",
        peer.bytes_per_row, notes=f"{peer.build_seconds:.1f} s by the wall clock; bytes in memory",
    )
