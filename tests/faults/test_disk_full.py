"""A disk that is full raises StorageFull, changes nothing, and the same call succeeds later.

Quick form of `python tools/torture.py full-disk`.
"""

from __future__ import annotations

import pytest
from reliability import full_disk, report


def test_every_operation_survives_a_full_disk() -> None:
    """Creating, opening, each kind of commit, compacting and closing, on a small tmpfs."""
    outcome, = full_disk.run(40, 0, 2)
    print(report.table([outcome]))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    outcome.require()
