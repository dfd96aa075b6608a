"""A plan sends each row to one shard, whatever the pieces of the input are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded import families

import simindex
from simindex.distributed import plan_shards
from simindex.distributed.shard_plan import MOST_SHARDS
from simindex.errors import InvalidBatch, InvalidOption


@settings(max_examples=40)
@given(
    st.integers(0, 60), st.integers(1, 9), st.integers(1, 20),
    st.sampled_from(["rows", "prefix", "ones"]),
)
def test_each_row_is_in_one_part_with_its_number(
    rows: int, shards: int, piece: int, by: Any
) -> None:
    fingerprints = oracle.uniform(np.random.default_rng(rows), rows)
    plan = pickle.loads(pickle.dumps(plan_shards(fingerprints, shards, by=by)))  # noqa: S301
    found: dict[int, int] = {}
    for start in range(0, rows, piece):
        batch = simindex.Batch(fingerprints[start : start + piece])
        for number in range(shards):
            part = plan.part(number, batch, start)
            assert part.ids is not None
            found.update(zip(part.ids.tolist(), part.rows[:, 0].tolist(), strict=True))
    assert found == dict(enumerate(fingerprints[:, 0].tolist()))


def test_shards_by_rows_are_equal_runs() -> None:
    plan = plan_shards(10, 3)
    batch = simindex.Batch(np.arange(10, dtype=np.uint64))
    assert plan.shards_of(batch).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_shards_by_prefix_follow_the_rows() -> None:
    fingerprints = families(1, 4000)
    plan = plan_shards(fingerprints, 7, by="prefix")
    counts = np.bincount(plan.shards_of(simindex.Batch(fingerprints)), minlength=7)
    assert counts.min() > 4000 / 7 / 3


def test_shards_by_ones_follow_the_rows() -> None:
    fingerprints = oracle.uniform(np.random.default_rng(1), 4000, 2)
    options = simindex.IndexOptions(bits=128)
    for sample in (fingerprints, 4000):
        plan = plan_shards(sample, 5, by="ones", options=options)
        counts = np.bincount(plan.shards_of(simindex.Batch(fingerprints)), minlength=5)
        assert counts.min() > 500


def test_how_many_shards_a_query_asks() -> None:
    assert plan_shards(10, 64).asked(1) == 64
    by_prefix = plan_shards(10, 64, by="prefix")
    assert by_prefix.asked(1) == 7  # prefixes of 6 bits: its own and 6 neighbours
    assert by_prefix.asked(64) == 64
    by_ones = plan_shards(10, 2, by="ones")
    assert by_ones.regions == ("0-31", "32-63")
    assert round(by_ones.asked(3), 3) == 1.55  # as a binomial(63, 0.5) has it
    assert by_ones.asked(64) == 2


def test_a_plan_with_keys_has_one_secret_for_all_shards() -> None:
    plan = plan_shards(10, 2, options=simindex.IndexOptions(keys=True))
    assert plan.options.key_secret is not None
    assert "secret" not in repr(plan)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plan_shards(10, 0), "shards=0"),
        (lambda: plan_shards(10, 100_000), "shards=100000"),
        (lambda: plan_shards(10, 65, by="ones"), "shards=65"),
        (lambda: plan_shards(-1, 2), "rows=-1"),
        (lambda: plan_shards(10, 2, by="key"), "by"),  # type: ignore[arg-type]
        (lambda: plan_shards(10, 2, options=3), "options"),  # type: ignore[arg-type]
    ],
)
def test_options_out_of_range_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message) as raised:
        call()
    assert raised.value.remedy


def test_batches_of_another_kind_are_refused() -> None:
    plan = plan_shards(10, 2)
    with pytest.raises(InvalidBatch, match="the batch has keys"):
        plan.part(0, simindex.Batch(families(1, 1), keys=["a"]))
    with pytest.raises(InvalidBatch, match="128 bits"):
        plan.part(0, simindex.Batch(families(1, 1, 2)))
    with pytest.raises(InvalidBatch, match="no numbers"):
        plan.part(0, simindex.Batch(families(1, 2)), (1 << 64) - 1)
    keyed = plan_shards(10, 2, options=simindex.IndexOptions(keys=True))
    with pytest.raises(InvalidBatch, match="no keys"):
        keyed.part(0, simindex.Batch(families(1, 1)))


def test_the_most_shards_are_planned_at_once() -> None:
    """Each split takes the fullest prefix from a heap: to look at all took half a minute."""
    plan = plan_shards(10**9, MOST_SHARDS, by="prefix")
    lengths = {len(region) for region in plan.regions}
    assert len(set(plan.regions)) == MOST_SHARDS
    assert lengths == {13, 14}
