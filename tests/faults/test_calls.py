"""The table of public calls that the fault trials go through is whole, and its rows are right."""

from __future__ import annotations

import pytest
from reliability import calls, coverage
from reliability.trials import shared

import simindex


def test_table_has_every_public_call_argument_and_choice() -> None:
    assert coverage.uncovered() == []
    assert coverage.unknown() == []
    assert set(coverage.EXCEPTIONS) - {"backup.path", "open.path", "repair.path"} <= {
        "Index.__init__", "Index.path", "Index.mode", "Index.options",
    }
    assert all(coverage.EXCEPTIONS.values())


def test_rows_of_the_table_have_names_of_their_own() -> None:
    """So that a fault tells which of them it is of."""
    names = [call.name for call in calls.CALLS]
    assert len(names) == len(set(names))


def test_method_that_the_table_lacks_is_found() -> None:
    class Grown(simindex.Index):
        def vacuum(self) -> None:
            """New."""

        @property
        def weight(self) -> int:
            """New."""
            return 0

    assert coverage.uncovered(Grown) == ["Index.vacuum", "Index.weight"]


def test_argument_that_the_table_lacks_is_found() -> None:
    class Grown(simindex.Index):
        def compact(  # type: ignore[override]
            self, *, full: bool = False, structures: object = None, progress: object = None,
            depth: int = 0, eager: bool = False,
        ) -> None:
            """With new arguments."""

    assert coverage.uncovered(Grown) == [
        "Index.compact(depth)", "Index.compact(eager)", "Index.compact(eager=False)",
        "Index.compact(eager=True)",
    ]


def test_function_and_choice_that_the_table_lacks_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def defragment(path: str) -> None:
        """New."""

    monkeypatch.setattr(simindex, "defragment", defragment, raising=False)
    monkeypatch.setattr(simindex, "__all__", [*simindex.__all__, "defragment"])
    monkeypatch.setitem(coverage.CHOICES, "query.method", (*calls.METHODS, "guess"))
    assert coverage.uncovered() == ["Index.query(method='guess')", "defragment"]


def test_flag_that_is_given_one_value_only_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tuple(call for call in calls.CALLS if call.arguments.get("skew") is not True)
    monkeypatch.setattr(calls, "CALLS", kept)
    assert coverage.uncovered() == ["Index.stats(skew=True)"]


def test_every_row_does_undisturbed_what_the_table_says() -> None:
    """Its answer is that of brute force, and so are the rows at once and after a commit."""
    outcome = shared("calls", 1).outcome("calls", len(calls.CALLS), 0, 0)
    outcome.require()
