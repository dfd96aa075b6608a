"""Instructions that one warm call of each workload takes, of two versions, by callgrind.

    python tools/instructions.py --old PYTHON --new PYTHON [WORKLOAD ...]

`PYTHON` is an interpreter that imports the version to be measured. Seconds of a machine that others
use differ by a factor of two from run to run; the instructions of one call differ by less than one
in a hundred. Callgrind knows no AVX-512, so kernels run at the level of AVX2. Needs valgrind with
its headers, and a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import simindex
from simindex import Batch, IndexOptions, Recipe

ROWS, WIDE_ROWS, QUERIES, WIDE_QUERIES, TEXTS, H, SEED = 60_000, 20_000, 2_000, 100, 100, 3, 2011
BPHS = ("psm", "bphs:G=4,g=1")
WARM_CALLS = 3

Call = Callable[[], object]
Workload = Callable[[Path], Call]
"""Makes what a call needs in a folder, unless it is there; returns the call."""


def _near(rng: np.random.Generator, weights: NDArray[Any]) -> NDArray[Any]:
    """Rewrites, of which up to H of the eight lightest bits differ."""
    found = weights.copy()
    for row in found:
        lightest = np.argsort(np.abs(row))[:8]
        row[rng.permutation(lightest)[: rng.integers(0, H + 1)]] *= -1
    return found


def _signs(weights: NDArray[Any]) -> NDArray[np.uint64]:
    return np.packbits(weights > 0, axis=1, bitorder="little").view(np.uint64)


def query(
    folder: Path, *, structures: tuple[str, ...] = ("psm",), queries: int = QUERIES,
    recall: float = 0.95, first: bool = False,
) -> Call:
    """Questions, half of them near-duplicates, to rows with weights in one segment."""
    rng = np.random.default_rng(SEED)
    path = folder / f"rows-{len(structures)}"
    weights = rng.standard_normal((ROWS, 64)).astype(np.float32)
    weights[-ROWS // 10 :] = _near(rng, weights[: ROWS // 10])
    others = rng.standard_normal((QUERIES // 2, 64)).astype(np.float32)
    asked = np.concatenate([_near(rng, weights[: QUERIES // 2]), others])
    asked = asked[rng.permutation(QUERIES)[:queries]]
    if not path.exists():
        with simindex.open(path, "n", options=IndexOptions(structures=structures)) as index:
            index.append(_signs(weights), ids=np.arange(ROWS, dtype=np.uint64), weights=weights)
            index.commit()
            index.compact(full=True)
    batch = Batch(_signs(asked), weights=asked if recall < 1 else None)
    opened = simindex.open(path)
    return lambda: opened.query(batch, h=H, recall=recall, first=first, threads=1)


def pairs(folder: Path, *, skewed: bool = False, collapse: bool = False) -> Call:
    """All pairs of rows in memory; of skewed ones half are one of 300 templates."""
    rng = np.random.default_rng(SEED)
    rows = rng.integers(0, 2**63, ROWS, dtype=np.uint64)
    rows[: ROWS // 100] = rows[-ROWS // 100 :] ^ np.uint64(5)
    if skewed:
        hot = np.flatnonzero(rng.random(ROWS) < 0.5)
        rows[hot] = rng.choice(rows[: ROWS // 200], len(hot))
    return lambda: simindex.find_all(rows, h=H, threads=1, collapse_equal=collapse)


def topk(folder: Path, **asked: Any) -> Call:
    """The 10 nearest of signatures of 1,024 bits around 200 centres."""
    rng = np.random.default_rng(SEED)
    path = folder / "wide"
    centres = rng.integers(0, 2**63, (200, 16), dtype=np.uint64)
    rows = centres[rng.integers(0, len(centres), WIDE_ROWS)]
    for _ in range(5):
        rows = rows ^ (np.uint64(1) << rng.integers(0, 64, rows.shape, dtype=np.uint64))
    if not path.exists():
        options = IndexOptions(bits=1024, structures=("issl",))
        with simindex.open(path, "n", options=options) as index:
            index.append(rows)
            index.commit()
            index.compact(full=True)
    opened, queries = simindex.open(path), rows[:WIDE_QUERIES] ^ np.uint64(9)
    return lambda: opened.top(queries, k=10, threads=1, **asked)


def text(folder: Path, *, bits: int) -> Call:
    """Texts of 300 words to fingerprints."""
    rng = np.random.default_rng(SEED)
    texts = [" ".join(f"w{n:x}" for n in rng.zipf(1.3, 300) % 5000) for _ in range(TEXTS)]
    recipe = Recipe(bits=bits, ngram=3, weighting="tf")
    return lambda: recipe.batch(texts, threads=1)


def build(folder: Path, *, structures: tuple[str, ...]) -> Call:
    """Append with ids, commit, compact."""
    rows = np.random.default_rng(SEED).integers(0, 2**63, ROWS, dtype=np.uint64)
    path, options = folder / "built", IndexOptions(structures=structures)

    def call() -> None:
        shutil.rmtree(path, ignore_errors=True)
        with simindex.open(path, "n", options=options) as index:
            index.append(rows, ids=np.arange(ROWS, dtype=np.uint64))
            index.commit()
            index.compact(full=True)

    return call


WORKLOADS: dict[str, Workload] = {
    "online-psm": query,
    "online-psm, one query": partial(query, queries=1),
    "online-exact, psm": partial(query, recall=1.0),
    "online-exact, bphs": partial(query, recall=1.0, structures=BPHS),
    "online-exact, bphs, one query": partial(query, recall=1.0, structures=BPHS, queries=1),
    "batch-psm, first": partial(query, first=True),
    "pairs": pairs,
    "pairs, skewed": partial(pairs, skewed=True),
    "pairs, skewed and collapsed": partial(pairs, skewed=True, collapse=True),
    "topk, scan": partial(topk, method="scan"),
    "topk, issl": partial(topk, method="issl", max_error=0),
    "topk, issl, max_error=1": partial(topk, method="issl", max_error=1),
    "text, 64 bits": partial(text, bits=64),
    "text, 1,024 bits": partial(text, bits=1024),
    "build-fingerprints, psm": partial(build, structures=("psm",)),
    "build-fingerprints, psm and bphs": partial(build, structures=BPHS),
}

SHIM = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
"""What tells callgrind where a call begins and ends."""

CATALOGS = ("simindex.storage.catalog.environment", "simindex.storage.environment")
"""The module that maps the catalog, in new versions and in old ones."""


def called(folder: Path, names: Sequence[str]) -> None:
    """Makes each call, under callgrind, so that it dumps the instructions of the last one."""
    for name in CATALOGS:
        with suppress(ImportError):
            vars(importlib.import_module(name))["MAP_BYTES"] = 1 << 30  # valgrind has no more room
    shim = ctypes.CDLL(str(folder / "shim.so"))
    gc.disable()
    for name in names:
        call = WORKLOADS[name](folder)
        for _ in range(WARM_CALLS):
            call()
        shim.begin()
        call()
        shim.end(name.encode())


def counted(python: str, folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Instructions of each call by one interpreter."""
    folder.mkdir(parents=True)
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True
    )
    work = [python, __file__, "--call", str(folder), *names]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(
        ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
         f"--callgrind-out-file={folder / 'counts'}", *work],
        check=True, env=environment,
    )
    return dict(map(dumped, sorted(folder.glob("counts.*"))))


def dumped(file: Path) -> tuple[str, int]:
    """The workload that a dump of callgrind is of, and its instructions."""
    content = file.read_text()
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", content, re.MULTILINE)
    total = re.search(r"^(?:totals|summary): (\d+)", content, re.MULTILINE)
    if name is None or total is None:
        raise SystemExit(f"{file} is no dump of a workload")
    return name[1], int(total[1])


def table(old: dict[str, int], new: dict[str, int]) -> str:
    """Millions of instructions a call, and their ratio."""
    lines = ["| workload | old | new | new / old |", "|---|---:|---:|---:|"]
    for name in WORKLOADS:
        if name in old and name in new:
            millions = [f"{side[name] / 1e6:,.3f}" for side in (old, new)]
            lines.append(f"| {name} | {' | '.join(millions)} | {new[name] / old[name]:.3f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", choices=[*WORKLOADS, "all"], default="all", metavar="WORKLOAD",
        help="all, if none is named",
    )
    parser.add_argument("--old", default=sys.executable, help="interpreter of the old version")
    parser.add_argument("--new", default=sys.executable, help="interpreter of the new version")
    parser.add_argument("--call", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    names = list(WORKLOADS) if "all" in asked.names else asked.names
    if asked.call is not None:
        called(asked.call, names)
        return 0
    with tempfile.TemporaryDirectory(prefix="simindex-instructions-") as place:
        old, new = (
            counted(python, Path(place) / side, names)
            for side, python in (("old", asked.old), ("new", asked.new))
        )
        print(table(old, new))
    return 0


if __name__ == "__main__":
    sys.exit(main())
