"""All pairs of rows in memory, beside simhash-py: uniform rows, and rows with templates.

The peer is given its set of Python integers ready-made. It answers with pairs of distinct values,
without row numbers, so its answer is compared with what `collapse_equal` finds.
"""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable
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

PEER_BLOCKS = 5
"""The fastest for simhash-py among 4, 5 and 6, at a million rows."""

PEER_ROWS = 10_000_000
"""Beyond them the peer takes minutes and gigabytes."""

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
    """Each engine on some rows, in turn."""
    found: dict[str, Any] = {}
    calls: dict[str, Callable[[], object]] = {}

    def timed(engine: str, call: Callable[[], object]) -> None:
        def run() -> None:
            found[engine] = None  # what the last round found is freed first
            found[engine] = call()

        calls[engine] = run

    if name == "pairs" or len(rows) <= EXPANDED_ROWS:
        timed("simindex find_all", lambda: simindex.find_all(rows, h=H, threads=1))
    else:
        say(f"  {name}: equal rows in groups only, for more than {EXPANDED_ROWS:,} rows")
    timed(
        "simindex find_all collapse_equal",
        lambda: simindex.find_all(rows, h=H, collapse_equal=True, threads=1),
    )
    peer = peer_find_all(options, len(rows))
    if peer is not None:
        values = set(rows.tolist())
        timed(peer[0], lambda: peer[1](values, PEER_BLOCKS, H))
    say(f"  {name}: {', '.join(calls)}")
    seconds = watch.in_turn(calls)
    source = directory / "pairs.u64"
    rows.tofile(source)
    measured = []
    for engine, taken in seconds.items():
        notes = f"h = {H}; {len(found[engine]):,} pairs"
        memory = None
        if engine.startswith("simindex"):
            collapse = engine.endswith("collapse_equal")
            used = in_fresh_process("pairs", fingerprints=str(source), collapse=collapse)
            if used["pairs"] != len(found[engine]):
                raise SystemExit(f"{engine} found {used['pairs']:,} pairs in a fresh process")
            memory = used["peak_bytes"] / max(1, len(rows))
            notes += f"; peak resident {quantity(used['resident_bytes'] / 2**30)} GiB"
            if collapse:
                notes += f", {len(found[engine].groups):,} rows equal to an earlier one"
        else:
            notes += " of distinct values"
            ours = found["simindex find_all collapse_equal"]
            if len(found[engine]) != len(ours):
                raise SystemExit(f"the peer found {len(found[engine]):,} pairs, not {len(ours):,}")
        measured.append(Measurement(
            name, engine, len(rows), tuple(taken), "s", bytes_per_row=memory, notes=notes,
        ))
    source.unlink()
    return measured


def peer_find_all(options: Namespace, rows: int) -> tuple[str, Callable[..., Any]] | None:
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
