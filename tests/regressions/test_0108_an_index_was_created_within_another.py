"""`merge A -o A/x` and `build A/x` created an index within another one, which was then refused as a
folder that holds what is not its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program
from simindex.errors import InvalidOption


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    path = tmp_path / "outer.sim"
    with simindex.open(path, "n") as index:
        index.append([1, 2, 3])
        index.commit()
    return path


@pytest.mark.parametrize("place", ["x.sim", "segments/x.sim"])
def test_no_index_is_created_within_another(outer: Path, place: str) -> None:
    (outer.parent / "link").symlink_to(outer)
    before = sorted(outer.rglob("*"))
    for path in (outer / place, outer.parent / "link" / place):
        with pytest.raises(InvalidOption, match=r"is within the index .*outer.sim"):
            simindex.open(path, "c")
        result = CliRunner().invoke(program, ["merge", str(outer), "-o", str(path)])
        assert result.exit_code != 0 and isinstance(result.exception, (SystemExit, InvalidOption))
    assert sorted(outer.rglob("*")) == before


def test_a_folder_with_a_file_of_that_name_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("of the photographs: TIFF")
    with simindex.open(tmp_path / "x.sim", "n") as index:
        assert not len(index)
