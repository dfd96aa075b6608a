"""A thread that closed a handle held the lock of all environments, and waited for the transaction
of a backup; the backup waited for that lock before it ended its transaction."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.backup import index_copy
from simindex.errors import ClosedIndex
from simindex.storage.catalog import leases


def is_taken() -> bool:
    """Whether another thread has the lock of all environments."""
    if leases._registry_lock.acquire(blocking=False):
        leases._registry_lock.release()
        return False
    return True


def test_a_handle_is_closed_while_a_backup_of_it_copies(
    index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(index_path, "n")
    index.append(np.arange(9, dtype=np.uint64))
    index.commit()
    closer = Thread(target=index.close, daemon=True)
    copied = index_copy.copy_commit

    def copy(*given: Any) -> None:
        copied(*given)
        if not closer.ident:
            closer.start()
            until = monotonic() + 5
            while not is_taken() and monotonic() < until:
                sleep(0.001)

    def back_up() -> None:
        with suppress(ClosedIndex):
            index.backup(tmp_path / "copy")

    monkeypatch.setattr(index_copy, "copy_commit", copy)
    backup = Thread(target=back_up, daemon=True)
    backup.start()
    backup.join(20)
    closer.join(20)
    assert not backup.is_alive() and not closer.is_alive()
