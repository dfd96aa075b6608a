"""Documents of 300 words end to end: JSON lines in, near-duplicates marked, the index committed.

    originals   of --data DIR, or made up                             75 of 100 documents
    copies      of an earlier one, other capitals and white space     10, of equal fingerprints
    edits       of an earlier one, one word replaced                  15, most within h

`simindex dedup FILE --index INDEX --mark` runs in a process of its own, from its start to its end;
every copy must come out marked.
"""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import machine, shell
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.texts import documents

COPIES, EDITS = 0.10, 0.15
ASKED = 60_000


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took, and what it marked."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    marked: dict[str, int]
    """Documents by kind."""


def ingest(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """On one core and on all, in turn."""
    originals = round((1 - COPIES - EDITS) * options.rows)
    found = documents(options.data, originals, options.seed)
    source = directory / "documents.jsonl"
    kinds = written(found.texts, source, options.seed)
    size = source.stat().st_size
    given = {kind: kinds.count(kind) for kind in ("original", "copy", "edit")}
    n = len(kinds)
    say(f"  {n:,} documents, {found.origin}, {size / 1e6:.0f} MB of JSON lines; {given}")
    cores = sorted({1, len(machine.CORES)})
    runs: dict[int, list[Run]] = {number: [] for number in cores}
    for repetition in range(watch.repeat + 1):
        for number in cores:
            one = run(source, directory, kinds, number)
            if one.marked["copy"] != given["copy"]:
                raise SystemExit(f"{given['copy']} copies, {one.marked['copy']} of them marked")
            say(f"  {number} cores: {n / one.seconds:,.0f} documents/s, {one}")
            if repetition:
                runs[number].append(one)
    measured = []
    for number, some in runs.items():
        engine = f"simindex dedup, {number} core" + ("s" if number > 1 else "")
        last = some[-1]
        dropped = sum(last.marked.values())
        peak = max(one.peak_bytes for one in some) / 2**20
        notes = "; ".join([
            f"{size / 1e6:.0f} MB in", f"{dropped:,} marked",
            f"{last.marked['copy']:,} of {given['copy']:,} copies",
            f"{last.marked['edit']:,} of {given['edit']:,} edits of a word",
            f"asked: {ASKED:,} a second on 2 cores", f"peak memory {peak:,.0f} MiB", found.origin,
        ])
        measured.append(
            Measurement(
                "ingest", engine, n, tuple(n / one.seconds for one in some), "documents/s",
                notes=notes,
            )
        )
        measured.append(
            Measurement(
                "ingest: processor time", engine, n,
                tuple(1e6 * one.cpu_s / n for one in some), "µs",
                notes="a document, over all threads, start of the process included",
            )
        )
    return measured


def written(originals: list[str], path: Path, seed: int) -> list[str]:
    """Writes originals with copies and edits among them; the kind of each line."""
    rng = np.random.default_rng(seed)
    kinds: list[str] = []
    with path.open("w", encoding="utf-8") as file:

        def write(kind: str, text: str) -> None:
            number = len(kinds)
            record = {"id": f"document-{number}", "url": f"pages/{number}", "text": text}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            kinds.append(kind)

        for place, text in enumerate(originals):
            write("original", text)
            drawn = rng.random() * (1 - COPIES - EDITS)
            if drawn < COPIES + EDITS:
                words = originals[int(rng.integers(place + 1))].split()
                if drawn < COPIES:
                    write("copy", "  ".join(words).upper().lower())
                else:
                    words[int(rng.integers(len(words)))] = f"edit{place}"
                    write("edit", " ".join(words))
    return kinds


def run(source: Path, directory: Path, kinds: list[str], cores: int) -> Run:
    """One run on so many cores."""
    output = directory / "marked.jsonl"
    ended = dedup(source, directory / "ingest.sim", output, cores)
    marked = dict.fromkeys(("original", "copy", "edit"), 0)
    with output.open("rb") as lines:
        for kind, line in zip(kinds, lines, strict=True):
            marked[kind] += json.loads(line)["near_duplicate_of"] is not None
    return Run(ended.seconds, ended.cpu_s, ended.peak_bytes, marked)


def dedup(source: Path, index: Path, output: Path, cores: int, *arguments: str) -> shell.Ended:
    """`simindex dedup --mark` with a new index on so many cores."""
    remove(index)
    with output.open("wb") as out:
        return shell.simindex(
            ["dedup", str(source), "--index", str(index), "--mark", "--quiet", *arguments],
            cores=cores, stdout=out,
        )
