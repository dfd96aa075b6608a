"""All pairs of rows in memory, compared with simhash-py: uniform rows, and rows with templates.

The peer is given its set of Python integers ready-made. It answers with pairs of distinct values,
without row numbers, so its answer is compared with what `collapse_equal` finds.
"""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from benchmarks.building import plain_file
from benchmarks.corpora import U64, H
from benchmarks.exact import rewritten
from benchmarks.machine import version_of
from benchmarks.report import Measurement, quantity
from benchmarks.stopwatch import Stopwatch, in_fresh_process, say

Peer = tuple[str, Callable[..., Any]]
"""Name and function."""

PEER_BLOCKS = 5
"""The fastest for simhash-py among 4, 5 and 6, at a million rows."""

PEER_ROWS = 10_000_000
"""Beyond them the peer takes minutes and gigabytes."""

REPEATED_ROWS = 20_000_000
"""Beyond them a run takes a minute, and is not repeated."""

EXPANDED_ROWS = 2_000_000
"""Of rows with templates, which have 25 pairs each; beyond them these take gigabytes."""

PLANTED_SHARE = 100
"""One row of so many rewrites another one, within H."""

TEMPLATE_SHARE = 200
"""Templates are one for so many rows; half of all rows carry one of them."""


def pairs(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Every pair within H, of uniform rows and of skewed ones."""
    measured = []
    for name, make in (("pairs", planted), ("pairs skewed", with_templates)):
        rng = np.random.default_rng([options.seed, 11])
        rows = make(rng, np.fromfile(plain_file(options.rows, options.seed, directory), "<u8"))
        measured += measured_on(name, rows, options, directory, watch)
    return measured


def planted(rng: np.random.Generator, rows: U64) -> U64:
    """Some rows replaced by rewrites of others."""
    some = max(1, len(rows) // PLANTED_SHARE)
    rows[:some] = rewritten(rng, rows[len(rows) - some :], H)
    return rows


def with_templates(rng: np.random.Generator, rows: U64) -> U64:
    """Half of the rows replaced by templates, one in a hundred of these rewritten."""
    templates = rows[: max(1, len(rows) // TEMPLATE_SHARE)].copy()
    hot = np.flatnonzero(rng.random(len(rows)) < 0.5)
    rows[hot] = rng.choice(templates, len(hot))
    family = hot[: len(hot) // PLANTED_SHARE]
    rows[family] = rewritten(rng, rows[family], H)
    return rows


def measured_on(
    name: str, rows: U64, options: Namespace, directory: Path, watch: Stopwatch
) -> list[Measurement]:
    """Each engine on some rows, in turn; of many rows once, in a fresh process."""
    engines = {"simindex find_all": False, "simindex find_all collapse_equal": True}
    if name != "pairs" and len(rows) > EXPANDED_ROWS:
        say(f"  {name}: equal rows in groups only, for more than {EXPANDED_ROWS:,} rows")
        del engines["simindex find_all"]
    source = directory / "pairs.u64"
    rows.tofile(source)
    count = len(rows)
    seconds: dict[str, list[float]] = {}
    found: dict[str, int] = {}
    peer = peer_find_all(options, count)
    if count <= REPEATED_ROWS:
        seconds = watch.in_turn(calls_on(rows, engines, peer, found))
    rows = rows[:0]
    measured = []
    for engine in [*engines, *([peer[0]] if peer else [])]:
        memory, notes = None, f"h = {H}; "
        if engine in engines:
            used = in_fresh_process(
                "pairs", fingerprints=str(source), collapse=engines[engine], clock=watch.clock
            )
            if found.setdefault(engine, used["pairs"]) != used["pairs"]:
                raise SystemExit(f"{engine} found {used['pairs']:,} pairs in a fresh process")
            memory = used["peak_bytes"] / max(1, count)
            notes += (
                f"{used['pairs']:,} pairs, of {used['represented']:,}; "
                f"peak resident {quantity(used['resident_bytes'] / 2**30)} GiB"
            )
            taken = seconds.get(engine, [used["seconds"]])
        else:
            taken = seconds[engine]
            notes += f"{found[engine]:,} pairs of distinct values"
            if found[engine] != found["simindex find_all collapse_equal"]:
                raise SystemExit(f"the peer found {found[engine]:,} pairs")
        measured.append(Measurement(
            name, engine, count, tuple(taken), "s", bytes_per_row=memory, notes=notes,
        ))
    source.unlink()
    return measured


def calls_on(
    rows: U64, engines: Mapping[str, bool], peer: Peer | None, found: dict[str, int]
) -> dict[str, Callable[[], object]]:
    """A call of each engine, which notes how many pairs it found."""
    calls: dict[str, Callable[[], Any]] = {
        engine: partial(simindex.find_all, rows, h=H, collapse_equal=collapse, threads=1)
        for engine, collapse in engines.items()
    }
    if peer is not None:
        calls[peer[0]] = partial(peer[1], set(rows.tolist()), PEER_BLOCKS, H)

    def run(engine: str) -> None:
        found[engine] = len(calls[engine]())

    return {engine: partial(run, engine) for engine in calls}


def peer_find_all(options: Namespace, rows: int) -> Peer | None:
    """(name, function) of the peer; None, with a printed reason, if it is left out."""
    if options.peer == "none":
        return None
    if rows > PEER_ROWS:
        say(f"  without the peer: more than {PEER_ROWS:,} rows")
        return None
    for package in ("simhash-py", "simhash-pybind"):
        if version_of(package) is not None:
            name = f"{package} {version_of(package)} blocks={PEER_BLOCKS}"
            return name, importlib.import_module("simhash").find_all
    say("  without the peer: pip install simhash-pybind, the C++ core of simhash-py")
    return None
