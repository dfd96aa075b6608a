"""Calls are interrupted at random moments, by Ctrl-C or by an error of a handler of the caller's.

    Storm    one index in one process, and calls under a timer whose handler raises
    judged   after each interrupt, while it and its frames are still held: the handle is closed, the
             index opened for writing, and its rows are those of all calls that returned, with the
             interrupted one as a whole or not at all

In the end, the folder holds no file that no commit names. Descriptors that are open then are
counted and not judged: an interrupt just as a file was opened leaves one.
`python -m reliability.storms SEED COUNT` repeats a storm.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability.model import descriptors
from reliability.report import Outcome, Pace
from reliability.trials import searched
from simindex import Batch, IndexOptions

INTERRUPTS = 250
"""Of one storm."""

STORM_S = 120
"""After which one counts as hanging."""

LONGEST_S = (1e-4, 1e-3, 5e-3, 2e-2)
"""Of the moments at which a call is interrupted."""

ODDS = {"append": 4, "ingest": 3, "delete": 2, "replace": 2, "compact": 2, "query": 1, "reopen": 3,
        "seen_or_add": 1}

Rows = Counter[tuple[str, int]]


class Alarm(TimeoutError):
    """As a handler of `signal.alarm` raises it."""


class Storm:
    """Random calls on one index, each of which may be interrupted."""

    def __init__(self, rng: random.Random, path: Path) -> None:
        self.rng, self.path = rng, path
        self.kind: type[BaseException] = rng.choice([KeyboardInterrupt, Alarm])
        options = IndexOptions(batch_rows=64, keys="str", min_merge=rng.choice([0, 2, 3]))
        self.index: Any = simindex.open(path, "n", options=options)
        self.rows: Rows = Counter()
        self.after: Rows = Counter()
        """What they are if the call has its effect."""
        self.named = 0
        self.counts: Counter[str] = Counter()
        signal.signal(signal.SIGALRM, self._raise)

    def _raise(self, number: int, frame: Any) -> None:
        raise self.kind("the caller's own")

    def step(self) -> None:
        """One call; what it leaves is judged if it was interrupted."""
        name = self.rng.choices(list(ODDS), list(ODDS.values()))[0]
        self.after = self.rows.copy()
        call = getattr(self, name)()
        self.counts[name] += 1
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(
                    1e-6, self.rng.choice(LONGEST_S)
                ))
                call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            self.rows = self.after
        except (KeyboardInterrupt, Alarm) as interrupt:
            self.counts["interrupted"] += 1
            self._judge(name, interrupt)

    def _judge(self, name: str, interrupt: BaseException) -> None:
        """`interrupt` is held meanwhile, with the frames that it went through."""
        self.index.close()
        self.index = simindex.open(self.path, "w")
        found = contents(self.index)
        if found == self.after:
            self.rows = found
        elif found != self.rows:
            missing, more = self.rows - found, found - self.rows
            raise AssertionError(
                f"{name}, interrupted by {interrupt!r}: {len(missing)} rows lost, {len(more)} more"
            )
        if self.counts["interrupted"] % 25 == 0:
            wrong = [one for one in self.index.check() if one.severity == "error"]
            assert not wrong, f"{name}: {wrong}"

    def _batch(self, most: int) -> Batch:
        count = self.rng.randrange(1, most)
        keys = [f"k{self.named + number}" for number in range(count)]
        self.named += count
        values = [self.rng.getrandbits(64) for _ in keys]
        self.after.update(zip(keys, values, strict=True))
        return Batch(np.array(values, np.uint64), keys=keys)

    def _some(self) -> list[str]:
        keys = [key for key, _ in self.rows]
        return self.rng.sample(keys, min(len(keys), 5))

    def _without(self, keys: list[str]) -> None:
        for row in [row for row in self.after if row[0] in keys]:
            del self.after[row]

    # calls, and what they do to the rows ----------------------------------------------------------

    def append(self) -> Callable[[], Any]:
        """Some rows, fewer or more than a segment holds."""
        batch = self._batch(150)
        return lambda: (self.index.append(batch), self.index.commit())

    def ingest(self) -> Callable[[], Any]:
        """The same in one step."""
        batch = self._batch(150)
        return lambda: self.index.ingest(batch)

    def seen_or_add(self) -> Callable[[], Any]:
        """One row, which is near none, and a commit."""
        batch = self._batch(2)
        return lambda: (self.index.seen_or_add(batch, h=0), self.index.commit())

    def delete(self) -> Callable[[], Any]:
        """Of some keys."""
        keys = self._some()
        self._without(keys)
        return lambda: (self.index.delete(keys=keys), self.index.commit())

    def replace(self) -> Callable[[], Any]:
        """Other rows for some keys."""
        keys = self._some()
        self._without(keys)
        values = [self.rng.getrandbits(64) for _ in keys]
        self.after.update(zip(keys, values, strict=True))
        batch = Batch(np.array(values, np.uint64), keys=keys)
        return lambda: (self.index.replace(batch), self.index.commit())

    def compact(self) -> Callable[[], Any]:
        """Nothing changes but the files."""
        full = self.rng.random() < 0.3
        return lambda: self.index.compact(full=full)

    def query(self) -> Callable[[], Any]:
        """Nothing changes."""
        return lambda: self.index.query(np.arange(20, dtype=np.uint64), h=3)

    def reopen(self) -> Callable[[], Any]:
        """The handle, or one of the readers."""
        if self.rng.random() < 0.5:
            return lambda: simindex.open(self.path).close()

        def again() -> None:
            self.index.close()
            self.index = simindex.open(self.path, "w")

        return again


def contents(index: simindex.Index) -> Rows:
    """All rows with their keys."""
    return Counter(
        (str(key), int(row))
        for part in index.rows()
        for key, row in zip(part.keys or [], part.rows[:, 0].tolist(), strict=True)
    )


def storm(seed: int, count: int) -> Counter[str]:
    """So many interrupts of calls on a new index; raises AssertionError where rows differ."""
    logging.getLogger("simindex").setLevel(logging.ERROR)
    directory = Path(tempfile.mkdtemp(prefix="simindex-storm-"))
    before = descriptors()
    try:
        one = Storm(random.Random(seed), directory / "pages.sim")
        while one.counts["interrupted"] < count:
            one.step()
        one.index.close()
        with simindex.open(one.path, "w") as index:
            one.counts["leaked"] = len(index.check())
        counts = one.counts
        del index, one
        gc.collect()
        counts["descriptors"] = descriptors() - before
        return counts
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _apart(seed: int, count: int) -> tuple[Counter[str], str]:
    """A storm in a process of its own: its counts, or what became of it and what it said."""
    command = [sys.executable, "-P", "-m", "reliability.storms", str(seed), str(count)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=STORM_S + 10, check=False,
            env={**os.environ, "PYTHONPATH": searched()},
        )
    except subprocess.TimeoutExpired:
        return Counter(hangs=1), f"seed {seed} did not end"
    if ended.returncode == 0:
        return Counter(json.loads(ended.stdout.splitlines()[-1])), ""
    fault = "signals"
    if "Timeout (" in ended.stderr:
        fault = "hangs"
    elif "rows lost" in ended.stderr:
        fault = "lost"
    elif ended.returncode > 0:
        fault = "wrong"
    return Counter({fault: 1}), f"seed {seed}, exit {ended.returncode}:\n{ended.stderr[-3000:]}"


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """`goal` interrupts, INTERRUPTS in each process; the n-th storm is drawn with seed + n."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    pace = Pace("storms", goal)
    storms = -(-goal // INTERRUPTS)
    with ThreadPoolExecutor(jobs) as pool:
        for found, fault in pool.map(lambda n: _apart(seed + n, INTERRUPTS), range(storms)):
            counts += found
            pace.at(counts["interrupted"])
            if fault:
                print(fault, file=sys.stderr, flush=True)
    print(", ".join(f"{name} {n:,}" for name, n in sorted(counts.items())), file=sys.stderr)
    return [Outcome(
        "storms", goal, counts["interrupted"], time.monotonic() - began, seed,
        lost=counts["lost"], wrong=counts["wrong"], signals=counts["signals"],
        hangs=counts["hangs"], leaked=counts["leaked"],
    )]


if __name__ == "__main__":
    faulthandler.dump_traceback_later(STORM_S, exit=True)
    print(json.dumps(storm(int(sys.argv[1]), int(sys.argv[2]))))
