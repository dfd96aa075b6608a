"""Answers are cut and joined with the keys of their matches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.arrays import ByteKeys
from simindex.query.arrangement import joined

KEYS = [f"page {number}" for number in range(40)]


@pytest.fixture
def index(index_path: Path) -> Iterator[simindex.Index]:
    """Forty rows in two commits, every fourth of them with the same fingerprint."""
    rows = np.arange(40, dtype=np.uint64) % np.uint64(4) << np.uint64(20)
    with simindex.open(index_path, "n", options=simindex.IndexOptions(keys=True)) as writer:
        writer.append(simindex.Batch(rows[:25], keys=KEYS[:25]))
        writer.commit()
        writer.append(simindex.Batch(rows[25:], keys=KEYS[25:]))
    with simindex.open(index_path) as reader:
        yield reader


def told(matches: simindex.Matches) -> list[tuple[int, int, object, int]]:
    return [(match.query, match.id, match.key, match.distance) for match in matches]


def test_joined_answers_have_the_keys_of_all(index: simindex.Index) -> None:
    asked = np.array([0, 1 << 20, 2 << 20], np.uint64)
    whole = index.query(asked, h=1)
    parts = [whole[:7], whole[7:7], whole[7:30], whole[30:]]
    again = joined(parts)
    assert told(again) == told(whole)
    places = np.array([31, 2, 8, 7, 2])
    assert again.take(places).keys() == whole.take(places).keys()
    assert told(joined(parts[:1])) == told(whole[:7])


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_limit_keeps_the_nearest_matches_of_each_query(
    index: simindex.Index, limit: int
) -> None:
    asked = np.array([0, 1 << 20, 1 << 63], np.uint64)
    whole = told(index.query(asked, h=1))
    expected = [one for query in range(3)
                for one in [match for match in whole if match[0] == query][:limit]]
    found = index.query(asked, h=1, limit=limit)
    assert told(found) == expected
    assert found.take(np.array([1, 0])).keys() == [expected[1][2], expected[0][2]]


def test_statistics_of_parts_add_up(index: simindex.Index) -> None:
    one, two = (index.query(np.array([0], np.uint64), h=1, method=how) for how in ("scan", "psm"))
    stats = joined([one, two]).stats
    assert stats.rows_compared == one.stats.rows_compared + two.stats.rows_compared
    assert stats.seconds == one.stats.seconds + two.stats.seconds
    assert set(stats.method.split("+")) == {one.stats.method, two.stats.method}


def test_no_keys_of_bytes_are_of_bytes(tmp_path: Path) -> None:
    rows = np.arange(20, dtype=np.uint64) << np.uint64(40)
    options = simindex.IndexOptions(keys="bytes")
    with simindex.open(tmp_path / "i.sim", "n", options=options) as index:
        index.append(simindex.Batch(rows, keys=[b"key %d" % row for row in range(20)]))
        index.commit()
        parts = [index.query(rows[:2], h=0), index.query(rows[2:3] ^ np.uint64(0xFFFF), h=0)]
        again = joined(parts)
        nothing = again.take(np.empty(0, np.int64))
        assert type(again.keys()) is type(nothing.keys()) is ByteKeys
        assert again.keys() == [b"key 0", b"key 1"]
        assert type(joined(parts[1:] * 2).keys()) is ByteKeys
