"""Work on two items at once: the order of results, bounds, errors, and one processor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import TypeVar

import pytest

from simindex.cli import workers
from simindex.cli.workers import HELD

T = TypeVar("T")
R = TypeVar("R")


def at_once(
    items: Iterable[T], work: Callable[[T, int], R], ready: bool = True
) -> Generator[tuple[T, R], None, None]:
    return workers.at_once(items, work, lambda: ready)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may use two processors."""
    monkeypatch.setenv("SIMINDEX_THREADS", "2")


@pytest.mark.usefixtures("two")
def test_results_come_in_the_order_of_the_items() -> None:
    """The first one waits until the second one is done, by another thread."""
    second = threading.Event()

    def work(item: int, threads: int) -> tuple[int, int]:
        if item == 0:
            assert second.wait(30)
        elif item == 1:
            second.set()
        return item * item, threads

    assert list(at_once(range(9), work)) == [(item, (item * item, 1)) for item in range(9)]


@pytest.mark.parametrize(("processors", "share"), [(1, 1), (3, 2), (8, 4)])
def test_an_item_gets_its_share_of_the_processors(
    monkeypatch: pytest.MonkeyPatch, processors: int, share: int
) -> None:
    monkeypatch.setenv("SIMINDEX_THREADS", str(processors))
    assert list(at_once("ab", lambda item, threads: threads)) == [("a", share), ("b", share)]


def test_one_processor_works_in_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMINDEX_THREADS", "1")
    found = at_once([1, 2], lambda item, threads: threading.current_thread())
    assert {thread for _, thread in found} == {threading.current_thread()}


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("ready", [True, False])
def test_few_items_are_taken_before_the_first_is_given(ready: bool) -> None:
    """None but the first where the next one is not there: a stream may never go on."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    with closing(at_once(items(), lambda item, threads: item, ready)) as made:
        assert next(made) == (0, 0)
        assert taken == list(range(HELD if ready else 1))


@pytest.mark.usefixtures("two")
def test_an_error_is_raised_after_the_results_before_it() -> None:
    def work(item: int, threads: int) -> int:
        if item == 2:
            raise ValueError("third")
        return item

    made = at_once(range(9), work)
    assert [next(made), next(made)] == [(0, 0), (1, 1)]
    with pytest.raises(ValueError, match="third"):
        next(made)


@pytest.mark.usefixtures("two")
def test_what_the_items_raise_is_raised_after_the_results_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("no more")

    made = at_once(items(), lambda item, threads: item)
    assert [next(made), next(made)] == [(1, 1), (2, 2)]
    with pytest.raises(OSError, match="no more"):
        next(made)


def test_no_threads_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMINDEX_THREADS", "2")
    made = at_once(range(9), lambda item, threads: item)
    next(made)
    made.close()
    for thread in threading.enumerate():
        if thread.name.startswith(workers.NAME):
            thread.join(30)
            assert not thread.is_alive()
