"""`query --memory-limit` did not count the matches: 4,096 equal questions of 20,000 equal rows took
2 GB where 300 MB were allowed."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli import batches
from simindex.cli.batches import Budget, allocations_within, near_in_parts, nearest_in_parts
from simindex.errors import InvalidOption
from simindex.query import call

Run = Callable[..., Any]

EQUAL = np.zeros(100, np.uint64)


@pytest.fixture
def index(index_path: Path) -> simindex.Index:
    """An index of a hundred equal rows."""
    with simindex.open(index_path, "n") as writer:
        writer.append(EQUAL)
    return simindex.open(index_path)


def test_the_nearest_come_in_parts_of_bounded_size(
    index: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST_NEAREST", 700)
    parts = list(nearest_in_parts(partial(index.top, k=100), 100, EQUAL[:50]))
    assert [start for start, _ in parts] == list(range(0, 50, 7))
    assert [len(matches) for _, matches in parts] == [700] * 7 + [100]
    index.close()


def test_one_query_whose_matches_do_not_fit_is_told() -> None:
    def query(batch: Any, memory_limit: int = 0) -> Any:
        raise MemoryError
        yield

    with pytest.raises(InvalidOption, match="matches of one query"):
        list(Budget(1 << 40, 64).ask(EQUAL[:9], partial(near_in_parts, query)))


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
    monkeypatch.setattr(call, "PART_MATCHES", 250)
    assert run("query", "pages.sim", *asked).stdout == expected
    assert run("query", "pages.sim", *asked, "--memory-limit", "4G").stdout == expected


def test_a_limit_prints_the_nearest_of_each_query(run: Run, index: simindex.Index) -> None:
    index.close()
    asked = ("query", "pages.sim", "--fingerprint", 16 * "0", "--fingerprint", 15 * "0" + "7")
    found = run(*asked, "--limit", "2")
    assert len(found.stdout.splitlines()) == 4
    assert "2 of 2 queries have near-duplicates: 4 matches" in found.stderr
    run(*asked, "--limit", "2", "--first", code=2)
    run(*asked, "--limit", "2", "--top", "1", code=2)


def test_a_query_in_several_parts_counts_once(
    run: Run, index: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.close()
    monkeypatch.setattr(call, "PART_MATCHES", 20)
    found = run("query", "pages.sim", *("--fingerprint", 16 * "0") * 3)
    assert "3 of 3 queries have near-duplicates: 300 matches" in found.stderr
