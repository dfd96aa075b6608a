"""The hottest headers and fingerprints are those that counting all rows would name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import IndexOptions
from simindex.index import statistics

ROWS = 30_000


def filled(path: Path, rows: oracle.U64, segments: int, pending: int) -> simindex.Skew:
    """The skew of an index of so many segments of uneven sizes, and some pending rows."""
    options = IndexOptions(bits=64 * rows.shape[1], batch_rows=8000, min_merge=0)
    bounds = np.linspace(0, 1, segments + 1) ** 1.5 * (len(rows) - pending)
    with simindex.open(path, "n", options=options) as index:
        for start, stop in zip(bounds[:-1].astype(int), bounds[1:].astype(int), strict=True):
            index.append(rows[start:stop])
            index.commit()
        if segments == 1:
            index.compact(full=True)
        index.append(rows[len(rows) - pending :])
        index.commit()
        before = index.stats()
        assert before.skew is None
        assert before.segments >= segments
        assert before.pending_rows >= min(1, pending)
        found = index.stats(skew=True).skew
    assert found is not None
    return found


def top(counts: Counter[str], least: int = 1) -> list[int]:
    return [rows for _, rows in counts.most_common(10) if rows >= least]


def check(found: simindex.Skew, rows: oracle.U64) -> None:
    """Counts are exact and their order is that of all counts; equal counts stand in any order."""
    headers = Counter(f"{word:064b}"[: found.header_bits] for word in rows[:, 0].tolist())
    fingerprints = Counter("".join(f"{word:016x}" for word in row) for row in rows.tolist())
    for listed, counts, least in (
        (found.headers, headers, 1), (found.fingerprints, fingerprints, 2)
    ):
        assert {hot.value: hot.rows for hot in listed}.items() <= counts.items()
        assert len({hot.value for hot in listed}) == len(listed)
        assert [hot.rows for hot in listed] == top(counts, least)
    assert found.rows_per_header == len(rows) / 2**found.header_bits


@pytest.mark.parametrize("segments", [1, 5])
@pytest.mark.parametrize("words", [1, 2])
def test_hottest_are_those_of_all_rows(
    index_path: Path, words: int, segments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "_SLICE_ROWS", 1000)  # so that runs cross slices
    rng = np.random.default_rng([words, segments])
    rows = oracle.uniform(rng, ROWS, words)
    family = oracle.uniform(rng, 300, words)[rng.zipf(1.3, ROWS // 2) % 300]
    rows[: ROWS // 2] = family
    rows[:5000] = oracle.flip(rng, rows[:5000], 1)
    found = filled(index_path, rows[rng.permutation(ROWS)], segments, 300)
    check(found, rows)
    assert found.certain
    assert found.headers[0].rows > 20 * found.rows_per_header
    assert len(found.headers) == len(found.fingerprints) == 10


def test_fingerprints_are_told_apart_by_all_their_words(index_path: Path) -> None:
    """One first word with many second ones is a hot header, and no hot fingerprint."""
    rng = np.random.default_rng(1)
    rows = oracle.uniform(rng, 9000, 2)
    rows[:4000, 0] = 77
    rows[4000:4030] = [1 << 63, 5]
    rows[:3, 1] = 9
    found = filled(index_path, rows[rng.permutation(9000)], 3, 100)
    check(found, rows)
    assert found.headers[0].rows >= 4000
    assert [hot.rows for hot in found.fingerprints] == [30, 3]


def test_what_may_have_been_overlooked_is_said(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is eleventh everywhere could be the first of all."""
    monkeypatch.setattr(statistics, "CANDIDATES", 10)
    rows = oracle.uniform(np.random.default_rng(1), ROWS)
    assert not filled(index_path, rows, 5, 0).certain


def test_an_empty_index_and_one_of_a_single_value(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        assert index.stats(skew=True).skew == simindex.Skew(0, 0.0, [], [], True)
        index.append(np.full(100, 2**64 - 1, np.uint64))
        index.commit()
        found = index.stats(skew=True).skew
        assert found is not None
        assert found.fingerprints == [simindex.Hot("f" * 16, 100)]
        assert found.headers == [simindex.Hot("1" * found.header_bits, 100)]


def test_deleted_rows_count_until_they_are_compacted_away(index_path: Path) -> None:
    rows = oracle.uniform(np.random.default_rng(1), 2000)
    rows[:50] = 5
    with simindex.open(index_path, "n") as index:
        index.append(rows, ids=np.arange(2000))
        index.commit()
        index.delete(ids=np.arange(45))
        index.commit()
        before = index.stats(skew=True).skew
        index.compact(full=True)
        after = index.stats(skew=True).skew
    assert before is not None
    assert after is not None
    assert (before.fingerprints[0].rows, after.fingerprints[0].rows) == (50, 5)
