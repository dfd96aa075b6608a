"""How clusters are counted by their size."""

from __future__ import annotations

from simindex.reporting.index_report import SIZE_GROUPS, sizes_of


def test_clusters_are_counted_by_groups_of_sizes() -> None:
    assert sizes_of([(1, 5), (2, 4), (4, 2), (5, 1), (31, 1)]) == [
        ("1", 5, 5), ("2", 4, 8), ("3", 0, 0), ("4–5", 3, 13), ("6–10", 0, 0), ("11–30", 0, 0),
        ("31–100", 1, 31),
    ]
    assert sizes_of([]) == []
    assert sizes_of([(5000, 2)])[-1] == ("1,001+", 2, 10_000)


def test_groups_leave_no_gap() -> None:
    ends = [most for _, most in SIZE_GROUPS]
    assert [least for least, _ in SIZE_GROUPS] == [1, *(most + 1 for most in ends if most)]
