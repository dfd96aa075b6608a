"""`tune` prints what it has measured, and stores it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def built(run: Run, write_jsonl: Callable[..., Any]) -> str:
    records = [{"id": f"k{n}", "text": f"text number {n} of a hundred or so"} for n in range(100)]
    run("build", "i.sim", write_jsonl("a.jsonl", records), "-q", "--structures",
        "psm,bphs:G=4,g=1", "--batch-rows", 64)
    return "i.sim"


@pytest.mark.slow
def test_tune_prints_and_stores_the_machine(
    run: Run, built: str, objects: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small tables stand for the machine's, and are measured once."""
    from simindex.planning import measurement

    measure = measurement.measure
    monkeypatch.setattr(
        measurement, "measure",
        cache(lambda file: measure(file, level_rows=(300, 5_000, 40_000))),
    )
    printed = run("tune", built)
    assert "read a second" in printed.stdout and "delta_r_ns" not in printed.stdout
    printed = run("tune", built, "-v")
    assert "delta_r_ns" in printed.stdout and "look-up" in printed.stdout
    assert "measured and stored" in printed.stderr
    (found,) = objects(run("tune", built, "--json").stdout)
    assert found["measured"] is True and len(found["levels"]) == 3
    explained = run("explain", built, "--fingerprint", "0" * 16, "-v")
    assert "constants of this machine" in explained.stderr
    assert "no damage" in run("check", built).stderr
