"""Fingerprints and ids to an index on disk, and the opening of a large one."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.corpora import fingerprints_only
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, in_fresh_process, say
from simindex import IndexOptions


def plain_file(rows: int, seed: int, directory: Path) -> Path:
    """A file of uniformly random fingerprints, uint64, made once."""
    path = directory / f"uniform-{rows}-{seed}.u64"
    if not path.exists() or path.stat().st_size != 8 * rows:
        with path.open("wb") as file:
            for _, words in fingerprints_only(rows, seed):
                words.tofile(file)
    return path


def remove(path: Path) -> None:
    """Removes a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def build_fingerprints(
    options: Namespace, directory: Path, watch: Stopwatch
) -> list[Measurement]:
    """Append in batches of a million, commit, compact; each repetition in a fresh process."""
    source = plain_file(options.rows, options.seed, directory)
    measured = []
    for structures in (("psm",), IndexOptions().structures):
        runs = []
        for _ in range(watch.repeat):
            path = directory / f"built-{options.rows}.sim"
            remove(path)
            runs.append(
                in_fresh_process(
                    "build", path=str(path), fingerprints=str(source), rows=options.rows,
                    structures=list(structures),
                )
            )
            say(f"  {runs[-1]}")
            if runs[-1]["rows"] != options.rows:
                raise SystemExit("the index does not hold every row")
        remove(path)
        measured.append(built(f"simindex {structures[-1]}", options.rows, runs))
    if options.peer != "none":
        kind = peers.chosen(options.peer, options.rows)
        runs = []
        # Once: it takes a hundred times as long, and is in no doubt.
        path = directory / f"built-{options.rows}.faiss"
        runs.append(
            in_fresh_process(
                "build-peer", path=str(path), fingerprints=str(source), rows=options.rows, kind=kind
            )
        )
        remove(path)
        measured.append(built(runs[0]["name"], options.rows, runs))
    return measured


def built(engine: str, rows: int, runs: list[dict[str, Any]]) -> Measurement:
    """The runs of one engine as a measurement."""
    middle = sorted(runs, key=lambda run: float(run["seconds"]))[len(runs) // 2]
    steps = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in middle["steps"].items())
    peak = max(run["peak_bytes"] for run in runs) / 2**20
    return Measurement(
        "build-fingerprints", engine, rows, tuple(rows / run["seconds"] for run in runs), "rows/s",
        bytes_per_row=middle["disk_bytes"] / rows,
        notes=f"peak memory {peak:,.0f} MiB; {steps}; bytes on disk",
    )


def open_large(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Open and first query, each in a fresh process, files in the page cache."""
    source = plain_file(options.rows, options.seed, directory)
    query = int(np.fromfile(source, dtype="<u8", count=1)[0])
    path = directory / f"open-{options.rows}.sim"
    if not path.exists():
        say(f"  building an index of {options.rows:,} rows")
        in_fresh_process(
            "build", path=str(path), fingerprints=str(source), rows=options.rows,
            structures=["psm"],
        )
    repeat = max(5, watch.repeat)
    runs = [
        in_fresh_process("open", path=str(path), query=query) for _ in range(repeat + 1)
    ][1:]
    measured = opened("simindex", options.rows, runs)
    if options.peer != "none":
        kind = peers.chosen(options.peer, options.rows)
        file = directory / f"open-{options.rows}.{kind}.faiss"
        if not file.exists():
            in_fresh_process(
                "build-peer", path=str(file), fingerprints=str(source), rows=options.rows, kind=kind
            )
        name, _, _ = peers.empty(kind)
        runs = [in_fresh_process("open-peer", path=str(file), query=query) for _ in range(3)]
        measured += opened(name, options.rows, runs)
    return measured


def opened(engine: str, rows: int, runs: list[dict[str, Any]]) -> list[Measurement]:
    """Opening, and opening up to the first answer."""
    if not all(run["matches"] for run in runs):
        raise SystemExit(f"{engine} did not find the stored row")
    peak = max(run["peak_bytes"] for run in runs) / 2**20
    return [
        Measurement(
            "open", engine, rows, tuple(1e3 * run["open"] for run in runs), "ms",
            notes=f"fresh process, warm page cache; memory grows {peak:,.0f} MiB",
        ),
        Measurement(
            "open + first query", engine, rows,
            tuple(1e3 * (run["open"] + run["first_query"]) for run in runs), "ms",
            notes="an exact question about a stored row",
        ),
    ]
