"""Labels of shards become the clusters that plain loops find."""

from __future__ import annotations

import numpy as np
import pytest

from simindex.distributed import labels, merge_labels
from simindex.distributed.forests import Labels
from simindex.errors import TooManyMatches


def part(ids: list[int], root: dict[int, int]) -> Labels:
    """The labels of a shard, whose distances are what ids differ by."""
    others = [place for place, one in enumerate(ids) if root[one] != one]
    return Labels(
        np.array(ids, np.uint64), np.array(others, np.uint32),
        np.array([root[ids[place]] for place in others], np.uint64),
        np.array([abs(ids[place] - root[ids[place]]) for place in others], np.uint16),
        [f"k{one}" for one in ids],
    )


@pytest.mark.parametrize("singletons", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_ordered_by_their_smallest_id(
    monkeypatch: pytest.MonkeyPatch, seed: int, singletons: bool
) -> None:
    """Of stars, whose representative may have any id, in shards of which one is empty."""
    monkeypatch.setattr(labels, "PIECE_ROWS", 5)
    rng = np.random.default_rng(seed)
    ids = rng.permutation(200)[:60].tolist()
    roots = ids[: 60 - 15 * seed : 3] or ids[:1]
    root = {one: one for one in ids}
    for one in ids[30:]:
        if one not in roots:
            root[one] = int(rng.choice(roots))
    found = merge_labels(
        [part(ids[:25], root), part([], root), part(ids[25:], root)], singletons=singletons,
        mode="star",
    )
    members: dict[int, list[int]] = {}
    for one in sorted(ids):
        members.setdefault(root[one], []).append(one)
    groups = sorted(group for group in members.values() if singletons or len(group) > 1)
    expected = [
        (one, group[0], root[one], abs(one - root[one]), len(group))
        for group in groups for one in group
    ]
    assert [tuple(one) for one in found] == expected and expected
    assert found.keys() == [f"k{one}" for one, *_ in expected]
    assert found.representative_keys() == [f"k{root[one]}" for one, *_ in expected]
    assert found.documents == 60
    assert [found.id.dtype, found.distance.dtype, found.size.dtype] == ["u8", "u2", "i8"]


def test_more_rows_than_an_answer_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MOST_ROWS", 2)
    with pytest.raises(TooManyMatches, match="label_shard"):
        merge_labels([part([1, 2, 3], {1: 1, 2: 2, 3: 3})])


def test_no_rows_have_no_clusters() -> None:
    assert len(merge_labels([part([], {})])) == 0
