"""Rows are added, and matched before that, as one index does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sharded import answer, families, local_index, shortened, sketched

import simindex
from simindex.distributed import Shards, read_map
from simindex.errors import InvalidBatch, InvalidOption, TooManyMatches


def both(tmp_path: Path, batch: simindex.Batch, by: Any = "ones") -> tuple[Shards, Path]:
    """Shards, and the path of an index, of the first half of some rows."""
    half = batch.take(np.arange(len(batch) // 2))
    with local_index(tmp_path / "local.sim", half) as index:
        options = simindex.IndexOptions(sketch_bits=batch.sketch_bits, recipe=index.recipe)
        if index.recipe is not None:
            options = simindex.IndexOptions(recipe=index.recipe)
    return Shards.build(tmp_path / "s", half, 3, by=by, options=options), tmp_path / "local.sim"


NEAR: list[tuple[bool, dict[str, Any]]] = [
    (True, {"similarity": 0.9, "recall": 0.8}), (True, {"similarity": 0.95}),
    (True, {"similarity": 0.8, "measure": "jaccard"}), (True, {"h": 5, "recall": 0.9}),
    (True, {"similarity": 0.9, "method": "scan"}), (False, {"similarity": 0.9, "threads": 1}),
    (False, {"h": 4, "method": "scan"}), (False, {"memory_limit": 1 << 26}),
    (False, {"h": 3, "method": "bphs", "recall": 1.0}),
]


@pytest.mark.parametrize(("sketches", "near"), NEAR)
def test_ingest_takes_the_options_of_one_index(
    tmp_path: Path, sketches: bool, near: dict[str, Any]
) -> None:
    batch = sketched(21, 240)
    if not sketches:
        batch = simindex.Batch(batch.rows)
    shards, path = both(tmp_path, batch)
    with simindex.open(path, "w") as index:
        for start, end in ((120, 200), (200, 240)):
            more = batch.take(np.arange(start, end))
            found, expected = shards.ingest(more, **near), index.ingest(more, **near)
            assert answer(found) == answer(expected)
            assert len(found) > 20
            for name in ("similarity_bits", "measure", "exact"):
                assert getattr(found.stats, name) == getattr(expected.stats, name)
    assert len(shards) == 240
    assert shards.verify() == []


@pytest.mark.parametrize("near", [{"h": 3}, {"similarity": 0.9}])
def test_ingest_of_first_matches_has_one_of_each_row_that_has_any(
    tmp_path: Path, near: dict[str, Any]
) -> None:
    """Which one it is may be another than that of one index; a stored one goes first."""
    batch = sketched(22, 240)
    shards, path = both(tmp_path, batch)
    stored = np.unique(shards.query(batch.take(np.arange(120, 240)), **near).query)
    more = batch.take(np.arange(120, 240))
    found = shards.ingest(more, first=True, **near)
    with simindex.open(path, "w") as index:
        expected = index.ingest(more, first=True, **near)
    assert found.query.tolist() == expected.query.tolist()
    assert len(np.unique(found.query)) == len(found) > len(stored) > 0
    assert (found.id[np.isin(found.query, stored)] < 120).all()
    assert (found.id[~np.isin(found.query, stored)] >= 120).all()


def test_ingest_with_weights_is_that_of_an_exact_search(tmp_path: Path) -> None:
    batch = shortened(120)
    shards, path = both(tmp_path, batch, "rows")
    more = batch.take(np.arange(60, 120))
    with simindex.open(path, "w") as index:
        how = {"similarity": 0.85, "method": "scan"}
        assert answer(shards.ingest(more, **how)) == answer(index.ingest(more, **how))


def test_what_ingest_refuses_adds_nothing(tmp_path: Path) -> None:
    shards, _ = both(tmp_path, sketched(23, 120))
    rows = sketched(24, 40)
    for how, error, says in [
        ({"similarity": 1.5}, InvalidOption, "similarity"),
        ({"similarity": 0.9, "h": 3}, InvalidOption, "contradict"),
        ({"similarity": 0.9, "measure": "dice"}, InvalidOption, "measure"),
        ({"measure": "jaccard"}, InvalidOption, "measure"), ({"h": 65}, InvalidOption, "h=65"),
        ({"method": "none"}, InvalidOption, "method"), ({"recall": 2}, InvalidOption, "recall"),
        ({"first": np.arange(2)}, InvalidOption, "first"),
        ({"threads": 0}, InvalidOption, "threads"),
        ({"memory_limit": -1}, InvalidOption, "memory_limit"),
        ({"memory_limit": 700}, TooManyMatches, "within itself"),
    ]:
        with pytest.raises(error, match=says):
            shards.ingest(rows, **how)  # type: ignore[arg-type]
    with pytest.raises(InvalidBatch, match="sketch"):
        shards.ingest(simindex.Batch(families(1, 4)), similarity=0.9)
    assert read_map(tmp_path / "s").generation == 1
