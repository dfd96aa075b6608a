"""An interrupt as a writer was made kept the lock until its exception was dropped.

What made the merges of a writer was interrupted, by 2 of 7,000 real signals. Whoever kept the
exception, as an interactive session does, could not open the index again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.index.handle import Handle
from simindex.writing.committer import Committer
from simindex.writing.merges import Merges
from simindex.writing.writer import Writer

OPENING = {
    simindex.Index.__init__.__code__, Handle.__init__.__code__, Handle._open.__code__,
    Writer.__init__.__code__, Committer.__init__.__code__, Merges.__init__.__code__,
    simindex.open.__code__,
}


class Interrupt(Exception):
    """Of a signal handler."""


def opened_but_for(path: Path, mode: Any, line: int) -> Interrupt | None:
    """The interrupt of an opening at the n-th line that it passes; None if it passes fewer."""
    left = line

    def at(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code not in OPENING:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise Interrupt
        return at

    sys.settrace(at)
    try:
        simindex.open(path, mode).close()
    except Interrupt as interrupt:
        return interrupt
    finally:
        sys.settrace(None)
    return None


@pytest.mark.parametrize("mode", ["w", "c"])
def test_an_interrupted_opening_gives_the_lock_back_at_once(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "i.sim"
    with simindex.open(path, "n") as index:
        index.append(np.arange(5, dtype=np.uint64))
    line = 0
    while True:
        line += 1
        held = opened_but_for(path, mode, line)
        if held is None:
            break
        with simindex.open(path, "w") as again:
            assert len(again) == 5, line
        del held
    assert line > 60
