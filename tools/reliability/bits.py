"""Every single bit of what is live in an index, flipped: `check` finds it, one by one.

    FORMAT                 all bytes
    .rows .bphs .issl .dead  all bytes: header page, sections, the zeros between them, checksums,
                           footer
    data.mdb               of the meta page in use its number, flags and all of the record but the
                           address and size of a map, for no more of its header is read; of every
                           page of its trees the header but two unused bytes, the places, and the
                           nodes but the odd byte behind one; of overflow runs the header and the
                           value; of lists of free pages as many as they count. Of the other meta
                           page what LMDB reads: flags, magic, version, commit.
    LOCK lock.mdb          nothing: text for people, and LMDB's table of who reads

Two kinds of key may be any between their neighbours', so a flipped bit can leave one that is as
good: those of branch pages, and the numbers of commits in the free list but that of the last, which
LMDB compares with the commits that readers hold; whoever opens the file holds the last. That is no
damage, and is proved by reading everything and comparing.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import simindex
from reliability.report import Outcome, Pace
from reliability.specimens import Specimen, judgements, make
from simindex.errors import SimindexError
from simindex.storage.files.envelope import open_envelope

PAGE = 4096
Spans = list[tuple[int, int]]


def live_spans(data: bytes) -> tuple[Spans, Spans]:
    """(start, stop) of the live bytes of a sound `data.mdb`, and of keys that might be others.

    Its own walk, which takes every offset as it stands.
    """
    commits = [struct.unpack_from("<Q", data, page * PAGE + 144)[0] for page in (0, 1)]
    used = PAGE * (commits[1] > commits[0])
    other = PAGE - used
    spans = [(used, used + 8), (used + 10, used + 12), (used + 16, used + 24),
             (used + 40, used + 152),  # between: where and how large a map was
             (other + 10, other + 12), (other + 16, other + 24), (other + 144, other + 152)]
    keys: Spans = []
    roots = [used + 40, used + 88]
    while roots:
        record = roots.pop()
        root, depth = struct.unpack_from("<Q", data, record + 40)[0], record + 6
        listing = record == used + 40
        below = [(root, struct.unpack_from("<H", data, depth)[0])]
        while below:
            page, height = below.pop()
            if page == (1 << 64) - 1:
                continue
            at = page * PAGE
            lower = struct.unpack_from("<H", data, at + 12)[0]
            spans += [(at, at + 8), (at + 10, at + lower)]
            for place in range(at + 16, at + lower, 2):
                node = at + struct.unpack_from("<H", data, place)[0]
                low, high, flags, size = struct.unpack_from("<HHHH", data, node)
                value = node + 8 + size
                spans.append((node, node + 8))
                if height > 1:
                    if place > at + 16:
                        keys.append((node + 8, value))
                    below.append((low | high << 16 | flags << 32, height - 1))
                    continue
                old = listing and data[node + 8 : value] != data[used + 144 : used + 152]
                (keys if old else spans).append((node + 8, value))
                length = low | high << 16
                if flags & 1:
                    run = struct.unpack_from("<Q", data, value)[0] * PAGE
                    spans += [(value, value + 8), (run, run + 8), (run + 10, run + 16)]
                    value = run + 16
                if listing:
                    length = 8 + 8 * struct.unpack_from("<Q", data, value)[0]
                elif flags & 2:
                    roots.append(value)
                spans.append((value, value + length))
    return sorted(set(spans)), keys


def joined(spans: Spans) -> Spans:
    """Spans without overlaps, in order."""
    found: Spans = []
    for start, stop in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found


@dataclass(frozen=True)
class Live:
    """A stretch of live bytes of a file; `free` where it is of a key that might be another."""

    file: str
    start: int
    stop: int
    free: bool = False


Bit = tuple[str, int, bool]
"""File, number of the bit, and `Live.free`."""


def live_of(path: Path) -> list[Live]:
    """What is live in an index."""
    found = []
    for file in sorted(path.rglob("*")):
        name = str(file.relative_to(path))
        if name == "FORMAT" or file.suffix in (".rows", ".bphs", ".issl", ".dead"):
            found.append(Live(name, 0, file.stat().st_size))
        elif file.name == "data.mdb":
            spans, keys = live_spans(file.read_bytes())
            found += [Live(name, *span) for span in joined(spans)]
            found += [Live(name, *span, free=True) for span in joined(keys)]
    return found


def chosen(live: list[Live], share: float, rng: random.Random) -> list[Bit]:
    """All bits, or a share of them drawn at random."""
    bits: list[Bit] = []
    for part in live:
        span: Sequence[int] = range(8 * part.start, 8 * part.stop)
        if share < 1:
            count = int(len(span) * share + rng.random())
            span = sorted(rng.sample(span, count))
        bits += [(part.file, bit, part.free) for bit in span]
    return bits


LIVE_BITS = 800_000
"""About as many has the tiny index; the goal of the whole trial."""


@dataclass
class Tally:
    """Bits tried, and those that were not found."""

    done: int = 0
    found: int = 0
    harmless: int = 0
    """Keys that are as good as before."""
    missed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """What ended otherwise than by a finding or a typed error."""


def flip(file: Path, bit: int) -> None:
    """Inverts one bit in place."""
    fd = os.open(file, os.O_RDWR)
    try:
        byte = os.pread(fd, 1, bit // 8)[0]
        os.pwrite(fd, bytes([byte ^ 1 << bit % 8]), bit // 8)
    finally:
        os.close(fd)


def is_found(path: Path) -> bool:
    """Whether `simindex check` would end with exit code 3."""
    try:
        with simindex.open(path) as index:
            return any(finding.severity == "error" for finding in index.check())
    except SimindexError as error:
        return error.exit_code == 3


def is_found_in(file: Path) -> bool:
    """Whether a segment's file is refused when it is opened, or `check` has a finding for it.

    The part of `is_found` that looks at the file alone, in a fiftieth of the time.
    """
    try:
        envelope = open_envelope(file)
        return bool(envelope.damaged_chunks() or envelope.filled_gaps())
    except SimindexError:
        return True


def reads_right(specimen: Specimen, path: Path) -> bool:
    """Whether every way to read an index gives what it should."""
    with simindex.open(path) as index:
        return all(
            call() for turn in range(3)
            for _, call in judgements(index, specimen, specimen.rows, turn)
        )


def examine(
    specimen: Specimen, path: Path, bits: list[Bit], tally: Tally
) -> None:
    """Flips each bit and flips it back."""
    for name, bit, free in bits:
        flip(path / name, bit)
        try:
            tally.done += 1
            alone = name.startswith("segments/") and tally.done % EVERY
            if is_found_in(path / name) if alone else is_found(path):
                tally.found += 1
            elif free and reads_right(specimen, path):
                tally.harmless += 1
            else:
                tally.missed.append(f"{specimen.name} {name} bit {bit}")
        except BaseException:
            tally.broken.append(f"{name} bit {bit}: {traceback.format_exc(limit=-3)}")
        finally:
            flip(path / name, bit)


BATCH = 2000

EVERY = 100
"""One bit in so many of a segment's file goes through the whole of `check`."""


def in_children(
    specimen: Specimen, place: Path, bits: list[Bit], jobs: int
) -> Tally:
    """Some bits in forked children, each with a copy of its own; a signal is one of them broken."""
    total = Tally()
    batches = [bits[start : start + BATCH] for start in range(0, len(bits), BATCH)]
    running: dict[int, tuple[int, list[Bit]]] = {}
    pace = Pace(f"bits, {specimen.name} index", len(bits))
    while batches or running:
        pace.at(total.done)
        while batches and len(running) < jobs:
            batch = batches.pop()
            readable, writable = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    copy = place / f"{os.getpid()}"
                    shutil.copytree(specimen.path, copy)
                    tally = Tally()
                    examine(specimen, copy, batch, tally)
                    shutil.rmtree(copy)
                    with os.fdopen(writable, "w") as pipe:
                        json.dump(vars(tally), pipe)
                finally:
                    os._exit(0)
            os.close(writable)
            running[pid] = (readable, batch)
        for pid, (readable, batch) in list(running.items())[:1]:
            with os.fdopen(readable) as pipe:
                text = pipe.read()
            status = os.waitpid(pid, 0)[1]
            del running[pid]
            part = Tally(**json.loads(text)) if text else Tally(
                broken=[f"{specimen.name} {batch[0]} to {batch[-1]}: status {status}"]
            )
            total.done += part.done
            total.found += part.found
            total.harmless += part.harmless
            total.missed += part.missed
            total.broken += part.broken
    return total


def trial(shape: str, seed: int, jobs: int, *, share: float = 1.0) -> tuple[int, int, Tally]:
    """(live bits, those of them to try, what became of these), of one specimen.

    With a share below 1 as large a part of them, drawn at random.
    """
    shared = Path("/dev") / "shm"
    base = Path(tempfile.mkdtemp(prefix="bits-", dir=shared if shared.is_dir() else None))
    try:
        specimen = make(base, shape, seed)
        for stray in specimen.strays:
            (specimen.path / stray).unlink()
        live = live_of(specimen.path)
        bits = chosen(live, share, random.Random(seed))
        assert not is_found(specimen.path)
        assert reads_right(specimen, specimen.path)
        total = sum(8 * (part.stop - part.start) for part in live)
        return total, len(bits), in_children(specimen, base, bits, jobs)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """Every bit of a tiny index, and one in a hundred of one whose catalog has branches.

    With a lower goal a share of both.
    """
    outcomes = []
    for shape, share, least in (("tiny", 1.0, LIVE_BITS), ("many", 0.01, 100_000)):
        began = time.monotonic()
        live, asked, tally = trial(shape, seed, jobs, share=share * min(1.0, goal / LIVE_BITS))
        for line in (*tally.missed[:20], *tally.broken[:5]):
            print(line, file=sys.stderr)
        outcomes.append(Outcome(
            f"single bits, {shape} index", max(asked, least * goal // LIVE_BITS), tally.done,
            time.monotonic() - began, seed,
            wrong=len(tally.missed), signals=len(tally.broken),
            skipped=f"of {live:,} live bits; {tally.harmless} made a key that is as good",
        ))
    return outcomes
