"""An index that is built in the place of another is durable there before the other is removed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.cli import replacement
from simindex.cli.replacement import replacing
from simindex.storage import disk


def test_old_index_goes_when_the_new_one_has_its_name_for_good(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(3, dtype=np.uint64))
    calls: list[tuple[str, str]] = []

    class Noted(disk.System):
        def rename(self, path: Path, to: Path) -> None:
            super().rename(path, to)
            calls.append(("rename", to.name))

        def sync_directory(self, path: Path) -> None:
            super().sync_directory(path)
            calls.append(("sync", path.name))

    real = replacement.shutil.rmtree
    with replacing(index_path) as place:
        beside = place.parent.name
        with simindex.open(place, "c") as index:
            index.append(np.arange(5, dtype=np.uint64))
        monkeypatch.setattr(disk, "system", Noted())
        monkeypatch.setattr(
            replacement.shutil, "rmtree",
            lambda path, **named: (calls.append(("remove", path.name)), real(path, **named)),
        )
    parent = index_path.parent.name
    assert calls == [
        ("rename", "old"), ("sync", beside), ("sync", parent),
        ("rename", index_path.name), ("sync", parent), ("sync", beside),
        ("remove", beside),
    ]
    with simindex.open(index_path) as index:
        assert len(index) == 5
    assert [path.name for path in index_path.parent.iterdir()] == [index_path.name]
