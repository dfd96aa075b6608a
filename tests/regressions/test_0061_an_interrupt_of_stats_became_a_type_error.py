"""An interrupt while wide rows were compared came out of numpy as a TypeError.

numpy calls Python while it compares rows as records, and takes whatever is raised there for a
difference of their types.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import simindex


class Interrupted(BaseException):
    """What no library raises or expects."""


def interrupted(index: simindex.Index, at: int) -> bool:
    """Asks for the skew; an interrupt comes as function number `at` begins, if there is one."""
    passed = 0

    def met(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal passed
        if event == "call":
            passed += 1
            if passed == at:
                raise Interrupted

    sys.setprofile(met)
    try:
        index.stats(skew=True)
    finally:
        sys.setprofile(None)
    return passed >= at


@pytest.mark.parametrize("words", [1, 2])
def test_what_interrupts_stats_arrives(index_path: Path, words: int) -> None:
    rows = np.random.default_rng(1).integers(0, 2**64, (20, words), dtype=np.uint64)
    rows[:, 0] = 7
    options = simindex.IndexOptions(bits=64 * words)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(np.concatenate([rows, rows]))
        index.commit()
        index.stats(skew=True)
        at = 1
        with pytest.raises(Interrupted):
            interrupted(index, at)
        while True:
            at += 1
            try:
                if not interrupted(index, at):
                    break
            except Interrupted:
                continue
        assert at > 50
