"""How long an index of a thousand segments takes to open after its writer was killed.

Each time a process appends, so that files lie about that no commit names, and is killed; then a new
one opens the index for writing, and for reading, and asks it something. Odd times all files are
taken out of the page cache before, as after a crash of the system. The time that passes is judged,
so that the machine must have nothing else to do; processor time is printed, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import simindex
from reliability.report import Outcome
from simindex import IndexOptions

SEGMENTS = 1000
LIMIT_S = 1.0
ROWS = 16

WRITE = """
import os, sys, signal, threading, numpy, simindex
index = simindex.open(sys.argv[1], "w")
rng = numpy.random.default_rng(int(sys.argv[2]))
index.append(rng.integers(0, 1 << 64, 3 * 16, dtype=numpy.uint64))
threading.Timer(float(rng.uniform(0, 0.01)), os.kill, (os.getpid(), signal.SIGKILL)).start()
index.commit()
signal.pause()
"""

OPEN = """
import json, os, sys, time, numpy, simindex
took = {}
for mode in "wr":
    start, used = time.perf_counter(), time.process_time()
    index = simindex.open(sys.argv[1], mode)
    took["open " + mode] = time.perf_counter() - start
    took["processor " + mode] = time.process_time() - used
    start = time.perf_counter()
    rows = len(index.query(numpy.arange(3, dtype=numpy.uint64), h=3))
    took["query " + mode] = time.perf_counter() - start
    took["descriptors"] = len(os.listdir("/proc/self/fd"))
    took["maps"] = open("/proc/self/maps").read().count(sys.argv[1])
    took["segments"] = index.stats().segments
    took["strays"] = sum(
        not name.endswith(".dead") for name in os.listdir(sys.argv[1] + "/segments")
    ) - 2 * took["segments"]
    index.close()
print(json.dumps(took))
"""


def evict(path: Path) -> None:
    """Takes the files of an index, which are all on the disk, out of the page cache."""
    os.sync()
    for file in path.rglob("*"):
        if not file.is_file():
            continue
        fd = os.open(file, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def build(path: Path, segments: int) -> None:
    """An index of so many small segments, of rows and of tables, which no commit merges."""
    options = IndexOptions(batch_rows=ROWS, min_merge=0)
    with simindex.open(path, "n", options=options) as index:
        rng = np.random.default_rng(1)
        index.append(rng.integers(0, 1 << 64, ROWS * segments, dtype=np.uint64))


def trial(path: Path, seed: int, *, cold: bool) -> tuple[dict[str, float], int]:
    """What opening took after a kill, and how many processes failed."""
    killed = subprocess.run(
        [sys.executable, "-c", WRITE, str(path), str(seed)], cwd=path.parent, check=False
    )
    if cold:
        evict(path)
    opened = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)], stdout=subprocess.PIPE, cwd=path.parent,
        check=False,
    )
    failed = (killed.returncode != -9) + (opened.returncode != 0)
    return (json.loads(opened.stdout) if not opened.returncode else {}), failed


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """`goal` kills, each followed by two opens that may take LIMIT_S each."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="simindex-recovery-"))
    path = folder / "pages.sim"
    slowest: dict[str, float] = {}
    failed = late = strays = done = 0
    try:
        build(path, SEGMENTS)
        for number in range(goal):
            cold = number % 2 == 1
            took, bad = trial(path, seed + number, cold=cold)
            failed += bad
            done += not bad
            strays += int(took.get("strays", 0))
            late += sum(took.get(f"open {mode}", 0) > LIMIT_S for mode in "wr")
            for name, value in took.items():
                label = name + (", not cached" if cold and name.startswith("open") else "")
                slowest[label] = max(value, slowest.get(label, 0))
    finally:
        shutil.rmtree(folder)
    print(", ".join(f"{name} {value:.3g}" for name, value in sorted(slowest.items())),
          file=sys.stderr)
    most = max((value for name, value in slowest.items() if name.startswith("open")), default=0.0)
    what = f"recovery: opens of {SEGMENTS:,} segments, {most:.2f} s at most"
    return [Outcome(what, goal, done, time.monotonic() - began, seed,
                    signals=failed, hangs=late, leaked=strays)]
