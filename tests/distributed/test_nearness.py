"""A radius stands for itself, and a similarity for the radius that an index searches within."""

from __future__ import annotations

from pathlib import Path

import pytest
from sharded import local_index, sketched

import simindex
from simindex.distributed.nearness import Near
from simindex.errors import InvalidOption


def test_a_similarity_has_the_radius_of_the_index(tmp_path: Path) -> None:
    with local_index(tmp_path / "i.sim", sketched(1, 30)) as index:
        near = Near(None, 0.9, recall=0.8)
        assert near.options == {"similarity": 0.9, "measure": "cosine", "recall": 0.8}
        told = next(iter(index.pairs(**near.options))).guarantee
        assert f"within {near.radius_in(index)} of 64 bits" in told
        assert near.sketched_in(index)
        similar = near.similar_in(index)
        assert similar is not None and similar.sketch_bits == 256


def test_a_radius_is_that_of_the_call_or_of_the_index(tmp_path: Path) -> None:
    batch = simindex.Batch(sketched(1, 30).rows)
    with local_index(tmp_path / "i.sim", batch) as index:
        assert Near(5).options == {"h": 5}
        assert Near(5).radius_in(index) == 5
        assert Near(None).radius_in(index) == index.h
        assert not Near(None, 0.9).sketched_in(index)
        for wrong in (Near(65), Near(-1), Near(3, 0.9), Near(3, measure="jaccard")):
            with pytest.raises(InvalidOption):
                wrong.radius_in(index)
