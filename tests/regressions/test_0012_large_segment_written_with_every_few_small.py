"""Seven small segments beside a large one were merged with it: work grew with its square."""

from __future__ import annotations

from simindex.writing import policy


def test_a_large_segment_is_left_alone_by_few_small_ones() -> None:
    assert policy.pick([1_000_000, *[10] * 7], 8) == []
    assert policy.pick([1_000_000, *[10] * 8], 8) == list(range(1, 9))


def test_equal_commits_write_each_row_a_few_times() -> None:
    sizes: list[int] = []
    written = 0
    for _ in range(4096):
        sizes.append(100)
        while chosen := policy.pick(sizes, 8):
            merged = sum(sizes[place] for place in chosen)
            written += merged
            sizes = [size for place, size in enumerate(sizes) if place not in chosen] + [merged]
    assert sum(sizes) == 409_600
    assert written <= 6 * 409_600
