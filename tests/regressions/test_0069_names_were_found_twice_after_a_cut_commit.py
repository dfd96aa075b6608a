"""`get` gave rows twice after an interrupted commit: as committed ones, and as waiting ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.errors import ReadOnlyIndex
from simindex.storage.catalog.catalog import Catalog, Edit

ROWS = np.arange(3, dtype=np.uint64)


def test_a_document_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was deleted with it is gone, and nothing can be changed."""
    commit = Catalog.commit

    def cut(catalog: Catalog, edit: Edit) -> None:
        commit(catalog, edit)
        raise KeyboardInterrupt

    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append(ROWS, ids=ROWS)
        index.commit()
        index.append(ROWS[:1], ids=[9])
        index.delete(ids=[1])
        with monkeypatch.context() as once:
            once.setattr(Catalog, "commit", cut)
            with pytest.raises(KeyboardInterrupt):
                index.commit()
        assert len(index.get(9)) == 1
        assert index.contains(ids=[0, 1, 9]).tolist() == [True, False, True]
        with pytest.raises(ReadOnlyIndex, match="interrupted"):
            index.delete(ids=[9])
        index.close()


def test_what_waits_is_found_after_a_commit_that_failed_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(catalog: Catalog, edit: Edit) -> None:
        raise KeyboardInterrupt

    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append(ROWS, ids=ROWS)
        monkeypatch.setattr(Catalog, "commit", cut)
        with pytest.raises(KeyboardInterrupt):
            index.commit()
        assert len(index.get(2)) == 1
        index.close()
