"""An index under random use answers as a list of rows does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from index_machine import Discard, IndexMachine

import simindex
from simindex import IndexOptions


class KeyedMachine(IndexMachine):
    """The same with keys for names."""

    keyed = True


@pytest.mark.slow
@pytest.mark.parametrize("machine", [IndexMachine, KeyedMachine], ids=["ids", "keys"])
def test_index_behaves_as_a_list_of_rows(machine: type[RuleBasedStateMachine]) -> None:
    """Some thousand steps; `tools/torture.py model` takes 100,000."""
    run_state_machine_as_test(
        machine, settings=settings(max_examples=40, stateful_step_count=35)
    )


def test_append_without_names_counts_rows(index_path: Path) -> None:
    """Ids that the index gives are new ones, and each names one row."""
    values = np.arange(10, dtype=np.uint64)
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=4)) as index:
        given = np.concatenate([index.append(values), index.append(values)])
        index.commit()
        given = np.concatenate([given, index.append(values)])
        index.commit()
        assert len(np.unique(given)) == 30
        index.delete(ids=given[3:4])
        index.commit()
        assert len(index) == 29


@pytest.mark.parametrize("ids", [[0, 2**64 - 1], [2**63, 5], (7, 2**63 - 1)])
def test_ids_are_any_whole_numbers_of_64_bits(ids: list[int], index_path: Path) -> None:
    """Also in a list, of which numpy would make floats where some need the 64th bit."""
    with simindex.open(index_path, "n") as index:
        assert index.append(np.array([1, 2], dtype=np.uint64), ids=ids).tolist() == list(ids)
        index.commit()
        index.delete(ids=ids)
        index.commit()
        assert len(index) == 0


def test_deletion_reaches_only_earlier_commits(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.array([1], dtype=np.uint64), ids=[7])
        index.commit()
        index.delete(ids=[7])
        index.append(np.array([2], dtype=np.uint64), ids=[7])
        index.commit()
        found = index.query(np.array([1, 2], dtype=np.uint64), h=0)
        assert [(m.query, m.id) for m in found] == [(1, 7)]


def test_leaving_a_writer_by_an_exception_discards(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.array([1], dtype=np.uint64), ids=[1])
    with pytest.raises(Discard), simindex.open(index_path, "w") as index:
        index.append(np.array([2], dtype=np.uint64), ids=[2])
        index.delete(ids=[1])
        raise Discard
    with simindex.open(index_path) as index:
        assert [part.ids.tolist() for part in index.rows()] == [[1]]


def test_a_reader_follows_commits_by_itself(index_path: Path) -> None:
    value = np.array([1], dtype=np.uint64)
    with simindex.open(index_path, "n") as writer, simindex.open(index_path) as reader:
        writer.append(value, ids=[1])
        assert len(reader.query(value)) == 0
        writer.commit()
        assert len(reader.query(value)) == 1
