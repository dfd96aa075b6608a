"""An answer in parts keeps the contract of the methods, whatever the size of the parts."""

from __future__ import annotations

from typing import Any

import pytest
from contract import Case, MethodContract

import simindex
from simindex.query import call, parts, windows
from simindex.query.arrangement import joined


@pytest.fixture(autouse=True)
def parts_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most queries of the contract that match much have room for it only in windows."""
    monkeypatch.setattr(call, "PART_MATCHES", 60)
    monkeypatch.setattr(call, "FIRST_QUERIES", 3)
    monkeypatch.setattr(windows, "LEAST_ROWS", 50)
    monkeypatch.setattr(windows, "MOST_ROWS", 300)
    monkeypatch.setattr(parts, "GROWTH", 2)


class StreamContract(MethodContract):
    def ask(self, case: Case, batch: Any, **options: Any) -> simindex.Matches:
        return joined(list(case.index.query_stream(batch, method=self.method, **options)))


class TestStreamedAuto(StreamContract):
    method = "auto"


class TestStreamedPsm(StreamContract):
    method = "psm"
    every_width = False


class TestStreamedScan(StreamContract):
    method = "scan"
