"""`Index.check` called files of its own writer stray that another thread wrote meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import CorruptFile
from simindex.storage.catalog import pages
from simindex.storage.segment_files import SegmentFiles
from simindex.writing import merges

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

OPTIONS = simindex.IndexOptions(batch_rows=32, min_merge=2)
"""Four rows make a segment, two segments a merge."""


def fill(index: simindex.Index, first: int, commits: int = 2, rows: int = 4) -> None:
    for start in range(first, first + rows * commits, rows):
        index.append(np.arange(start, start + rows, dtype=np.uint64))
        index.commit()


def ended() -> None:
    for thread in threading.enumerate():
        if thread.name == "simindex merge" and thread.ident is not None:
            thread.join()


def merge_ends(index: simindex.Index) -> None:
    fill(index, 1000)
    ended()


def merge_is_installed(index: simindex.Index) -> None:
    fill(index, 1000)
    index.compact()


def rows_are_spilled(index: simindex.Index) -> None:
    index.append(np.arange(1000, 1100, dtype=np.uint64))


def segments_are_restructured(index: simindex.Index) -> None:
    fill(index, 1000)
    index.compact(full=True, structures=["psm"])


@pytest.mark.parametrize(
    "change", [merge_ends, merge_is_installed, rows_are_spilled, segments_are_restructured]
)
def test_check_is_clean_while_another_thread_changes_the_index(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[simindex.Index], None]
) -> None:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        fill(index, 0)
        damage = pages.damage

        def look(data: Path) -> CorruptFile | None:
            """An early step of `check`: the other thread does all its work before the next one."""
            other = threading.Thread(target=change, args=(index,))
            other.start()
            other.join()
            return damage(data)

        monkeypatch.setattr(pages, "damage", look)
        assert index.check() == []


def test_check_waits_for_a_merge_that_began_after_it(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held with its file half written, until the check waits for it."""
    waited, written = threading.Event(), threading.Event()
    opened, sleep, damage = SegmentFiles.open_writer, merges.sleep, pages.damage

    def half(*given: Any, inputs: Any = (), **named: Any) -> Any:
        made = opened(*given, inputs=inputs, **named)
        if inputs:
            written.set()
            waited.wait(20)
        return made

    def waits(seconds: float) -> None:
        waited.set()
        sleep(seconds)

    with simindex.open(index_path, "n", options=OPTIONS) as index:
        fill(index, 0, commits=1)

        def look(data: Path) -> CorruptFile | None:
            other = threading.Thread(target=fill, args=(index, 1000, 1))
            other.start()
            other.join()
            assert written.wait(20), "a merge has begun"
            monkeypatch.setattr(merges, "sleep", waits)
            return damage(data)

        monkeypatch.setattr(SegmentFiles, "open_writer", half)
        monkeypatch.setattr(pages, "damage", look)
        try:
            assert index.check() == []
        finally:
            waited.set()


def test_check_still_names_a_stray_file_while_merges_run(index_path: Path) -> None:
    stray = index_path / "segments" / "0000000000000001-01234567.rows"
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        fill(index, 0)
        stray.write_bytes(b"nobody's")
        fill(index, 1000)
        assert [finding.path for finding in index.check()] == [str(stray)]
