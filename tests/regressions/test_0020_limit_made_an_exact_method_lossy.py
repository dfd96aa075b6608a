"""With weights and a recall below 1, a memory limit turned a block design into PSM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.methods import psm


@pytest.mark.parametrize("method", ["bphs", "bphs:G=5,g=2"])
def test_a_design_is_exact_under_a_limit_whatever_the_recall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(psm, "SWEPT_ROWS", 1)
    rng = np.random.default_rng(3)
    weights = oracle.normal_weights(rng, 20_000)
    rows = oracle.signs(weights)
    asked, _ = oracle.near_duplicates(rng, weights[:2000], 3)
    options = IndexOptions(structures=("psm", "bphs:G=5,g=2"))
    with simindex.open(tmp_path / "pages.sim", "n", options=options) as index:
        index.append(Batch(rows, weights=weights))
        index.commit()
        index.compact(full=True)
        batch = Batch(oracle.signs(asked), weights=asked)
        found = index.query(batch, h=3, recall=0.5, method=method, memory_limit=1 << 28)
    truth = oracle.answers(rows, range(20_000), batch.rows, 3)
    got = zip(found.query.tolist(), found.distance.tolist(), found.id.tolist(), strict=True)
    assert list(got) == truth
    assert found.stats.exact
