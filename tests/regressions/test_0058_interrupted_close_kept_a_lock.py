"""A close that was interrupted as it waited for a merge to begin kept a lock, and hung if repeated.

The wait was for an event of `threading`, whose own lock stays taken where an interrupt comes as it
is given back. The merge's thread then hung as well.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.storage.segment_files import SegmentFiles

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

OPTIONS = simindex.IndexOptions(batch_rows=32, min_merge=2)
"""Four rows make a segment, two segments a merge."""

WITHIN = ("/writing/", threading.__file__)
"""Where interrupts come."""


def interrupted(index: simindex.Index, at: int) -> bool:
    """Closes an index; an interrupt comes as function number `at` begins, if there is one.

    The interpreter meets signals there.
    """
    passed = 0

    def met(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal passed
        if any(part in frame.f_code.co_filename for part in WITHIN):
            passed += 1
            if passed == at:
                sys.settrace(None)
                raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(met)
    try:
        index.close()
    except KeyboardInterrupt:
        return True
    except RuntimeError:  # a condition of `threading` that lost its lock to the interrupt
        return passed >= at
    finally:
        sys.settrace(before)
    return False


def test_a_close_may_be_repeated_wherever_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, held = SegmentFiles.merge, threading.Event()

    def merge(*given: Any, progress: Any = None, **named: Any) -> Any:
        while not held.wait(0.001):
            progress(0, 1)  # ends a merge that is given up
        return real(*given, progress=progress, **named)

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    faulthandler.dump_traceback_later(60, exit=True)  # a close that hangs cannot be ended otherwise
    at, more = 0, True
    while more:
        at += 1
        index = simindex.open(tmp_path / f"{at}", "n", options=OPTIONS)
        for first in (0, 4):
            index.append(np.arange(first, first + 4, dtype=np.uint64))
            index.commit()
        assert any(thread.name == "simindex merge" for thread in threading.enumerate())
        more = interrupted(index, at)
        index.close()
        assert not [
            thread for thread in threading.enumerate()
            if thread.name == "simindex merge" and thread.ident is not None
        ]
    faulthandler.cancel_dump_traceback_later()
    assert at > 10
