"""Which segments are merged: few remain, and each row is written few times."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.storage.tables.record import MAX_ROWS
from simindex.writing import policy

SIZES = st.lists(st.integers(1, 10_000), max_size=40)


@given(sizes=SIZES, fanout=st.integers(2, 10))
def test_picked_runs_are_the_smallest_and_at_least_the_fanout(
    sizes: list[int], fanout: int
) -> None:
    chosen = policy.pick(sizes, fanout)
    assert chosen == sorted(set(chosen))
    if chosen:
        assert len(chosen) >= fanout
        picked = sorted(sizes[place] for place in chosen)
        rest = [size for place, size in enumerate(sizes) if place not in chosen]
        assert all(size >= picked[-1] for size in rest)
        assert picked[-1] <= sum(picked[:-1])


@given(sizes=SIZES, fanout=st.integers(2, 10))
def test_merging_ends_with_few_runs(sizes: list[int], fanout: int) -> None:
    """What remains: fewer than the fanout, and then each larger than all before it together."""
    total = sum(sizes)
    while chosen := policy.pick(sizes, fanout):
        merged = sum(sizes[place] for place in chosen)
        sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]
    assert sum(sizes) == total
    left = sorted(sizes)
    for count in range(fanout - 1, len(left)):
        assert left[count] > sum(left[:count])
    assert len(left) <= fanout + np.log2(max(total, 1))


@settings(max_examples=30)
@given(
    commits=st.lists(st.integers(1, 1000), min_size=1, max_size=400), fanout=st.integers(2, 8)
)
def test_each_row_is_written_few_times(commits: list[int], fanout: int) -> None:
    """log2(n) times at most: with each merge a row comes into a run twice as large."""
    runs: list[list[int]] = []  # how often each row's group was written
    sizes: list[int] = []
    most = 0
    for size in commits:
        sizes.append(size)
        runs.append([0])
        while chosen := policy.pick(sizes, fanout):
            times = [t + 1 for place in chosen for t in runs[place]]
            most = max(most, *times)
            merged = sum(sizes[place] for place in chosen)
            sizes = [s for place, s in enumerate(sizes) if place not in chosen] + [merged]
            runs = [r for place, r in enumerate(runs) if place not in chosen] + [times]
    assert most <= np.log2(sum(commits)) + 1


def test_fanout_of_none_or_one_merges_nothing() -> None:
    for fanout in (0, 1):
        assert policy.pick([5] * 100, fanout) == []


def test_merge_is_never_larger_than_row_numbers_reach() -> None:
    half = MAX_ROWS // 2 + 1
    assert policy.pick([half, half], 2) == []
    assert policy.pick([half, half, 5, 5], 2) == [2, 3]


@given(sizes=st.lists(st.integers(1, MAX_ROWS), max_size=12))
def test_groups_of_a_full_compaction_fit(sizes: list[int]) -> None:
    groups = policy.fitting(sizes)
    assert [place for group in groups for place in group] == list(range(len(sizes)))
    assert all(sum(sizes[place] for place in group) <= MAX_ROWS for group in groups)


@given(
    segments=st.lists(
        st.tuples(st.integers(1, 10**6), st.floats(0, 1), st.integers(0, 10**6)), max_size=9
    )
)
def test_segments_with_too_many_deletions_are_written_again(
    segments: list[tuple[int, float, int]],
) -> None:
    """Afterwards none is: what was deleted before the merge concerns it no more."""
    dead, kept = [share for _, share, _ in segments], [count for *_, count in segments]
    rows = sum(size for size, *_ in segments)
    places = policy.purged(dead, kept, rows)
    for place, (_, share, count) in enumerate(segments):
        if share > 1 / 3:
            assert place in places
        elif count <= policy.LEAST_TOMBSTONES or count <= policy.MOST_TOMBSTONES * rows:
            assert place not in places
        else:
            assert place in places
    left = [0.0 if place in places else share for place, share in enumerate(dead)]
    held = [0 if place in places else count for place, count in enumerate(kept)]
    assert policy.purged(left, held, rows) == []


@given(sizes=SIZES)
def test_settled_runs_are_each_three_times_as_large_as_all_smaller_ones(sizes: list[int]) -> None:
    """And what it takes to come there is known before."""
    expected, written = policy.settling_rows(sizes), 0
    while chosen := policy.settling(sizes):
        merged = sum(sizes[place] for place in chosen)
        written += merged
        sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]
    assert written == expected
    left = sorted(sizes)
    for count in range(1, len(left)):
        assert left[count] > policy.SETTLED_RATIO * sum(left[:count])


@settings(max_examples=50)
@given(data=st.data(), fanout=st.integers(2, 16))
def test_thirty_batches_of_a_million_rows_settle_as_three_runs(
    data: st.DataObject, fanout: int
) -> None:
    """Whichever merges have ended by the time that the writer is idle."""
    sizes: list[int] = []
    for _ in range(30):
        sizes.append(1_000_000)
        if data.draw(st.booleans()) and (chosen := policy.pick(sizes, fanout)):
            merged = sum(sizes[place] for place in chosen)
            sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]
    while chosen := policy.settling(sizes):
        merged = sum(sizes[place] for place in chosen)
        sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]
    assert len(sizes) <= 3
