"""Flips are never read off an empty sample, nor off weights that float16 cannot hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions

FINGERPRINTS = np.random.default_rng(6).integers(0, 2**64, 20_000, dtype=np.uint64)
WEIGHTS = np.random.default_rng(7).normal(size=(50, 64)).astype(np.float32)
QUERIES = Batch(FINGERPRINTS[:50], weights=WEIGHTS)


@pytest.fixture
def unsampled(index_path: Path) -> simindex.Index:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=1 << 15)) as index:
        index.append(FINGERPRINTS)
    return simindex.open(index_path)


def flips_of(index: simindex.Index, queries: Batch = QUERIES) -> int:
    return index.query(queries, h=3, recall=0.95, method="psm").stats.flips


def test_tune_takes_the_whole_sample(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(Batch(FINGERPRINTS[:50], weights=WEIGHTS))
        index.commit()
        assert len(index.tune(machine=False).sample) == 50


def test_tune_without_a_sample_does_not_set_the_flips(unsampled: simindex.Index) -> None:
    expected = flips_of(unsampled)
    assert expected > 1
    unsampled.tune(machine=False)
    assert flips_of(unsampled) == expected
    unsampled.close()


def test_query_of_no_rows_does_not_set_the_flips(unsampled: simindex.Index) -> None:
    none = Batch(FINGERPRINTS[:0], weights=WEIGHTS[:0])
    assert len(unsampled.query(none, recall=0.95, method="psm")) == 0
    assert flips_of(unsampled) > 1
    unsampled.close()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_unit_of_the_weights_does_not_matter(unsampled: simindex.Index, scale: float) -> None:
    scaled = Batch(FINGERPRINTS[:50], weights=WEIGHTS * np.float32(scale))
    assert flips_of(unsampled, scaled) == flips_of(simindex.open(unsampled.path))
    unsampled.close()
