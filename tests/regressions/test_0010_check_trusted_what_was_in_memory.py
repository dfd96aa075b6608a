"""`check` reads pending rows and tombstones again, though a snapshot holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.storage.catalog.environment import Transaction


@pytest.mark.parametrize("database", ["pending", "tombstones", "meta"])
def test_check_finds_a_damaged_record(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(50, dtype=np.uint64))
        index.commit()
        index.delete(ids=[3])
        index.commit()
        assert index.check() == []
        real = Transaction.get

        def get(self: Transaction, name: str, key: bytes) -> bytes | None:
            value = real(self, name, key)
            if name == database and value is not None:
                value = bytes([value[0] ^ 1]) + value[1:]
            return value

        monkeypatch.setattr(Transaction, "get", get)
        assert {finding.severity for finding in index.check()} == {"error"}
        monkeypatch.undo()
