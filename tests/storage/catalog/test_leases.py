"""Handles of one process share an environment; forks and pickles do not."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from children import in_child

import simindex
from simindex.errors import ClosedIndex, CorruptFile, IndexLocked
from simindex.storage.catalog import leases

pytestmark = [
    pytest.mark.usefixtures("nothing_left_open"),
    # Forks are what is tested here; from Python 3.12 on they warn of the threads that numpy keeps.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

ROWS = np.arange(30, dtype=np.uint64)


@pytest.mark.slow
def test_handles_of_one_process_share_an_environment(filled: Path) -> None:
    before = len(leases._registry)
    with simindex.open(filled) as first, simindex.open(filled) as second:
        assert first._handle.environment is second._handle.environment
        assert len(leases._registry) == before + 1


@pytest.mark.slow
def test_path_through_a_symlink_is_the_same_index(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(filled)
    with simindex.open(filled, "w") as writer, simindex.open(tmp_path / "link") as reader:
        assert writer._handle.environment is reader._handle.environment
        writer.append(ROWS)
        writer.commit()
        assert len(reader) == 60
        with pytest.raises(IndexLocked):
            simindex.open(tmp_path / "link", "w")


@pytest.mark.slow
def test_reader_becomes_a_neighbour_of_a_later_writer(filled: Path) -> None:
    with simindex.open(filled) as reader:
        assert len(reader) == 30
        with simindex.open(filled, "w") as writer:
            writer.append(ROWS)
            writer.commit()
            assert len(reader) == 60
        assert len(reader) == 60


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.slow
def test_handles_close_in_any_order(filled: Path, order: tuple[int, ...]) -> None:
    handles = [simindex.open(filled), simindex.open(filled, "w"), simindex.open(filled)]
    for count, place in enumerate(order):
        handles[place].close()
        handles[place].close()
        for rest in order[count + 1 :]:
            assert len(handles[rest]) == 30
        with pytest.raises(ClosedIndex):
            len(handles[place])


@pytest.mark.slow
def test_second_writer_of_a_process_is_refused_and_leaves_the_first_alone(filled: Path) -> None:
    with simindex.open(filled, "w") as writer:
        with pytest.raises(IndexLocked, match=str(os.getpid())) as caught:
            simindex.open(filled, "w")
        assert str(os.getpid()) in caught.value.data["holder"]
        assert "that this very process has open" in str(caught.value)
        assert "close that handle first" in str(caught.value.remedy)
        writer.append(ROWS)
    with simindex.open(filled, "w") as writer:
        assert len(writer) == 60


@pytest.mark.slow
def test_threads_open_and_close_side_by_side(filled: Path) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                with simindex.open(filled) as reader:
                    assert len(reader.query(ROWS, h=0)) == 30
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


@pytest.mark.parametrize("mode", ["r", "w"])
@pytest.mark.slow
def test_child_of_a_fork_is_told_and_can_open_its_own(filled: Path, mode: str) -> None:
    index = simindex.open(filled, mode)  # type: ignore[arg-type]

    def use() -> None:
        for call in (
            lambda: len(index), index.check, index.stats, index.refresh,
            lambda: index.query(ROWS), lambda: index.append(ROWS), index.commit,
        ):
            with pytest.raises(ClosedIndex, match="fork"):
                call()
        with simindex.open(filled) as own:
            assert len(own) == 30
        index.close()

    assert in_child(use) == 0
    assert len(index) == 30
    if mode == "w":
        index.append(ROWS)
        index.commit()
        assert len(index) == 60
    index.close()


@pytest.mark.slow
def test_child_does_not_keep_the_writers_lock_alive(filled: Path) -> None:
    index = simindex.open(filled, "w")
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writable)
        os.read(readable, 1)  # until the parent is done
        os._exit(0)
    os.close(readable)
    index.close()
    try:
        simindex.open(filled, "w").close()
    finally:
        os.close(writable)
        os.waitpid(pid, 0)


@pytest.mark.slow
def test_child_can_write_once_the_parent_has_closed(filled: Path) -> None:
    simindex.open(filled, "w").close()

    def write() -> None:
        with simindex.open(filled, "w") as own:
            own.append(ROWS)

    assert in_child(write) == 0
    with simindex.open(filled) as reader:
        assert len(reader) == 60


@pytest.mark.slow
def test_children_leave_no_readers_behind(filled: Path) -> None:
    with simindex.open(filled) as reader:
        for _ in range(5):
            assert in_child(lambda: None) == 0
        assert len(reader) == 30
        assert reader._handle.environment._env.readers().count("\n") <= 2


@pytest.mark.slow
def test_handle_pickles_as_a_reader_of_its_path(filled: Path) -> None:
    with simindex.open(filled, "w") as writer:
        copy = pickle.loads(pickle.dumps(writer))  # noqa: S301
        assert (copy.mode, copy.path, len(copy)) == ("r", filled, 30)
        copy.close()


@pytest.mark.slow
def test_writer_that_is_refused_leaves_the_environment_to_its_reader(
    filled: Path, tmp_path: Path
) -> None:
    with simindex.open(filled) as reader:
        held = reader._handle.environment
        os.link(filled / "catalog" / "data.mdb", tmp_path / "second")
        with pytest.raises(CorruptFile, match="second name"):
            simindex.open(filled, "w")
        assert len(reader) == 30
    assert held.closed
