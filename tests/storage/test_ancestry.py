"""A backup replaces the states that an index comes from, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simindex.errors import CorruptFile
from simindex.storage.ancestry import Branch, State, branched, decode, encode, why_not_older
from simindex.storage.catalog.records import Head, Run
from simindex.storage.catalog.sealed_values import pack

A, B = Branch(b"a" * 8, 5), Branch(b"b" * 8, 9)


def at(generation: int, *way: Branch, pending: tuple[Run, ...] = (), appended: int = 0) -> State:
    return State(Head(generation, appended, 0, pending=pending), way)


def test_a_backup_of_an_earlier_commit_is_older() -> None:
    assert why_not_older(at(5, A), at(5)) is None
    assert why_not_older(at(5, A), at(8)) is None


def test_what_came_from_the_backup_itself_replaces_it() -> None:
    """The index was lost, restored from this backup, and went on."""
    assert why_not_older(at(5, A), at(9, A)) is None


def test_a_backup_of_a_restored_index_is_older_than_it() -> None:
    assert why_not_older(at(9, A, B), at(12, A)) is None


def test_an_index_before_it_was_restored_elsewhere_is_older() -> None:
    """Backed up at commit 3; then a backup of commit 5 was restored."""
    assert why_not_older(at(3, Branch(b"c" * 8, 3)), at(9, A)) is None


@pytest.mark.parametrize(("backup", "index", "why"), [
    (at(5), at(8), "not made by a backup"),
    (at(6, A), at(8), "was written to"),
    (at(5, A), at(4), "older commit 4"),
    (at(9, A, B), at(12), "another copy"),
    (at(9, A, B), at(12, Branch(b"x" * 8, 5)), "another copy"),
    (at(9, B), at(12, A), "commits after 5"),
    (at(5, A), at(12, Branch(b"r" * 8, 0)), "commits after 0"),
    (at(5, A), at(8, pending=(Run(1, 1, 4, 77),)), "other commits"),
    (at(5, A, pending=(Run(1, 1, 4, 76),)), at(8, pending=(Run(1, 1, 4, 77),)), "other commits"),
    (at(5, A, appended=10), at(8, appended=9), "other commits"),
])
def test_any_other_state_stays(backup: State, index: State, why: str) -> None:
    assert why in (why_not_older(backup, index) or "")


def test_pending_rows_of_later_commits_say_nothing() -> None:
    run = Run(1, 1, 4, 77)
    index = at(8, pending=(run, Run(2, 1, 6, 78)))
    assert why_not_older(at(5, A, pending=(run, Run(0, 1, 3, 70))), index) is None


def test_a_way_reads_back() -> None:
    way = (A, branched(9))
    assert decode(encode(way)) == way
    assert decode(None) == ()
    assert branched(9) != branched(9)


@pytest.mark.parametrize("payload", [
    b"", b"\xc1", pack(3), pack([3]), pack([[b"a" * 8]]), pack([[b"a" * 7, 5]]),
    pack([["a" * 8, 5]]), pack([[b"a" * 8, -1]]), pack([[b"a" * 8, "5"]]), pack({"a": 1}),
])
def test_anything_else_is_damage(payload: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode(payload)


def test_heads_differ_by_what_they_hold() -> None:
    """A commit that appended nothing is none of the reasons."""
    index = at(8, appended=10)
    assert why_not_older(at(5, A, appended=10), index) is None
    assert why_not_older(State(replace(index.head, generation=5), (A,)), index) is None
