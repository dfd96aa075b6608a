"""`query --memory-limit` did not count the matches: 4,096 equal questions of 20,000 equal rows took
2 GB where 300 MB were allowed."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli import batches
from simindex.cli.batches import Budget, allocations_within, in_parts
from simindex.errors import InvalidOption

Run = Callable[..., Any]

EQUAL = np.zeros(100, np.uint64)


@pytest.fixture
def index(index_path: Path) -> simindex.Index:
    """An index of a hundred equal rows."""
    with simindex.open(index_path, "n") as writer:
        writer.append(EQUAL)
    return simindex.open(index_path)


def test_parts_are_halved_until_their_matches_are_few(index: simindex.Index) -> None:
    parts = list(in_parts(EQUAL[:50], index.query, 700))
    assert [start for start, _ in parts] == list(range(0, 50, 7))
    assert [len(matches) for _, matches in parts] == [700] * 7 + [100]
    assert [len(matches) for _, matches in in_parts(EQUAL[:3], index.query, 99)] == [100] * 3
    index.close()


def test_parts_are_halved_until_memory_holds_them(index: simindex.Index) -> None:
    asked: list[int] = []

    def query(part: Any) -> Any:
        asked.append(len(part))
        if len(part) > 20:
            raise MemoryError
        return index.query(part)

    assert [start for start, _ in in_parts(EQUAL[:50], query, 1 << 20)] == [0, 13, 26, 39]
    assert asked == [50, 25, 13, 13, 13, 11]
    index.close()


def test_one_question_that_memory_does_not_hold_is_told() -> None:
    def query(part: Any, memory_limit: int = 0) -> Any:
        raise MemoryError

    with pytest.raises(MemoryError):
        list(in_parts(EQUAL[:9], query, 1))
    with pytest.raises(InvalidOption, match="matches of one question"):
        list(Budget(1 << 40, 64).ask(EQUAL[:9], query))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit what is mapped")
def test_what_would_take_more_is_refused() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with allocations_within(64 << 20):
        np.zeros(32 << 20, np.uint8)
        with pytest.raises(MemoryError):
            np.zeros(1 << 30, np.uint8)
        with allocations_within(1 << 40), pytest.raises(MemoryError):  # never more than before
            np.zeros(1 << 30, np.uint8)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with allocations_within(None):
        np.zeros(1 << 26, np.uint8)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_limits_change_no_answer(
    run: Run, index: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.close()
    asked = [*("--fingerprint", 16 * "0") * 5, "--fingerprint", 15 * "0" + "7"]
    expected = run("query", "pages.sim", *asked).stdout
    assert len(expected.splitlines()) == 600
    monkeypatch.setattr(batches, "MATCH_BYTES", 1 << 24)
    assert run("query", "pages.sim", *asked, "--memory-limit", "4G").stdout == expected
