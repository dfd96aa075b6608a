"""Exact questions to each structure an index may carry: uniform rows, skewed rows, and h = 6.

Every structure gets an index of its own, so that bytes a row are its alone. The answers to the
first queries are compared with those of a brute force that shares no code with the package.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks import peers
from benchmarks.building import plain_file, remove
from benchmarks.corpora import U64, Corpus, H, oracle
from benchmarks.machine import disk_bytes
from benchmarks.online import Pairs, latencies, pairs_of, percentiles
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch, IndexOptions

STRUCTURES = (
    "psm", "bphs:G=2,g=1,r=1", "bphs:G=3,g=1,r=2", "bphs:G=4,g=1", "bphs:G=5,g=2",
    "bphs:nested=4x4",
)
"""Exact at h = 3. "psm" alone tries every flip set."""
WIDE_STRUCTURES = ("psm", "bphs:G=3,g=1,r=2", "bphs:G=4,g=1,r=2")
"""Exact at h = 6."""

SLOW_QUERIES = 50
"""Exact PSM takes so many times as long as tables do: it gets fewer queries, by this factor."""

BRUTE_COMPARISONS = 2_000_000_000

TEMPLATES = 3000
TEMPLATE_FLIPS = 12
SKEWED_SHARE = 10
"""One row in so many is made from a template."""


def online_exact(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Uniform rows; batch calls, half of the queries within H of a stored row."""
    rows = np.fromfile(plain_file(options.rows, options.seed, directory), "<u8")
    rng = np.random.default_rng([options.seed, 5])
    half = options.queries // 2
    queries = np.concatenate([
        rewritten(rng, rows[rng.integers(0, len(rows), half)], H),
        oracle.uniform(rng, options.queries - half)[:, 0],
    ])
    queries = queries[rng.permutation(len(queries))]
    measured = []
    truth = Truth(rows, queries, H)
    for structure in options.structure or STRUCTURES:
        with built(directory, rows, structure) as (index, path):
            measured.append(batch_rate("online-exact", index, path, structure, truth, watch))
    return [*measured, *peer_rates("online-exact", options, ("multihash",), truth, watch)]


def online_exact_skewed(
    options: Namespace, directory: Path, watch: Stopwatch
) -> list[Measurement]:
    """A tenth of rows and queries made from templates; batch calls, and one query in a call."""
    rng = np.random.default_rng([options.seed, 6])
    skewed = Skewed(rng, options.popularity)
    rows = skewed.drawn(rng, options.rows)
    half = options.queries // 2
    queries = np.concatenate([
        rewritten(rng, rows[rng.integers(0, len(rows), half)], H),
        skewed.drawn(rng, options.queries - half),
    ])
    queries = queries[rng.permutation(len(queries))]
    calls = min(options.calls, len(queries))
    name = f"online-exact-skewed {options.popularity}"
    measured = []
    truth = Truth(rows, queries, H)
    for structure in options.structure or STRUCTURES:
        with built(directory, rows, structure) as (index, path):
            measured.append(batch_rate(name, index, path, structure, truth, watch))
            batches = [Batch(queries[at : at + 1]) for at in range(few(structure, calls))]

            def one(
                at: int, index: simindex.Index = index, batches: list[Batch] = batches,
                method: str = structure,
            ) -> object:
                return index.query(batches[at], h=H, method=method, threads=1)

            runs = [latencies(one, len(batches)) for _ in range(watch.repeat + 1)][1:]
            measured += percentiles(name, f"simindex {structure}", options.rows, runs)
    kinds = ("multihash", "multihash4")
    return [*measured, *peer_rates(name, options, kinds, truth, watch, calls)]


def online_h6(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Rows with weights and rewrites within 6 bits: exact, and PSM at a recall of 0.95."""
    measured, truth = _rewrites_within(6, options, directory, watch)
    return [*measured, *peer_rates("online-h6", options, peers.WITHIN_6_BITS, truth, watch)]


def online_h7(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """The same within 7 bits, the radius of the default recipes; without a peer."""
    return _rewrites_within(7, options, directory, watch)[0]


def _rewrites_within(
    radius: int, options: Namespace, directory: Path, watch: Stopwatch
) -> tuple[list[Measurement], Truth]:
    corpus = Corpus(options.rows, options.queries, options.seed, h=radius)
    stored = prepare(corpus, directory)
    rows = np.array(stored.fingerprints)
    truth = Truth(rows, stored.queries, radius)
    measured = []
    for structure in options.structure or WIDE_STRUCTURES:
        if structure == "psm":
            continue
        with built(directory, rows, structure) as (index, path):
            asked = batch_rate(f"online-h{radius}", index, path, structure, truth, watch)
            measured.append(asked)
            if not truth.sampled:
                truth.sample(index, structure)
    if "psm" in (options.structure or WIDE_STRUCTURES):
        measured.insert(0, psm_at_recall(options, stored, truth, watch))
    return measured, truth


def psm_at_recall(
    options: Namespace, stored: Stored, truth: Truth, watch: Stopwatch
) -> Measurement:
    """PSM asked for more and more recall until 0.95 is measured."""
    batch = Batch(stored.queries, weights=stored.weights)
    with simindex.open(stored.path) as index:
        index.tune(h=truth.h)
        if not truth.sampled:
            truth.sample(index, "psm")
        for asked in (0.95, 0.96, 0.97, 0.98, 0.99):
            found = index.query(
                batch.take(np.arange(truth.sampled)), h=truth.h, recall=asked, method="psm",
                threads=1,
            )
            got = pairs_of(found, truth.sampled)
            if not got <= truth.pairs:
                raise SystemExit("a match is none: precision is below 1")
            recall = len(got) / len(truth.pairs)
            if recall >= 0.95:
                break
        rates, found = watch.rates(
            len(batch),
            lambda: index.query(batch, h=truth.h, recall=asked, method="psm", threads=1),
        )
    return Measurement(
        f"online-h{truth.h}", f"simindex {found.stats.method}", options.rows, rates, "queries/s",
        bytes_per_row=disk_bytes(stored.path) / options.rows, recall=recall,
        notes=(
            f"asked {asked}; k = {found.stats.flips}; truth of {truth.sampled:,} queries, "
            f"{len(truth.pairs):,} pairs; calls of {len(batch):,}"
        ),
    )


# -- rows and questions ----------------------------------------------------------------------------


def rewritten(rng: np.random.Generator, words: U64, h: int) -> U64:
    """Fingerprints (n,) with 0 to h of their bits flipped, each number as likely."""
    flips = rng.integers(0, h + 1, len(words))
    bit = [np.uint64(1) << rng.integers(0, 64, len(words), dtype=np.uint64) for _ in range(h)]
    words = words.copy()
    for number, flipped in enumerate(bit):
        words ^= np.where(number < flips, flipped, np.uint64(0))
    return words


class Skewed:
    """Fingerprints of which a tenth are templates with up to 12 bits flipped.

    All templates are as likely, or, of `"power"`, each as one over its place in their order.
    """

    def __init__(self, rng: np.random.Generator, popularity: str) -> None:
        self.templates = oracle.uniform(rng, TEMPLATES)[:, 0]
        share = 1 / np.arange(1, TEMPLATES + 1) if popularity == "power" else np.ones(TEMPLATES)
        self.share = share / share.sum()

    def drawn(self, rng: np.random.Generator, rows: int) -> U64:
        """So many, in random order."""
        made = rows // SKEWED_SHARE
        centres = self.templates[rng.choice(TEMPLATES, made, p=self.share)]
        words = np.concatenate([
            oracle.flip(rng, centres, rng.integers(0, TEMPLATE_FLIPS + 1, made))[:, 0],
            oracle.uniform(rng, rows - made)[:, 0],
        ])
        drawn: U64 = words[rng.permutation(rows)]
        return drawn


class Truth:
    """Stored rows, the questions about them, and what brute force answers to the first of them."""

    def __init__(self, rows: U64, queries: U64, h: int) -> None:
        self.rows, self.queries, self.h = rows, queries, h
        self.checked = max(1, min(2_000, len(queries), BRUTE_COMPARISONS // len(rows)))
        say(f"  answering {self.checked:,} queries by brute force")
        self.brute: Pairs = set()
        # In parts of the rows: the blocks of the oracle then stay in the cache.
        for first in range(0, len(rows), 1 << 20):
            near = oracle.matches(rows[first : first + (1 << 20)], queries[: self.checked], h)
            self.brute |= {(int(query), int(row) + first) for query, row, _ in near}
        self.sampled, self.pairs = 0, self.brute
        self.matches: dict[int, int] = {}

    def confirm(self, found: simindex.Matches, asked: int) -> None:
        """Ends the run if an exact answer to the first queries is not that of brute force."""
        below = min(self.checked, asked)
        if pairs_of(found, below) != {pair for pair in self.brute if pair[0] < below}:
            raise SystemExit("the exact answer differs from brute force")
        if self.matches.setdefault(asked, len(found)) != len(found):
            raise SystemExit("two exact structures find different numbers of matches")

    def sample(self, index: simindex.Index, method: str) -> None:
        """Takes the pairs of more queries from an exact structure that brute force confirmed."""
        sampled = min(len(self.queries), few(method, 50_000))
        found = index.query(self.queries[:sampled], h=self.h, method=method, threads=1)
        self.confirm(found, sampled)
        self.sampled, self.pairs = sampled, pairs_of(found, sampled)


@contextmanager
def built(
    directory: Path, rows: U64, structure: str
) -> Iterator[tuple[simindex.Index, Path]]:
    """An index of the rows in one segment with one structure; removed afterwards."""
    path = directory / f"exact-{len(rows)}.sim"
    remove(path)
    names = ("psm",) if structure == "psm" else ("psm", structure)
    say(f"  building {structure}")
    try:
        with simindex.open(path, "n", options=IndexOptions(structures=names)) as index:
            for first in range(0, len(rows), 1 << 20):
                part = rows[first : first + (1 << 20)]
                index.append(part, ids=np.arange(first, first + len(part), dtype=np.uint64))
            index.commit()
            index.compact(full=True)
        with simindex.open(path) as index:
            yield index, path
    finally:
        remove(path)


# -- measurements ----------------------------------------------------------------------------------


def few(structure: str, queries: int) -> int:
    """How many queries are enough to time a structure."""
    return max(1, queries // SLOW_QUERIES) if structure == "psm" else queries


def batch_rate(
    workload: str, index: simindex.Index, path: Path, structure: str, truth: Truth,
    watch: Stopwatch,
) -> Measurement:
    """Exact batch calls to one structure."""
    asked = few(structure, len(truth.queries))
    batch = Batch(truth.queries[:asked])
    rates, found = watch.rates(
        asked, lambda: index.query(batch, h=truth.h, method=structure, threads=1)
    )
    truth.confirm(found, asked)
    say(f"    {structure}: {sorted(rates)[len(rates) // 2]:,.0f} queries/s")
    return Measurement(
        workload, f"simindex {structure}", len(truth.rows), rates, "queries/s",
        bytes_per_row=disk_bytes(path) / len(truth.rows), recall=1.0,
        notes=(
            f"h = {truth.h}; {found.stats.probes / asked:,.0f} probes and "
            f"{found.stats.rows_compared / asked:,.0f} rows compared a query, "
            f"{len(found) / asked:.2f} matches; calls of {asked:,}; "
            f"{min(asked, truth.checked):,} confirmed by brute force"
        ),
    )


def peer_rates(
    workload: str, options: Namespace, kinds: Sequence[str], truth: Truth, watch: Stopwatch,
    calls: int = 0,
) -> list[Measurement]:
    """The same questions to FAISS, as many of them as its speed allows; the fastest kind first."""
    if options.peer == "none":
        return []
    if options.peer != "auto":
        kinds = (options.peer,)
    elif options.rows > peers.LARGEST_MULTIHASH:
        kinds = ("flat",)
    measured = []
    for kind in kinds:
        peer = peers.build(kind, truth.rows)
        asked = min(peer.queries, len(truth.queries))
        queries = truth.queries[:asked]
        rates, (limits, rows) = watch.rates(asked, partial(peer.query, queries, truth.h))
        say(f"    {peer.name}: {sorted(rates)[len(rates) // 2]:,.0f} queries/s")
        query = np.repeat(np.arange(asked), np.diff(limits.astype(np.int64)))
        below = min(asked, truth.checked)
        got = {p for p in zip(query.tolist(), rows.tolist(), strict=True) if p[0] < below}
        wanted = {pair for pair in truth.brute if pair[0] < below}
        theirs = [Measurement(
            workload, peer.name, len(truth.rows), rates, "queries/s",
            bytes_per_row=peer.bytes_per_row,
            recall=len(got & wanted) / len(wanted) if wanted else None,
            notes=f"calls of {asked:,}; bytes in memory; built in {peer.build_seconds:.1f} s",
        )]
        if calls:
            singles = [peers.as_bytes(queries[at : at + 1]) for at in range(min(calls, asked))]

            def one(at: int, peer: peers.Peer = peer, singles: list[object] = singles) -> object:
                return peer.index.range_search(singles[at], truth.h + 1)

            runs = [latencies(one, len(singles)) for _ in range(watch.repeat)]
            theirs += percentiles(workload, peer.name, len(truth.rows), runs)
        measured.append(theirs)
    measured.sort(key=lambda kind: -kind[0].median)
    return [one for kind in measured for one in kind]
