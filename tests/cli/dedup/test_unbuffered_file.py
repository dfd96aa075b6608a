"""Files whose writes are whole."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Thread

import numpy as np
import pytest

from simindex.cli.dedup.unbuffered_file import Unbuffered


def test_a_write_of_more_than_a_pipe_holds_is_whole() -> None:
    reading, writing = os.pipe()
    read: list[bytes] = []

    def read_all() -> None:
        while data := os.read(reading, 1 << 20):
            read.append(data)
        os.close(reading)

    thread = Thread(target=read_all)
    thread.start()
    given = np.arange(200_000, dtype=np.uint32)
    with Unbuffered(writing, "wb") as file:
        assert file.write(given) == given.nbytes
        assert file.write(b"") == 0
    thread.join()
    assert b"".join(read) == given.tobytes()


def test_a_pipe_that_may_not_wait_says_so() -> None:
    """It takes a part, and nothing of what follows."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    given = np.arange(1 << 18, dtype=np.uint32).tobytes()
    with Unbuffered(writing, "wb") as file, pytest.raises(BlockingIOError):
        file.write(given)
    taken = os.read(reading, len(given))
    os.close(reading)
    assert len(taken) < len(given)
    assert given.startswith(taken)


def test_a_file_is_closed_while_a_thread_waits_within_a_write() -> None:
    """With a buffer, `close` would wait for its lock."""
    reading, writing = os.pipe()
    file = Unbuffered(writing, "wb")

    def write() -> None:
        with suppress(OSError, ValueError):
            file.write(bytes(1 << 20))

    thread = Thread(target=write)
    thread.start()
    os.read(reading, 1)
    assert thread.is_alive()
    file.close()
    assert file.closed
    os.close(reading)
    thread.join()
