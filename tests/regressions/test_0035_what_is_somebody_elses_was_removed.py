"""Nothing is removed or written over but what only an index, or a repair of one, can have made."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from click.testing import CliRunner

import simindex
from simindex import IndexOptions
from simindex.cli import program
from simindex.cli.new_index import replacing
from simindex.errors import CorruptFile, IndexExists, IndexNotFound, SimindexError
from simindex.storage.files import removal
from simindex.writing import creation

Tree = Callable[[Path], Any]

ROWS = np.arange(40, dtype=np.uint64)


def fill(path: Path, **options: Any) -> None:
    with simindex.open(path, "c", options=IndexOptions(min_merge=0, **options)) as index:
        index.append(ROWS)


def lines(path: Path, texts: list[str]) -> str:
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    return str(path)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(program, arguments, prog_name="simindex")
    return result.exit_code, result.output


def lose_a_head(path: Path) -> None:
    """So that a repair makes a new catalog."""
    with (path / "catalog" / "data.mdb").open("r+b") as file:
        file.seek(16)
        file.write(b"x")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    victim = tmp_path / "victim"
    (victim / "inner").mkdir(parents=True)
    (victim / "inner" / "precious").write_text("precious")
    return victim


def test_a_repair_follows_no_link_that_is_named_as_its_own_catalog(
    index_path: Path, victim: Path, tree: Tree
) -> None:
    fill(index_path)
    lose_a_head(index_path)
    (index_path / "catalog.repair-1").symlink_to(victim)
    before = tree(victim)
    assert simindex.repair(index_path, apply=True).applied
    assert tree(victim) == before
    with simindex.open(index_path, "r") as index:
        assert len(index) == len(ROWS)


def test_a_repair_reads_no_catalog_through_a_link(
    index_path: Path, tmp_path: Path, tree: Tree
) -> None:
    fill(index_path)
    other = tmp_path / "other"
    shutil.copytree(index_path, other)
    shutil.rmtree(index_path / "catalog")
    (index_path / "catalog.repair-1").symlink_to(other / "catalog")
    before = tree(other)
    with pytest.raises(CorruptFile, match="none of its files that say how rows are"):
        simindex.repair(index_path, apply=True)  # its rows waited in the catalog
    assert tree(other) == before


@pytest.mark.parametrize("name", ["catalog.repair-1", f"damaged-{'9' * 240}", "damaged-999999999"])
def test_a_file_of_a_name_that_repairs_give_is_in_nobodys_way(index_path: Path, name: str) -> None:
    fill(index_path)
    lose_a_head(index_path)
    (index_path / name).write_text("precious")
    report = simindex.repair(index_path, apply=True)
    assert report.applied
    assert (index_path / name).read_text() == "precious"
    assert not simindex.repair(index_path).needed


def test_a_repair_leaves_a_catalog_with_anything_else_in_it(
    index_path: Path, victim: Path, tree: Tree
) -> None:
    fill(index_path)
    lose_a_head(index_path)
    (index_path / "catalog.repair-1").mkdir()
    shutil.move(victim, index_path / "catalog.repair-1" / "theirs")
    before = tree(index_path / "catalog.repair-1" / "theirs")
    simindex.repair(index_path, apply=True)
    assert tree(index_path / "catalog.repair-1" / "theirs") == before


def test_a_tree_deeper_than_calls_may_nest_is_removed(tmp_path: Path, victim: Path) -> None:
    deep = tmp_path / "deep"
    for _ in range(1_200):
        deep.mkdir()
        (deep / "link").symlink_to(victim)
        deep /= "d"
    removal.remove_tree(tmp_path / "deep")
    assert not (tmp_path / "deep").exists()
    assert (victim / "inner" / "precious").read_text() == "precious"


@pytest.mark.parametrize(
    "inner",
    [
        "catalog/photo", "segments/photo", ".tmp-work/photo", "damaged-photos/photo",
        "catalog.repair-later/photo", "catalog/2024/photo", "segments/00.rows/photo",
        ".tmp-0123456789abcdeg", "LOCK", "catalog", "segments", "damaged-",
        "catalog.repair-1/photo", "catalog/data.mdb", "FORMAT", "FORMAT/photo",
        ".tmp-0123456789abcdef/photo", "catalog.repair-1/data.mdb/photo",
    ],
)
@pytest.mark.parametrize("mode", ["c", "n"])
def test_a_folder_that_looks_like_half_an_index_is_left(
    index_path: Path, tree: Tree, inner: str, mode: Any
) -> None:
    path = index_path / inner
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    before = tree(index_path)
    for overwrite in (False, True) if mode == "n" else (False,):
        with pytest.raises((IndexExists, CorruptFile)):
            simindex.open(index_path, mode, overwrite=overwrite)
        assert tree(index_path) == before
    code, _ = run("build", "--overwrite", str(index_path), lines(index_path.parent / "d", ["a"]))
    assert code != 0
    assert tree(index_path) == before
    code, _ = run("build", str(index_path), lines(index_path.parent / "d.jsonl", ["a b c"]))
    assert code != 0
    assert tree(index_path) == before


@pytest.mark.parametrize("inner", ["notes.txt", "segments/notes.txt", "catalog/old/notes.txt"])
def test_overwriting_an_index_leaves_what_else_is_there(
    index_path: Path, tree: Tree, inner: str
) -> None:
    fill(index_path)
    (index_path / inner).parent.mkdir(exist_ok=True)
    (index_path / inner).write_text("precious")
    before = tree(index_path)
    documents = lines(index_path.parent / "d.jsonl", ["a b c"])
    code, output = run("build", str(index_path), documents, "--overwrite")
    assert code != 0
    assert "is not an index (it contains" in output
    after = tree(index_path)
    assert {name: after[name] for name in before if name != "LOCK"} == {
        name: before[name] for name in before if name != "LOCK"
    }


def test_overwriting_an_index_keeps_what_a_repair_has_kept(index_path: Path) -> None:
    fill(index_path)
    lose_a_head(index_path)
    simindex.repair(index_path, apply=True)
    kept = sorted(path.name for path in (index_path / "damaged-1").rglob("*"))
    documents = lines(index_path.parent / "d.jsonl", ["a b c d e"])
    code, output = run("build", str(index_path), documents, "--overwrite")
    assert code == 0, output
    assert sorted(path.name for path in (index_path / "damaged-1").rglob("*")) == kept
    assert not list(index_path.parent.glob(".*"))


def test_a_link_to_an_index_stays_and_leads_to_the_new_one(
    index_path: Path, tmp_path: Path
) -> None:
    fill(index_path)
    link = tmp_path / "link"
    link.symlink_to(index_path)
    documents = lines(tmp_path / "d.jsonl", ["a b c d e"])
    code, output = run("build", str(link), documents, "--overwrite")
    assert code == 0, output
    assert link.is_symlink()
    with simindex.open(index_path, "r") as index:
        assert len(index) == 1


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("command", ["build", "dedup"])
def test_a_run_that_fails_removes_what_it_made_alone(
    index_path: Path, was_there: bool, command: str
) -> None:
    if was_there:
        (index_path / "damaged-1").mkdir(parents=True)
        (index_path / "damaged-1" / "photo").write_text("precious")
    documents = lines(index_path.parent / "d.jsonl", [f"a b c {i}" for i in range(5000)] + ['"'])
    arguments = {
        "build": ["build", str(index_path), documents],
        "dedup": ["dedup", "--index", str(index_path), documents],
    }
    code, output = run(*arguments[command])
    assert code == 4
    if command == "build":
        assert "was not created" in output
    assert index_path.exists() is was_there
    if was_there:
        assert [path.name for path in index_path.iterdir()] == ["damaged-1"]
        assert (index_path / "damaged-1" / "photo").read_text() == "precious"


def test_what_another_process_has_begun_with_is_not_discarded(index_path: Path) -> None:
    creation.create(index_path, IndexOptions(), overwrite=False)
    with simindex.open(index_path, "w") as index:
        assert creation.discard(index_path, made=True) is False
        index.append(ROWS)
    assert creation.discard(index_path, made=True) is False
    with simindex.open(index_path, "r") as index:
        assert len(index) == len(ROWS)


def test_a_repair_changes_nothing_in_a_folder_that_is_no_index(
    index_path: Path, tree: Tree
) -> None:
    index_path.mkdir()
    (index_path / "LOCK").write_text("precious")
    (index_path / "catalog").mkdir()
    before = tree(index_path)
    for apply in (False, True):
        with pytest.raises(IndexNotFound):
            simindex.repair(index_path, apply=apply)
        assert tree(index_path) == before


@pytest.mark.parametrize("sealed", [False, True])
def test_an_index_that_has_lost_its_format_is_not_made_anew(
    index_path: Path, sealed: bool
) -> None:
    fill(index_path, **({"batch_rows": 16} if sealed else {}))
    assert bool(list((index_path / "segments").iterdir())) is sealed
    (index_path / "FORMAT").unlink()
    with pytest.raises(IndexExists, match="no FORMAT; not overwritten"):
        simindex.open(index_path, "c")
    code, _ = run("build", str(index_path), lines(index_path.parent / "d.jsonl", ["a b c"]))
    assert code != 0
    assert simindex.repair(index_path, apply=True).rows == len(ROWS)


def test_a_damaged_catalog_without_format_is_an_error_of_the_library(index_path: Path) -> None:
    fill(index_path)
    (index_path / "FORMAT").unlink()
    (index_path / "catalog" / "data.mdb").unlink()
    (index_path / "catalog" / "data.mdb").symlink_to("nowhere")
    with pytest.raises(SimindexError):
        simindex.open(index_path, "c")


def test_a_catalog_of_another_program_is_left(index_path: Path) -> None:
    (index_path / "catalog").mkdir(parents=True)
    with lmdb.open(str(index_path / "catalog"), max_dbs=1) as other:
        other.open_db(b"theirs")
    data = index_path / "catalog" / "data.mdb"
    before = data.read_bytes()
    for overwrite in (False, True):
        with pytest.raises(IndexExists, match=r"catalog/data\.mdb"):
            simindex.open(index_path, "n", overwrite=overwrite)
    assert data.read_bytes() == before


def test_files_that_are_named_as_those_of_an_index_make_none(
    index_path: Path, tree: Tree
) -> None:
    index_path.mkdir()
    for name in ("FORMAT", "LOCK", "catalog", "segments"):
        (index_path / name).write_text("precious")
    before = tree(index_path)
    with pytest.raises(IndexExists):
        simindex.open(index_path, "n", overwrite=True)
    code, _ = run("build", "--overwrite", str(index_path), lines(index_path.parent / "d", ["a"]))
    assert code != 0
    with pytest.raises(SimindexError):
        simindex.repair(index_path)
    assert tree(index_path) == before


@pytest.mark.parametrize("text", [b"", bytes(20), b"pro", b"process 12", b"process 1 on a\0\0"])
def test_a_lock_that_a_crash_cut_short_is_our_own(index_path: Path, text: bytes) -> None:
    (index_path / "catalog").mkdir(parents=True)
    (index_path / "LOCK").write_bytes(text)
    fill(index_path)
    with simindex.open(index_path, "r") as index:
        assert len(index) == len(ROWS)


def test_what_is_put_into_an_index_while_it_is_replaced_is_kept(index_path: Path) -> None:
    fill(index_path)
    with pytest.raises(IndexExists, match=r"notes\.txt"), replacing(index_path) as place:
        simindex.open(place, "n").close()
        (index_path / "notes.txt").write_text("precious")
    assert (index_path / "notes.txt").read_text() == "precious"
    with simindex.open(index_path, "r") as index:
        assert len(index) == len(ROWS)
    assert not list(index_path.parent.glob(".*"))


def test_what_is_put_into_an_index_that_is_discarded_is_kept(index_path: Path) -> None:
    creation.create(index_path, IndexOptions(), overwrite=False)
    (index_path / "notes.txt").write_text("precious")
    assert creation.discard(index_path, made=True) is False
    assert (index_path / "notes.txt").read_text() == "precious"
    assert creation.discard(index_path.parent, made=True) is False
    assert not (index_path.parent / "LOCK").exists()


def test_temporary_files_are_those_of_a_name_that_is_given_to_them(index_path: Path) -> None:
    fill(index_path)
    notes = [index_path / ".tmp-notes", index_path / "segments" / ".tmp-notes"]
    for path in notes:
        path.write_text("precious")
    simindex.open(index_path, "w").close()
    assert all(path.read_text() == "precious" for path in notes)
    (index_path / "FORMAT").unlink()
    assert simindex.repair(index_path, apply=True).applied
    assert notes[0].read_text() == "precious"
    assert (index_path / "damaged-1" / "segments" / ".tmp-notes").read_text() == "precious"


def test_an_index_without_format_can_be_built_anew_if_asked(index_path: Path) -> None:
    fill(index_path)
    (index_path / "FORMAT").unlink()
    documents = lines(index_path.parent / "d.jsonl", ["a b c d e"])
    code, output = run("build", str(index_path), documents, "--overwrite")
    assert code == 0, output
    with simindex.open(index_path, "r") as index:
        assert len(index) == 1


def test_an_audit_of_two_names_is_none_beside_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("precious")
    (tmp_path / "audit").hardlink_to(tmp_path / "in" / "a.txt")
    code, output = run("dedup", str(tmp_path / "in"), "--audit", str(tmp_path / "audit"))
    assert code == 2, output
    assert (tmp_path / "in" / "a.txt").read_text() == "precious"


def test_a_link_to_itself_is_no_index(index_path: Path) -> None:
    index_path.symlink_to(index_path)
    documents = lines(index_path.parent / "d.jsonl", ["a b c"])
    for option in ([], ["--overwrite"]):
        code, output = run("build", str(index_path), documents, *option)
        assert code == 3, output
    code, output = run("dedup", documents, "--audit", str(index_path))
    assert code in (2, 3), output
    assert index_path.is_symlink()
