"""An interrupt at the wrong moment kept a transaction counted, so that closing waited for ever, or
the writer's lock until the process ended; and what a handler raised was taken for damage."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import simindex
from simindex.errors import CorruptFile
from simindex.storage import location
from simindex.storage.catalog import leases, sealed_values
from simindex.storage.catalog.environment import Environment
from simindex.storage.catalog.leases import Lease
from simindex.writing.committer import Committer
from simindex.writing.writer import Writer

ROWS = np.arange(40, dtype=np.uint64)


@pytest.fixture
def filled(index_path: Path) -> Path:
    """An index of forty rows."""
    with simindex.open(index_path, "n") as index:
        index.append(ROWS)
    return index_path


def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, with Ctrl-C just after it."""

    def wrapped(*arguments: Any, **named: Any) -> Any:
        call(*arguments, **named)
        raise KeyboardInterrupt

    return wrapped


@pytest.mark.parametrize("call", [len, lambda index: index.stats()])
def test_a_transaction_is_counted_out(
    filled: Path, call: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled)
    with monkeypatch.context() as patch:
        patch.setattr(Environment, "_enter", interrupted(Environment._enter))
        with pytest.raises(KeyboardInterrupt):
            call(index)
    assert not index._handle.environment._active  # else `close` would wait for ever
    index.close()


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Committer, "discard"), (Writer, "cancel_merges"), (Writer, "close"), (Lease, "release")],
)
def test_the_lock_is_given_back(
    filled: Path, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled, "w")
    index.append(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted(getattr(owner, name)))
        with pytest.raises(KeyboardInterrupt):
            index.close()
    index.close()
    index.close()
    with simindex.open(filled, "w") as again:
        assert len(again) == 80
    assert all(filled not in one.directory.parents for one in leases.environments())


def test_closing_that_was_interrupted_before_it_began_is_done_by_the_next(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled, "w")

    def interrupt() -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.close()
    index.close()
    simindex.open(filled, "w").close()


def test_a_lock_that_nobody_has_got_is_given_back(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", interrupted(os.pread))
        with pytest.raises(KeyboardInterrupt):
            simindex.open(filled, "w")
    simindex.open(filled, "w").close()


@pytest.mark.parametrize("error", [TimeoutError("the caller's own"), MemoryError()])
def test_what_a_handler_raises_is_no_damage(
    filled: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*arguments: Any, **named: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(msgpack, "unpackb", late)
        with pytest.raises(type(error)):
            sealed_values.unpack("head", b"\x90")
    with pytest.raises(CorruptFile):
        sealed_values.unpack("head", b"\x91")


def test_a_reader_that_opens_while_the_index_is_replaced_gets_the_new_one(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FORMAT of the one and the catalog of the other were taken for damage."""
    other = filled.with_name("other.sim")
    with simindex.open(other, "n") as index:
        index.append(ROWS[:7])
    real = leases.acquire

    def acquire(directory: Path, *, writable: bool = False) -> Lease:
        if other.exists():
            filled.rename(filled.with_name("old.sim"))
            other.rename(filled)
        return real(directory, writable=writable)

    monkeypatch.setattr(location, "acquire", acquire)
    with simindex.open(filled) as index:
        assert len(index) == 7
        assert index.check() == []


def test_names_of_folders_may_be_any_bytes(filled: Path) -> None:
    place = filled.with_name(os.fsdecode(b"pages\xff.sim"))
    filled.rename(place)
    with simindex.open(place, "w") as index:
        index.append(ROWS)
        index.compact(full=True)
        assert index.check() == []
    (place / "catalog" / "data.mdb").unlink()
    simindex.repair(place, apply=True)
    with simindex.open(place) as index:
        assert len(index) == 80
        assert len(index.query(ROWS, h=0)) == 80
