"""An interrupt while wide rows were compared came out of numpy as a TypeError."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType

import numpy as np

import simindex


def test_what_a_handler_raises_arrives(index_path: Path) -> None:
    rows = np.random.default_rng(1).integers(0, 2**64, (2000, 2), dtype=np.uint64)
    rows[:, 0] = 7

    def raised(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raised)
    met = 0
    try:
        with simindex.open(index_path, "n", options=simindex.IndexOptions(bits=128)) as index:
            index.append(np.concatenate([rows, rows]))
            index.commit()
            start = time.perf_counter()
            index.stats(skew=True)
            whole = time.perf_counter() - start
            for moment in np.random.default_rng(2).uniform(0.05, 1, 200) * whole:
                try:
                    signal.setitimer(signal.ITIMER_REAL, moment)
                    index.stats(skew=True)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    met += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert met
