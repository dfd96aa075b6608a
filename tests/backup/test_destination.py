"""A backup goes to a new or empty folder, or to an older backup of the same index; else nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backups import filled, grown, inside, sound

import simindex
from simindex.errors import IndexExists, IndexNotFound, InvalidOption

Look = Callable[[Path], dict[str, Any]]


@pytest.fixture
def ids(index_path: Path) -> set[int]:
    return filled(index_path)


def back_up(path: Path, to: Path) -> None:
    with simindex.open(path) as index:
        index.backup(to)


@pytest.mark.parametrize("within", ["", ".", "segments", "segments/new", "catalog/a", "new"])
def test_not_the_index_itself(within: str, index_path: Path, ids: set[int], tree: Look) -> None:
    before = tree(index_path)
    with pytest.raises(InvalidOption, match=r"itself or within it|is within the index"):
        back_up(index_path, index_path / within)
    assert tree(index_path) == before


def test_not_the_index_by_a_link(tmp_path: Path, index_path: Path, ids: set[int]) -> None:
    link = tmp_path / "link"
    link.symlink_to(index_path)
    for path in (link, link / "new", tmp_path / "x" / ".." / "link"):
        with pytest.raises((InvalidOption, IndexNotFound)):
            back_up(index_path, path)
    with pytest.raises(InvalidOption):
        back_up(link, index_path)


def test_an_empty_folder(tmp_path: Path, index_path: Path, ids: set[int]) -> None:
    to = tmp_path / "to"
    to.mkdir()
    back_up(index_path, to)
    assert sound(to) == ids


def test_a_link_stays_and_leads_to_the_backup(
    tmp_path: Path, index_path: Path, ids: set[int]
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "to").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk" / "to")
    back_up(index_path, link)
    newer = grown(index_path, 1000)
    back_up(index_path, link)
    assert link.is_symlink()
    assert sound(tmp_path / "disk" / "to") == newer
    assert inside(tmp_path) == ["disk", "link", "pages.sim"]


def made_file(to: Path) -> None:
    to.write_text("a text")


def made_folder(to: Path) -> None:
    to.mkdir()
    (to / "letter.txt").write_text("a text")


def made_link_to_nothing(to: Path) -> None:
    to.symlink_to(to.parent / "nothing" / "at all")


def made_other_index(to: Path) -> None:
    with simindex.open(to, "c"):
        pass


def made_remains(to: Path) -> None:
    """A folder whose FORMAT is lost, which `repair` may give back."""
    filled(to)
    (to / "FORMAT").unlink()


@pytest.mark.parametrize("make", [
    made_file, made_folder, made_link_to_nothing, made_other_index, made_remains,
])
def test_anything_else_stays(
    make: Callable[[Path], None], tmp_path: Path, index_path: Path, ids: set[int], tree: Look
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder / "to")
    before = {} if make is made_link_to_nothing else tree(folder)
    with pytest.raises(IndexExists):
        back_up(index_path, folder / "to")
    assert inside(folder) == ["to"]
    assert before == ({} if make is made_link_to_nothing else tree(folder))


def test_a_backup_with_something_else_in_it_stays(
    tmp_path: Path, index_path: Path, ids: set[int]
) -> None:
    to = tmp_path / "to"
    back_up(index_path, to)
    (to / "letter.txt").write_text("a text")
    with pytest.raises(IndexExists, match=r"letter\.txt"):
        back_up(index_path, to)
    assert (to / "letter.txt").read_text() == "a text"


def test_a_folder_that_is_not_there_is_not_made(
    tmp_path: Path, index_path: Path, ids: set[int]
) -> None:
    with pytest.raises(IndexNotFound, match="create it first"):
        back_up(index_path, tmp_path / "not" / "there")
    assert inside(tmp_path) == ["pages.sim"]


def test_a_name_that_leaves_no_room_for_another(
    tmp_path: Path, index_path: Path, ids: set[int]
) -> None:
    back_up(index_path, tmp_path / ("x" * 244))
    with pytest.raises(InvalidOption, match="244 bytes"):
        back_up(index_path, tmp_path / ("x" * 245))


def test_a_mount_point_is_refused(
    tmp_path: Path, index_path: Path, ids: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "to").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "to")
    with pytest.raises(InvalidOption, match="mount point"):
        back_up(index_path, tmp_path / "to")


def test_a_newer_version_s_backup_stays(tmp_path: Path, index_path: Path, ids: set[int]) -> None:
    to = tmp_path / "to"
    back_up(index_path, to)
    data = bytearray((to / "FORMAT").read_bytes())
    data[12] = 2
    (to / "FORMAT").write_bytes(data)
    with pytest.raises(simindex.FormatTooNew):
        back_up(index_path, to)
    assert (to / "FORMAT").read_bytes() == bytes(data)
