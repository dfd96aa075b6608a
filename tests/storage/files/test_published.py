"""Published shards are known by their paths, and only they."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simindex.errors import ReadOnlyIndex
from simindex.storage.files.published import is_published, require_unpublished

NAME, SEAL = "00003-9f3c5a7e12d4b680", "51d0c7a94e8b2f36"


@pytest.mark.parametrize(("place", "expected"), [
    (f"pages.shards/shards/{NAME}/{SEAL}", True), (f"shards/123456-{NAME[6:]}/{SEAL}", True),
    (f"shards/{NAME}/new", False), (f"shards/.{NAME}.a1b2c3d4/{SEAL}", False),
    (f"shards/{NAME}", False), (f"other/{NAME}/{SEAL}", False), (f"shards/{NAME}/{SEAL}0", False),
    (f"shards/{NAME[1:]}/{SEAL}", False), (f"shards/{NAME}/{SEAL}/segments", False), ("", False),
])
def test_a_published_shard_is_known_by_its_path(place: str, expected: bool) -> None:
    assert is_published(Path("/data") / place) is expected


def test_a_relative_path_is_known_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shards" / NAME
    (folder / SEAL).mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert is_published(Path(SEAL))
    os.chdir(SEAL)
    assert is_published(Path())


def test_what_would_write_to_it_is_refused() -> None:
    path = Path("/data/shards") / NAME / SEAL
    with pytest.raises(ReadOnlyIndex, match="is a published shard") as raised:
        require_unpublished(path)
    assert raised.value.data == {"path": str(path)}
    require_unpublished(path.parent / "new")


def test_a_link_to_it_is_refused_too(tmp_path: Path) -> None:
    shard = tmp_path / "shards" / NAME / SEAL
    shard.mkdir(parents=True)
    (tmp_path / "pages.sim").symlink_to(shard)
    with pytest.raises(ReadOnlyIndex):
        require_unpublished(tmp_path / "pages.sim")
