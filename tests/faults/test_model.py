"""Random steps on an index, beside a list of rows; the long form is `make torture`."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability import model

EXAMPLES, STEPS = 9, 30

SEEDS = (0, 1)

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where nothing needs to outlive the test: in memory, if that is a place for files."""
    memory = Path("/dev/shm")  # noqa: S108  each walk makes a directory of its own
    return memory if os.access(memory, os.W_OK) else tmp_path


def test_index_answers_as_a_list_of_rows_whatever_is_done_to_it(place: Path) -> None:
    done: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES)
    @given(st.randoms(use_true_random=False))
    def some_steps(rng: random.Random) -> None:
        done.update(model.walk(rng, STEPS, place))

    some_steps()
    steps = sum(done[name] for name, _ in model.Walk.ODDS)
    print(f"{steps:,} steps: {dict(done)}")
    assert steps >= EXAMPLES * STEPS


def test_longer_walks_meet_every_kind_of_step(place: Path) -> None:
    """Their seeds are what `python -m reliability.model SEED` repeats."""
    done: Counter[str] = Counter()
    for seed in SEEDS:
        done += model.walk(random.Random(seed), model.STEPS, place)
    print(f"seeds {SEEDS}: {dict(done)}")
    assert sum(done[name] for name, _ in model.Walk.ODDS) == model.STEPS * len(SEEDS)
    assert {name for name, _ in model.Walk.ODDS} <= set(done)
