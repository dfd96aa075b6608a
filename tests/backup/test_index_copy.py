"""A backup is one commit of an index, whole, and neither changes the other."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backups import OPTIONS, files_of, filled, grown, ids_in, inside, numbered, sound
from children import in_child

import simindex
from simindex.backup import index_copy
from simindex.backup.files import Files
from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    IndexExists,
    IndexLocked,
    IndexNotFound,
    InvalidOption,
    SimindexError,
    StorageFailed,
    StorageFull,
)
from simindex.index import handle
from simindex.storage import location
from simindex.storage.catalog import catalog_copy
from simindex.storage.files import disk, removal


@pytest.fixture
def to(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups" / "pages"


def back_up(path: Path, to: Path, **given: Any) -> simindex.BackupReport:
    with simindex.open(path) as index:
        return index.backup(to, **given)


class Elsewhere(disk.System):
    """Has the index on another file system than the backup."""

    def __init__(self, index: Path) -> None:
        self.index = index

    def link(self, path: Path, to: Path) -> None:
        if path.is_relative_to(self.index):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(path))
        super().link(path, to)


@pytest.fixture
def elsewhere(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "system", Elsewhere(index_path))


# -- what it holds ---------------------------------------------------------------------------------


def test_a_backup_holds_the_rows_of_the_commit(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    report = back_up(index_path, to)
    assert sound(to) == ids
    with simindex.open(index_path) as index, simindex.open(to) as backup:
        assert report.generation == backup.generation == index.generation
        assert backup.options == index.options
        for number in (3, 150, 202):
            given = numbered(number, 1).fingerprints
            assert list(backup.query(given, h=3)) == list(index.query(given, h=3))
    assert report.path == str(to)
    assert not report.verified


def test_files_are_shared_and_the_catalog_is_not(index_path: Path, to: Path) -> None:
    filled(index_path)
    report = back_up(index_path, to)
    assert files_of(to) == files_of(index_path) != {}
    assert (report.linked, report.kept, report.copied) == (len(files_of(to)), 0, 0)
    for name in ("FORMAT", "catalog/data.mdb"):
        assert (to / name).stat().st_nlink == 1
    assert not (to / "LOCK").exists()
    assert report.bytes_copied > 0


def test_what_waits_for_a_commit_is_not_part_of_it(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    with simindex.open(index_path, "w") as index:
        index.append(numbered(1000, 5))
        index.backup(to)
        assert sound(to) == ids
    assert ids_in(index_path) == ids | set(range(1000, 1005))


def test_a_pinned_reader_backs_up_the_newest_commit(index_path: Path, to: Path) -> None:
    """Of its own commit the files may be gone."""
    filled(index_path)
    with simindex.open(index_path, refresh=False) as index:
        ids = grown(index_path, 1000)
        index.backup(to)
    assert sound(to) == ids


@pytest.mark.parametrize("options", [
    simindex.IndexOptions(keys=True, recipe=simindex.Recipe()), simindex.IndexOptions(bits=256),
    simindex.IndexOptions(),
])
def test_any_index_can_be_backed_up(
    options: simindex.IndexOptions, index_path: Path, to: Path
) -> None:
    with simindex.open(index_path, "c", options=options) as index:
        index.backup(to)
        if options.recipe is not None:
            index.append(options.recipe.batch(["a text of some words to add"], keys=["a"]))
        index.commit()
        index.backup(to, verify=True)
    with simindex.open(to) as backup:
        assert backup.check() == []
        assert backup.options == options or backup.options.keys == options.keys
        assert len(backup) == (options.recipe is not None)
        if options.recipe is not None:
            assert [m.key for m in backup.query("a text of some words to add")] == ["a"]


def test_large_catalogs_are_stored_in_portions(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = filled(index_path)
    monkeypatch.setattr(catalog_copy, "TRANSACTION_BYTES", 1 << 12)
    back_up(index_path, to)
    assert sound(to) == ids


# -- brought up to date ----------------------------------------------------------------------------


def test_an_older_backup_is_brought_up_to_date(index_path: Path, to: Path) -> None:
    filled(index_path)
    first = back_up(index_path, to)
    before = files_of(to)
    ids = grown(index_path, 1000)
    report = back_up(index_path, to)
    assert sound(to) == ids
    assert files_of(to) == files_of(index_path)
    assert report.kept == len(before.keys() & files_of(to).keys())
    assert report.linked == len(files_of(to)) - report.kept
    assert report.generation > first.generation
    assert inside(to.parent) == ["pages"]


def test_files_of_merged_segments_go(index_path: Path, to: Path) -> None:
    filled(index_path)
    back_up(index_path, to)
    with simindex.open(index_path, "w") as index:
        index.compact(full=True)
        ids = ids_in(index)
        index.backup(to)
    assert sound(to) == ids
    assert files_of(to) == files_of(index_path)


def test_the_same_commit_again_is_as_good(index_path: Path, to: Path) -> None:
    """And files that somebody has removed from the backup come back."""
    ids = filled(index_path)
    back_up(index_path, to)
    for file in (to / "segments").iterdir():
        file.unlink()
    back_up(index_path, to)
    assert sound(to) == ids


def test_a_lost_index_is_restored_and_goes_on(index_path: Path, to: Path) -> None:
    filled(index_path)
    back_up(index_path, to)
    shutil.rmtree(index_path)
    shutil.copytree(to, index_path)
    ids = grown(index_path, 1000)
    back_up(index_path, to)
    assert sound(to) == ids
    other = to.with_name("other")
    back_up(index_path, other)
    assert sound(other) == grown(index_path, 2000) - set(range(2000, 2100))
    back_up(index_path, other)


def test_only_new_files_are_copied(index_path: Path, to: Path, elsewhere: None) -> None:
    filled(index_path)
    first = back_up(index_path, to)
    assert (first.linked, first.copied) == (0, len(files_of(to)))
    assert not set(files_of(to).values()) & set(files_of(index_path).values())
    before = files_of(to)
    ids = grown(index_path, 1000)
    report = back_up(index_path, to)
    assert report.kept == len(before)
    assert report.copied == len(files_of(index_path)) - len(before)
    assert before.items() <= files_of(to).items()
    assert sound(to) == ids


def test_a_damaged_copy_is_copied_again(index_path: Path, to: Path, elsewhere: None) -> None:
    """One with other ends at once, one with another byte within by `verify`."""
    ids = filled(index_path)
    back_up(index_path, to)
    first, second = next((to / "segments").glob("*.bphs")), next((to / "segments").glob("*.rows"))
    _flip(first, 3)
    _flip(second, 4096 + 8)
    assert back_up(index_path, to, verify=True).copied == 2
    assert sound(to) == ids


def _flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


# -- neither changes the other ---------------------------------------------------------------------


def test_a_backup_outlives_its_index(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    with simindex.open(index_path, "w") as index:
        index.delete(ids=list(range(150)))
        index.commit()
        index.compact(full=True)
    assert sound(to) == ids
    with simindex.open(index_path, "n", overwrite=True):
        pass
    assert sound(to) == ids
    shutil.rmtree(index_path)
    assert sound(to) == ids


def test_who_writes_to_a_backup_does_not_change_the_index(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    with simindex.open(to, "w") as backup:
        backup.delete(ids=list(range(150)))
        backup.append(numbered(5000, 100))
        backup.commit()
        backup.compact(full=True)
    assert sound(index_path) == ids
    (to / "catalog" / "data.mdb").unlink()
    simindex.repair(to, apply=True)
    shutil.rmtree(to)
    assert sound(index_path) == ids


def test_space_of_shared_files_is_not_given_back(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large files that a merge replaces are emptied, unless they have another name."""
    monkeypatch.setattr(removal, "FREE_PAUSE_S", 0.0)
    ids = filled(index_path)
    back_up(index_path, to)
    for name in files_of(index_path):
        held = removal.unlink_held(index_path / "segments" / name)
        assert held is not None
        removal.free(held)
    assert sound(to) == ids


def test_a_file_that_is_shared_is_not_emptied(tmp_path: Path) -> None:
    """As a stray, which a later commit of the other index may name."""
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"rows")
    other.hardlink_to(file)
    removal.empty(file)
    assert other.read_bytes() == b"rows"
    other.unlink()
    removal.empty(file)
    assert file.read_bytes() == b""


def test_staged_directories_are_not_part_of_it(index_path: Path, to: Path) -> None:
    """A writer of the backup would take a file of that name for a stray of its own."""
    filled(index_path)
    with simindex.open(index_path, "w") as index:
        catalog = index._handle.catalog
        key = b"0000000000000001-00000000.rows" + bytes(6)
        catalog.stage(catalog.head_value(), [(key, b"page")])
        index.backup(to)
        assert catalog.staged("0000000000000001-00000000.rows")
    with simindex.open(to) as backup:
        assert not backup._handle.catalog.staged("0000000000000001-00000000.rows")


# -- beside others ---------------------------------------------------------------------------------


def test_files_that_merges_take_away_meanwhile(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try sees the commit after; files that it names, too, stay linked."""
    filled(index_path)
    real, merged = Files.take, False
    with simindex.open(index_path, "w") as index:
        def take(files: Files, names: Any) -> None:
            nonlocal merged
            if not merged:
                merged = True
                index.append(numbered(1000, 100))
                index.commit()
                index.compact(full=True)
            real(files, names)

        monkeypatch.setattr(Files, "take", take)
        index.backup(to)
        ids = ids_in(index)
    assert sound(to) == ids
    assert files_of(to) == files_of(index_path)


def test_copies_are_made_of_files_that_merges_have_taken_away(
    index_path: Path, to: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = filled(index_path)
    real = Files.copy
    with simindex.open(index_path, "w") as index:
        def copy(files: Files, progress: Any) -> None:
            index.append(numbered(1000, 100))
            index.commit()
            index.compact(full=True)
            index._handle.writing()._releases.wait()
            real(files, progress)

        monkeypatch.setattr(Files, "copy", copy)
        index.backup(to)
    assert sound(to) == ids


def test_a_missing_file_is_damage(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    grown(index_path, 1000)
    newest = max((index_path / "segments").glob("*.rows"))
    with simindex.open(index_path) as index:
        newest.unlink()
        with pytest.raises(CorruptFile, match=f"{newest.name}, which is missing") as raised:
            index.backup(to)
    assert "simindex repair" in (raised.value.remedy or "")
    assert sound(to) == ids
    assert inside(to.parent) == ["pages"]


@pytest.mark.parametrize(("suffix", "verify"), [(".rows", True), (".bphs", True), (".issl", True)])
def test_damage_within_a_file_is_found_by_verify(
    suffix: str, verify: bool, index_path: Path, to: Path
) -> None:
    filled(index_path)
    back_up(index_path, to)
    grown(index_path, 1000)
    newest = max((index_path / "segments").glob("*" + suffix))
    _flip(newest, 4096 + 8)
    before = files_of(to)
    with pytest.raises(CorruptFile) as raised:
        back_up(index_path, to, verify=verify)
    assert raised.value.data["path"] == str(newest)
    assert str(newest) in str(raised.value)
    assert files_of(to) == before
    assert inside(to.parent) == ["pages"]


@pytest.mark.parametrize("suffix", [".rows", ".bphs", ".issl", ".dead"])
@pytest.mark.parametrize("end", [3, -3])
def test_damaged_ends_are_found_without(
    suffix: str, end: int, index_path: Path, to: Path
) -> None:
    filled(index_path)
    with simindex.open(index_path) as index:
        newest = max((index_path / "segments").glob("*" + suffix))
        _flip(newest, end if end > 0 else newest.stat().st_size + end)
        with pytest.raises(CorruptFile) as raised:
            index.backup(to)
    assert newest.name in str(raised.value)
    assert inside(to.parent) == []


def test_a_damaged_catalog_is_not_backed_up(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    with simindex.open(index_path, "w") as index:
        environment = index._handle.environment
        with environment.transaction(write=True) as txn:
            key = next(iter(index._current().head.segments)).encode() + bytes(6)
            page = txn.get("headers", key)
            assert page is not None
            txn.put("headers", key, b"\1" + page[1:])
            txn.commit()
        with pytest.raises(CorruptFile, match="headers/"):
            index.backup(to)
    assert sound(to) == ids


def test_handles_on_the_older_backup_say_so(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    with simindex.open(to) as backup:
        ids = grown(index_path, 1000)
        back_up(index_path, to)
        with pytest.raises(ClosedIndex):
            backup.refresh()
    assert ids_in(to) == ids


def test_a_backup_of_a_backup(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    second = to.with_name("second")
    back_up(to, second)
    assert sound(second) == ids
    with pytest.raises(IndexExists, match="another copy"):
        back_up(index_path, second)


def test_a_child_of_a_fork_opens_the_index_itself(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    with simindex.open(index_path) as index:
        def in_the_child() -> None:
            with pytest.raises(ClosedIndex):
                index.backup(to)
            back_up(index_path, to)

        assert in_child(in_the_child) == 0
    assert sound(to) == ids


@pytest.mark.parametrize("mode", ["r", "w"])
def test_who_opens_a_backup_while_it_is_replaced_opens_the_new_one(
    mode: Any, index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that had the older catalog would take files of the newer one for strays."""
    filled(index_path)
    back_up(index_path, to)
    grown(index_path, 1000)
    with simindex.open(index_path, "w") as index:
        index.compact(full=True)  # so that the newer one has no file of the older one
        ids = ids_in(index)
    real = location.leased

    def leased(path: Path, **given: Any) -> Any:
        found = real(path, **given)
        monkeypatch.undo()
        back_up(index_path, to)
        return found

    monkeypatch.setattr(handle, "leased", leased)
    with simindex.open(to, mode) as backup:
        assert ids_in(backup) == ids
    assert sound(to) == ids


def test_a_backup_has_the_permissions_of_the_index(index_path: Path, to: Path) -> None:
    """Or those that somebody has given the older backup."""
    filled(index_path)
    index_path.chmod(0o750)
    back_up(index_path, to)
    assert stat.S_IMODE(to.stat().st_mode) == 0o750
    to.chmod(0o700)
    back_up(index_path, to)
    assert stat.S_IMODE(to.stat().st_mode) == 0o700


def test_what_somebody_puts_in_the_place_of_a_backup_costs_neither(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two renames, where names cannot be exchanged."""
    ids = filled(index_path)
    back_up(index_path, to)
    newer = grown(index_path, 1000)

    class Renaming(disk.System):
        def exchange(self, path: Path, other: Path) -> None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

        def rename(self, path: Path, target: Path) -> None:
            super().rename(path, target)
            if path == to:
                with simindex.open(to, "c"):
                    pass

    with monkeypatch.context() as patch:
        patch.setattr(disk, "system", Renaming())
        with pytest.raises(SimindexError):
            back_up(index_path, to)
    (beside,) = [path for path in to.parent.iterdir() if path != to]
    assert sound(beside / "old") == ids
    assert sound(beside / "new") == newer
    assert sound(to) == set()


# -- what is refused -------------------------------------------------------------------------------


def test_a_closed_index_refuses(index_path: Path, to: Path) -> None:
    filled(index_path)
    index = simindex.open(index_path)
    index.close()
    with pytest.raises(ClosedIndex):
        index.backup(to)
    assert inside(to.parent) == []


def test_a_replaced_index_refuses(index_path: Path, to: Path) -> None:
    filled(index_path)
    with simindex.open(index_path) as index:
        shutil.rmtree(index_path)
        with simindex.open(index_path, "c"):
            pass
        with pytest.raises(ClosedIndex):
            index.backup(to)
    assert inside(to.parent) == []


def test_a_removed_index_refuses(index_path: Path, to: Path) -> None:
    filled(index_path)
    with simindex.open(index_path) as index:
        shutil.rmtree(index_path)
        with pytest.raises(IndexNotFound):
            index.backup(to)
    assert inside(to.parent) == []


def test_a_backup_that_was_written_to_stays(index_path: Path, to: Path) -> None:
    filled(index_path)
    back_up(index_path, to)
    theirs = grown(to, 7000)
    grown(index_path, 1000)
    grown(index_path, 2000)
    with pytest.raises(IndexExists, match="was written to"):
        back_up(index_path, to)
    assert sound(to) == theirs


def test_a_backup_of_before_a_repair_stays(index_path: Path, to: Path) -> None:
    """The repaired index may have fewer rows."""
    ids = filled(index_path)
    back_up(index_path, to)
    max((index_path / "segments").glob("*.rows")).unlink()
    simindex.repair(index_path, apply=True)
    grown(index_path, 1000)
    with pytest.raises(IndexExists, match="repaired"):
        back_up(index_path, to)
    assert sound(to) == ids
    other = to.with_name("other")
    back_up(index_path, other)
    ids = grown(index_path, 2000)
    back_up(index_path, other)
    assert sound(other) == ids


def test_an_older_index_does_not_replace_a_newer_backup(index_path: Path, to: Path) -> None:
    filled(index_path)
    shutil.copytree(index_path, index_path.with_name("before"))
    ids = grown(index_path, 1000)
    back_up(index_path, to)
    with pytest.raises(IndexExists, match="older commit"):
        back_up(index_path.with_name("before"), to)
    assert sound(to) == ids


def test_a_plain_copy_of_an_index_is_no_backup(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    shutil.copytree(index_path, to)
    with pytest.raises(IndexExists, match="not made by a backup"):
        back_up(index_path, to)
    assert sound(to) == ids


def test_a_backup_that_is_written_is_not_replaced(index_path: Path, to: Path) -> None:
    filled(index_path)
    back_up(index_path, to)
    with simindex.open(to, "w"), pytest.raises(IndexLocked):
        back_up(index_path, to)
    back_up(index_path, to)


def test_a_damaged_backup_stays(index_path: Path, to: Path) -> None:
    filled(index_path)
    back_up(index_path, to)
    (to / "catalog" / "data.mdb").write_bytes(b"")
    with pytest.raises(CorruptFile, match="older backup"):
        back_up(index_path, to)
    assert inside(to.parent) == ["pages"]


def test_a_full_disk_leaves_the_older_backup(
    index_path: Path, to: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    newer = grown(index_path, 1000)

    def refuse(_fd: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(disk.system, "allocate", refuse)
        with pytest.raises(StorageFull):
            back_up(index_path, to)
    assert sound(to) == ids
    assert inside(to.parent) == ["pages"]
    back_up(index_path, to)
    assert sound(to) == newer


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_folder_that_nobody_may_write_to(
    code: int, index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(index_path)

    def refuse(path: Path) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(disk.system, "make_directory", refuse)
    with pytest.raises(StorageFailed, match="no backup can be made in") as raised:
        back_up(index_path, to)
    assert "permissions" in (raised.value.remedy or "")


@pytest.mark.parametrize("given", [3, None, "a\0b", b"x" * 300])
def test_what_is_no_path_is_refused(given: Any, index_path: Path) -> None:
    filled(index_path)
    with simindex.open(index_path) as index, pytest.raises((InvalidOption, IndexNotFound)):
        index.backup(given)


def test_two_backups_to_one_place(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second to come is refused, and the first one stays."""
    ids = filled(index_path)
    real: Callable[..., Any] = index_copy._Backup.make

    def make(backup: Any, *given: Any) -> Any:
        monkeypatch.undo()
        back_up(index_path, to)
        return real(backup, *given)

    monkeypatch.setattr(index_copy._Backup, "make", make)
    with pytest.raises(IndexExists, match="meanwhile"):
        back_up(index_path, to)
    assert sound(to) == ids
    assert inside(to.parent) == ["pages"]


def test_what_replaces_the_older_backup_meanwhile_stays(
    index_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has moved it away, and made an index there."""
    ids = filled(index_path)
    back_up(index_path, to)
    grown(index_path, 1000)
    real: Callable[..., Any] = index_copy._Backup.make

    def make(backup: Any, *given: Any) -> Any:
        to.rename(to.with_name("moved"))
        with simindex.open(to, "c") as other:
            other.append(numbered(7000, 3))
        return real(backup, *given)

    monkeypatch.setattr(index_copy._Backup, "make", make)
    with pytest.raises(IndexExists, match="when the backup began"):
        back_up(index_path, to)
    assert sound(to) == {7000, 7001, 7002}
    assert sound(to.with_name("moved")) == ids
    assert inside(to.parent) == ["moved", "pages"]


def test_progress_is_told(index_path: Path, to: Path, elsewhere: None) -> None:
    filled(index_path)
    told: list[tuple[int, int]] = []
    back_up(index_path, to, progress=lambda done, total: told.append((done, total)))
    size = sum(file.stat().st_size for file in (to / "segments").iterdir())
    assert told[-1] == (size, size)
    copied = len(told)
    back_up(index_path, to, verify=True, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (size, size)
    assert len(told) > copied


def test_structures_that_change_are_followed(index_path: Path, to: Path) -> None:
    ids = filled(index_path)
    back_up(index_path, to)
    with simindex.open(index_path, "w") as index:
        index.compact(structures=("psm",))
    back_up(index_path, to, verify=True)
    assert sound(to) == ids
    with simindex.open(to) as backup:
        assert tuple(backup.options.structures) == ("psm",) != OPTIONS.structures
