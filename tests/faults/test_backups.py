"""A backup that is stopped leaves none, the older one or the new one; the index stays as it is.

Quick form of `python tools/torture.py backups`.
"""

from __future__ import annotations

import pytest
from reliability import backup_cuts, backup_writers, backups, report


@pytest.mark.slow
def test_backups_that_are_killed_or_refused_at_a_step() -> None:
    """Of each variant some steps, by each way to stop."""
    tally = backups.share(0, 1, 30, 0)
    outcome = tally.outcome("stopped backups", 30, 0.0, 0)
    print(report.table([outcome]))
    outcome.require()
    assert tally.counts["killed"]
    assert tally.counts["StorageFull"]


@pytest.mark.slow
def test_power_cuts_during_backups() -> None:
    """Of each variant the plainest states."""
    verdict = backup_cuts.cut(30, 0)
    assert verdict.faults == []
    assert len(verdict.states) >= 27


@pytest.mark.slow
def test_backups_beside_a_writer_hold_one_commit() -> None:
    """A process that commits, deletes and merges all the time."""
    tally = backup_writers.beside(15)
    outcome = tally.outcome("backups beside a writer", 15, 0.0, 0)
    outcome.require()
