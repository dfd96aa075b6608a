"""A document's own rows counted for its degree, so a page stored often became a star's centre."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex


@pytest.mark.parametrize(
    ("rows", "ids", "h", "centre"),
    [
        ([0, 0, 0], [2, 2, 1], 2, 1),  # two pairs each, so the smaller id; 2 has six with its own
        ([3, 1, 7], [2, 3, 3], 1, 2),  # the same of rows that differ
        ([0, 0, 0, 0, 0], [5, 5, 5, 4, 6], 0, 5),  # 5 has six pairs with others, 4 and 6 have four
        ([0, 0, 0, 0, 255], [9, 9, 1, 1, 9], 0, 1),  # four each, and one near nothing
    ],
)
def test_the_centre_of_a_star_has_most_pairs_with_other_documents(
    index_path: Path, rows: list[int], ids: list[int], h: int, centre: int
) -> None:
    """Of several with as many, the one of the smallest id."""
    with simindex.open(index_path, "n") as index:
        index.append(np.array(rows, np.uint64), ids=ids)
        index.commit()
        found = index.clusters(h=h, mode="star")
        assert set(found.representative.tolist()) == {centre}
        assert index.check() == []


def test_rows_of_one_document_do_not_make_it_a_centre(index_path: Path) -> None:
    """A page that was stored a thousand times is near one other page, which is near two."""
    with simindex.open(index_path, "n") as index:
        rows = np.array([0] * 1000 + [1, 3], np.uint64)
        index.append(rows, ids=[7] * 1000 + [8, 9])
        index.commit()
        found = index.clusters(h=1, mode="star")
        assert [(one.id, one.representative) for one in found] == [(7, 8), (8, 8), (9, 8)]
