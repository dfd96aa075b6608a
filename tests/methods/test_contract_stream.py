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
    monkeypatch.setattr(call, "PART_MATCHES", 300)
    monkeypatch.setattr(call, "FIRST_QUERIES", 3)
    monkeypatch.setattr(windows, "LEAST_ROWS", 100)
    monkeypatch.setattr(windows, "MOST_ROWS", 500)
    monkeypatch.setattr(parts, "GROWTH", 2)


class StreamContract(MethodContract):
    def ask(self, case: Case, batch: Any, **options: Any) -> simindex.Matches:
        return joined(list(case.index.query_stream(batch, method=self.method, **options)))

    @pytest.mark.parametrize("h", [0, 3, 8])
    def test_exact_recall_finds_every_row_within_h_and_no_other(self, case: Case, h: int) -> None:
        """Three radii are enough: the contract of each method, without parts, has all nine."""
        super().test_exact_recall_finds_every_row_within_h_and_no_other(case, h)

    @pytest.mark.slow
    @pytest.mark.parametrize("threads", [1, 2])
    def test_answers_do_not_depend_on_threads(self, case: Case, threads: int) -> None:
        super().test_answers_do_not_depend_on_threads(case, threads)

    @pytest.mark.slow
    @pytest.mark.parametrize("recall", [0.9])
    def test_less_recall_never_adds_a_match(self, case: Case, recall: float) -> None:
        super().test_less_recall_never_adds_a_match(case, recall)


class TestStreamedAuto(StreamContract):
    method = "auto"


class TestStreamedPsm(StreamContract):
    method = "psm"
    every_width = False


class TestStreamedScan(StreamContract):
    method = "scan"
