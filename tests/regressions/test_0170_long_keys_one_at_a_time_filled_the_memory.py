"""Documents that `seen_or_add` adds waited for a commit by their number alone: with keys of 64 KB,
65,536 of them took 4 GB of a writer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.writing import recent


def key(number: int) -> str:
    return f"{number:0100}"


def held(index: simindex.Index) -> int:
    writer = index._handle.writer
    assert writer is not None
    return writer.committer.recent.count


def test_rows_added_one_at_a_time_hold_bounded_bytes_of_keys(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST_KEY_BYTES", 1_000)
    with simindex.open(index_path, "n", options=IndexOptions(keys=True)) as index:
        for number in range(35):
            row = Batch(np.array([number], np.uint64), keys=[key(number)])
            assert index.seen_or_add(row, h=0, commit_s=None) is None
            assert held(index) <= 11
        index.discard()
        assert len(index) == 33
        for number in range(33):
            assert key(number) in index
        assert index.check() == []


def test_texts_added_one_at_a_time_hold_bounded_bytes_of_keys(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST_KEY_BYTES", 1_000)
    with simindex.open(
        index_path, "n", options=IndexOptions(keys=True, recipe=Recipe())
    ) as index:
        for number in range(35):
            text = " ".join(f"word{number}x{place}" for place in range(20))
            assert index.seen_or_add(text, key(number), h=0, commit_s=None) is None
            assert held(index) <= 11
        assert len(index) == 33
    with simindex.open(index_path) as index:
        assert len(index) == 35
