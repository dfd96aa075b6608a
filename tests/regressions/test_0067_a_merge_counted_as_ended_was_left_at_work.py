"""`close` returned while a merge that it had given up was still at work, with its files open.

An interrupt of `Thread.join` may come where Python then counts the thread as ended: `is_alive` is
False and a second `join` returns at once. Found by the enumeration of interrupts, in 1 of 243,855
points.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leftovers import left_over

import simindex
from simindex import IndexOptions
from simindex.storage.segment_files import SegmentFiles


def test_close_waits_for_a_merge_that_python_counts_as_ended(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, go_on, left = SegmentFiles.merge, threading.Event(), threading.Event()

    def merge(self: SegmentFiles, *arguments: Any, **named: Any) -> Any:
        try:
            go_on.wait(20)
            return real(self, *arguments, **named)
        finally:
            left.set()

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    index = simindex.open(index_path, "n", options=IndexOptions(batch_rows=32, min_merge=2))
    for first in (0, 4):
        index.append(np.arange(first, first + 4, dtype=np.uint64))
        index.commit()
    assert index._handle.writer is not None
    (at_work,) = index._handle.writer.merges
    monkeypatch.setattr(at_work.thread, "is_alive", lambda: False)
    monkeypatch.setattr(at_work.thread, "join", lambda: None)
    assert not at_work.ended and index._handle.writer.merges.running == (at_work,)
    threading.Timer(0.2, go_on.set).start()
    index.close()
    assert left.is_set()
    assert left_over(index_path) == []
    with simindex.open(index_path) as reader:
        assert len(reader) == 8 and reader.check() == []
