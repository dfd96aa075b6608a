"""A commit of many segments left a catalog file that ended before its last page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simindex
from simindex import IndexOptions
from simindex.storage.catalog.pages import META, Meta


def last_page_end(data: Path) -> int:
    raw = data.read_bytes()
    starts = {page: raw[4096 * page :][: META.itemsize] for page in (0, 1)}
    metas = [Meta.read(start, page) for page, start in starts.items()]
    return max((meta.last_page + 1) * meta.page_bytes for meta in metas if meta is not None)


def test_file_holds_the_last_page_after_every_commit(index_path: Path) -> None:
    """LMDB counts pages that it gave back within a transaction but does not write them."""
    rng = np.random.default_rng(0)
    data = index_path / "catalog" / "data.mdb"
    options = IndexOptions(batch_rows=1, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        for rows in (46, 72, 275, 5, 130):
            index.append(rng.integers(0, 2**64, rows, dtype=np.uint64))
            index.commit()
            assert data.stat().st_size >= last_page_end(data)
    with simindex.open(index_path, "w") as index:
        assert len(index) == 528


def test_links_among_the_catalogs_files_are_refused(index_path: Path, tmp_path: Path) -> None:
    """LMDB would follow a link and write its lock table over what it leads to."""
    simindex.open(index_path, "c").close()
    victim = tmp_path / "victim"
    victim.write_bytes(b"x" * 1000)
    lock = index_path / "catalog" / "lock.mdb"
    lock.unlink()
    lock.symlink_to(victim)
    for mode in ("r", "w"):
        try:
            simindex.open(index_path, mode).close()  # type: ignore[arg-type]
        except simindex.CorruptFile as error:
            assert "lock.mdb" in str(error)
        else:
            raise AssertionError("a linked lock file was opened")
    assert victim.read_bytes() == b"x" * 1000
