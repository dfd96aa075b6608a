"""Work that a thread does beside its caller."""

from __future__ import annotations

from threading import Event, current_thread

import pytest

from simindex.cli.dedup import background
from simindex.cli.dedup.background import Background


def test_work_is_done_by_another_thread_and_waited_for() -> None:
    done: list[str] = []
    worker = Background()
    worker.wait()
    for number in range(3):
        worker.begin(lambda number=number: done.append(f"{number} {current_thread().name}"))
        assert worker.busy
        worker.wait()
        assert not worker.busy
    worker.close()
    assert done == [f"{number} simindex-writing" for number in range(3)]


def test_what_the_work_raises_is_raised_once_and_the_thread_goes_on() -> None:
    worker, done = Background(), list[int]()

    def failing() -> None:
        raise OSError(28, "No space left on device")

    worker.begin(failing)
    with pytest.raises(OSError, match="No space"):
        worker.wait()
    worker.wait()
    worker.begin(lambda: done.append(1))
    assert worker.leave()
    worker.close()
    assert done == [1]


def test_who_leaves_does_not_wait_for_work_that_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LEAVE_S", 0.01)
    worker, held = Background(), Event()
    worker.begin(lambda: (held.wait(30), None)[1])
    assert not worker.leave()
    assert worker.busy
    held.set()
    worker.wait()
    worker.close()


def test_the_thread_lets_go_of_what_it_has_done() -> None:
    """A buffer of documents would be held while the next one is decided."""
    import weakref

    class Held:
        def work(self) -> None:
            pass

    worker, held = Background(), Held()
    worker.begin(held.work)
    worker.wait()
    gone = weakref.ref(held)
    del held
    assert gone() is None
    worker.close()
