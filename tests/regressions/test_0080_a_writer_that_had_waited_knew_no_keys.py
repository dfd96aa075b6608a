"""A writer read the options of an index before it had the lock. The one before it had decided
meanwhile that rows have keys: `seen_or_add` ended with an AssertionError, since the key had no
secret to be hashed with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidOption
from simindex.options import IndexOptions
from simindex.storage.files import locks

TEXTS = ["one two three four five six", "seven eight nine ten eleven twelve"]


@pytest.fixture
def after_another_writer(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., simindex.Index]:
    """Opens the empty index once another writer has added the first text, between the reading of
    the options and the lock."""
    simindex.open(index_path, "c").close()
    real = locks.lock

    def late(path: Path) -> Any:
        monkeypatch.setattr(locks, "lock", real)
        with simindex.open(index_path, "w") as first:
            assert first.seen_or_add(TEXTS[0], key="page-0") is None
        return real(path)

    def opened(**named: Any) -> simindex.Index:
        monkeypatch.setattr(locks, "lock", late)
        return simindex.open(index_path, "w", **named)

    return opened


def test_it_adds_and_finds_by_key(after_another_writer: Callable[..., simindex.Index]) -> None:
    with after_another_writer() as index:
        found = index.seen_or_add(TEXTS[0], key="page-9")
        assert found is not None
        assert found.key == "page-0"
        assert index.seen_or_add(TEXTS[1], key="page-1") is None
    with simindex.open(index.path) as index:
        assert sorted(key for batch in index.rows() for key in batch.keys or []) == [
            "page-0", "page-1"]
        assert not index.check()


def test_it_appends_and_deletes_by_key(
    after_another_writer: Callable[..., simindex.Index]
) -> None:
    with after_another_writer() as index:
        index.append(simindex.Batch(np.arange(2, dtype=np.uint64), keys=["a", "b"]))
        index.delete(keys=["page-0", "a"])
    with simindex.open(index.path) as index:
        assert [key for batch in index.rows() for key in batch.keys or []] == ["b"]
        assert not index.check()


def test_options_that_disagree_with_what_was_decided_are_refused(
    after_another_writer: Callable[..., simindex.Index], index_path: Path
) -> None:
    with pytest.raises(InvalidOption, match="keys='str', not False"):
        after_another_writer(options=IndexOptions(keys=False))
    simindex.open(index_path, "w").close()  # the lock was given back
