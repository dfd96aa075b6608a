"""The least time of a step counts, and steps that differ show a busy machine."""

from __future__ import annotations

import pytest

from simindex.planning.rounds import Rounds


def times(*least: float) -> Rounds:
    """Rounds that take a step so long each, on a clock that loses a second at every other call."""
    now, calls = [0.0], [0]
    rounds = Rounds(lambda: now[0])
    for number, seconds in enumerate(least, 1):

        def step(seconds: float = seconds) -> None:
            calls[0] += 1
            now[0] += seconds + calls[0] % 2

        assert rounds.seconds("step", step) == pytest.approx(min(least[:number]))
    return rounds


def test_least_time_of_all_rounds_counts() -> None:
    assert not times(3.0).busy
    assert not times(3.0, 3.6).busy
    assert times(3.0, 4.0).unsteady == ["step"]
    assert times(3.0, 4.0).busy
    assert not times(4.0, 9.0, 3.9).busy
