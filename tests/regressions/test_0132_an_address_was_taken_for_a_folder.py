"""`build s3://bucket/x.sim` advised to create a folder `s3:/bucket`, and `stats` to build an index
there."""

from __future__ import annotations

from pathlib import Path

import pytest

import simindex
from simindex.errors import InvalidOption


@pytest.mark.parametrize("path", ["s3://bucket/x.sim", "file:///tmp/x.sim", "https://a.org/x.sim"])
@pytest.mark.parametrize("mode", ["r", "w", "c", "n"])
def test_an_index_at_an_address_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, mode: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (path, Path(path)):
        with pytest.raises(InvalidOption, match="an index is a folder on a local disk") as refused:
            simindex.open(given, mode)  # type: ignore[call-overload]
        assert refused.value.data["option"] == "path"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_named_like_one_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s3:").mkdir()
    with simindex.open("s3:/x.sim", "c") as index:
        assert len(index) == 0
    with simindex.open(tmp_path / "s3:" / "x.sim") as index:
        assert len(index) == 0
