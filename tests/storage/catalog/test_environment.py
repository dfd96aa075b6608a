"""One LMDB environment a process, whatever handles come and go, whatever the files look like."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import lmdb
import numpy as np
import pytest
from children import in_child

import simindex
from simindex.errors import ClosedIndex, CorruptFile, IndexLocked, StorageFull, UnsupportedStorage
from simindex.storage.catalog import environment as module
from simindex.storage.catalog import lmdb_files, registry
from simindex.storage.catalog.environment import Environment
from simindex.storage.catalog.pages import META, Meta, preflight
from simindex.storage.catalog.registry import acquire

# Forks are what is tested here; from Python 3.12 on they warn of the threads that numpy keeps.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

ROWS = np.arange(30, dtype=np.uint64)


@pytest.fixture
def filled(index_path: Path) -> Path:
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    return index_path


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Every test ends as it began: no environment, no descriptor more."""
    gc.collect()  # what other tests left goes now, and not meanwhile
    before, known = len(list(Path("/proc/self/fd").iterdir())), dict(registry._registry)
    yield
    assert registry._registry == known
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# -- sharing --------------------------------------------------------------------------------------


def test_handles_of_one_process_share_an_environment(filled: Path) -> None:
    before = len(registry._registry)
    with simindex.open(filled) as first, simindex.open(filled) as second:
        assert first._handle.environment is second._handle.environment
        assert len(registry._registry) == before + 1


def test_path_through_a_symlink_is_the_same_index(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(filled)
    with simindex.open(filled, "w") as writer, simindex.open(tmp_path / "link") as reader:
        assert writer._handle.environment is reader._handle.environment
        writer.append(ROWS)
        writer.commit()
        assert len(reader) == 60
        with pytest.raises(IndexLocked):
            simindex.open(tmp_path / "link", "w")


def test_reader_becomes_a_neighbour_of_a_later_writer(filled: Path) -> None:
    with simindex.open(filled) as reader:
        assert len(reader) == 30
        with simindex.open(filled, "w") as writer:
            writer.append(ROWS)
            writer.commit()
            assert len(reader) == 60
        assert len(reader) == 60


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_handles_close_in_any_order(filled: Path, order: tuple[int, ...]) -> None:
    handles = [simindex.open(filled), simindex.open(filled, "w"), simindex.open(filled)]
    for count, place in enumerate(order):
        handles[place].close()
        handles[place].close()
        for rest in order[count + 1 :]:
            assert len(handles[rest]) == 30
        with pytest.raises(ClosedIndex):
            len(handles[place])


def test_second_writer_of_a_process_is_refused_and_leaves_the_first_alone(filled: Path) -> None:
    with simindex.open(filled, "w") as writer:
        with pytest.raises(IndexLocked, match=str(os.getpid())) as caught:
            simindex.open(filled, "w")
        assert str(os.getpid()) in caught.value.data["holder"]
        writer.append(ROWS)
    with simindex.open(filled, "w") as writer:
        assert len(writer) == 60


def test_threads_open_and_close_side_by_side(filled: Path) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                with simindex.open(filled) as reader:
                    assert len(reader.query(ROWS, h=0)) == 30
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_transaction_that_is_not_committed_changes_nothing(filled: Path) -> None:
    lease = acquire(filled / "catalog", writable=True)
    environment = lease.environment
    with environment.transaction(write=True) as txn:
        txn.put("meta", b"x", b"1")
    with pytest.raises(KeyError), environment.transaction(write=True) as txn:
        txn.put("meta", b"x", b"1")
        raise KeyError
    with environment.transaction() as txn:
        assert txn.get("meta", b"x") is None
    lease.release()


def test_full_table_of_readers_is_cleared_of_the_dead_once_then_typed(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = acquire(filled / "catalog")
    environment = lease.environment
    real, calls = environment._env, []

    class Full:
        failures = 1

        def begin(self, **options: object) -> object:
            if self.failures:
                self.failures -= 1
                raise lmdb.ReadersFullError("full")
            return real.begin(**options)

        def reader_check(self) -> None:
            calls.append("check")

    full = Full()
    monkeypatch.setattr(environment, "_env", full)
    with environment.transaction() as txn:
        assert txn.get("head", b"head")
    assert calls == ["check"]
    full.failures = 2
    with pytest.raises(UnsupportedStorage, match="read"), environment.transaction():
        pass
    monkeypatch.undo()
    lease.release()


@pytest.mark.slow
def test_killed_reader_does_not_make_the_catalog_grow_for_ever(index_path: Path) -> None:
    """Its claim on old pages is found dead when the writer next begins."""
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    code = f"""
import os, simindex
index = simindex.open({str(index_path)!r})
with index._handle.catalog.reading():
    os.kill(os.getpid(), 9)
"""
    with simindex.open(index_path, "w") as index:
        subprocess.run([sys.executable, "-c", code], check=False)
        assert index._handle.environment._env.readers().count("\n") > 1
        index.append(ROWS)
        index.commit()
        assert "no active" in index._handle.environment._env.readers()


# -- forks and pickles ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "w"])
def test_child_of_a_fork_is_told_and_can_open_its_own(filled: Path, mode: str) -> None:
    index = simindex.open(filled, mode)  # type: ignore[arg-type]

    def use() -> None:
        for call in (
            lambda: len(index), index.check, index.stats, index.refresh,
            lambda: index.query(ROWS), lambda: index.append(ROWS), index.commit,
        ):
            with pytest.raises(ClosedIndex, match="fork"):
                call()
        with simindex.open(filled) as own:
            assert len(own) == 30
        index.close()

    assert in_child(use) == 0
    assert len(index) == 30
    if mode == "w":
        index.append(ROWS)
        index.commit()
        assert len(index) == 60
    index.close()


def test_child_does_not_keep_the_writers_lock_alive(filled: Path) -> None:
    index = simindex.open(filled, "w")
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writable)
        os.read(readable, 1)  # until the parent is done
        os._exit(0)
    os.close(readable)
    index.close()
    try:
        simindex.open(filled, "w").close()
    finally:
        os.close(writable)
        os.waitpid(pid, 0)


def test_child_can_write_once_the_parent_has_closed(filled: Path) -> None:
    simindex.open(filled, "w").close()

    def write() -> None:
        with simindex.open(filled, "w") as own:
            own.append(ROWS)

    assert in_child(write) == 0
    with simindex.open(filled) as reader:
        assert len(reader) == 60


def test_children_leave_no_readers_behind(filled: Path) -> None:
    with simindex.open(filled) as reader:
        for _ in range(5):
            assert in_child(lambda: None) == 0
        assert len(reader) == 30
        assert reader._handle.environment._env.readers().count("\n") <= 2


def test_handle_pickles_as_a_reader_of_its_path(filled: Path) -> None:
    with simindex.open(filled, "w") as writer:
        copy = pickle.loads(pickle.dumps(writer))  # noqa: S301
        assert (copy.mode, copy.path, len(copy)) == ("r", filled, 30)
        copy.close()


# -- damaged files --------------------------------------------------------------------------------

CHILD = """
import sys, simindex
from simindex.errors import CorruptFile
for path in sys.stdin.read().split():
    for mode in "rw":
        try:
            with simindex.open(path, mode) as index:
                print(path, "open", len(index))
        except CorruptFile:
            print(path, "corrupt")
"""


def end_of_use(data: Path) -> int:
    """Where the last page ends that the file's meta pages count; what lies behind is empty."""
    raw = data.read_bytes()
    starts = {page: raw[4096 * page :][: META.itemsize] for page in (0, 1)}
    metas = [Meta.read(start, page) for page, start in starts.items()]
    return max((meta.last_page + 1) * meta.page_bytes for meta in metas if meta is not None)


@pytest.mark.slow
def test_cut_catalog_is_an_error_and_never_a_signal(filled: Path, tmp_path: Path) -> None:
    """In a child process, since LMDB would end in SIGBUS."""
    data = filled / "catalog" / "data.mdb"
    size = end_of_use(data)
    os.truncate(data, size)
    lengths = sorted({0, 1, 100, 151, 152, 4095, 4096, 4247, 8191, 8192, size - 1, size - 4096,
                      *range(0, size, max(1, size // 25))} - {size})
    paths = []
    for length in lengths:
        copy = tmp_path / f"cut{length}"
        shutil.copytree(filled, copy)
        os.truncate(copy / "catalog" / "data.mdb", length)
        paths.append(copy)
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input="\n".join(map(str, paths)), capture_output=True,
        text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{path} corrupt" for path in paths for _ in "rw"]


@pytest.mark.slow
def test_random_damage_of_the_catalog_is_an_error_or_read_by_nobody(
    filled: Path, tmp_path: Path
) -> None:
    """The child opens and counts; a wrong count, a signal or another error would show."""
    rng = np.random.default_rng(8)
    data_file = filled / "catalog" / "data.mdb"
    clean = data_file.read_bytes()[: end_of_use(data_file)]
    paths = []
    for number in range(60):
        copy = tmp_path / f"flip{number}"
        shutil.copytree(filled, copy)
        data = bytearray(clean)
        # Not the first bytes of a page: what LMDB makes of those is its own matter.
        at = int(rng.integers(0, len(data) // 4096)) * 4096 + int(rng.integers(200, 4096))
        data[at] ^= 1 << int(rng.integers(0, 8))
        (copy / "catalog" / "data.mdb").write_bytes(data)
        paths.append(copy)
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input="\n".join(map(str, paths)), capture_output=True,
        text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    assert set(seen) == {"corrupt", "open 30"}


def test_missing_and_linked_catalogs_are_damage(filled: Path, tmp_path: Path) -> None:
    data = filled / "catalog" / "data.mdb"
    data.rename(tmp_path / "moved")
    for mode in ("r", "w"):
        with pytest.raises(CorruptFile, match="missing"):
            simindex.open(filled, mode)  # type: ignore[arg-type]
        assert not data.exists(), "an empty catalog must not take its place"
    data.symlink_to(tmp_path / "moved")
    with pytest.raises(CorruptFile, match="link"):
        simindex.open(filled)


def test_catalog_of_something_else_is_damage(filled: Path) -> None:
    data = filled / "catalog" / "data.mdb"
    data.write_bytes(b"not a database, but long enough. " * 1000)
    with pytest.raises(CorruptFile, match="no valid meta page"):
        preflight(data)


def test_preflight_looks_at_the_length_last(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer makes the file longer, then says so in a meta page: never the other way round."""
    order: list[str] = []
    real_fstat, real_pread = os.fstat, os.pread
    monkeypatch.setattr(module.os, "fstat", lambda fd: (order.append("size"), real_fstat(fd))[1])
    monkeypatch.setattr(
        module.os, "pread", lambda *args: (order.append("meta"), real_pread(*args))[1]
    )
    preflight(filled / "catalog" / "data.mdb")
    assert order == ["meta", "meta", "size"]


def test_one_damaged_meta_page_is_damage(filled: Path) -> None:
    """LMDB refuses the file, whichever of the two it is."""
    data = filled / "catalog" / "data.mdb"
    with data.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))
    with pytest.raises(CorruptFile, match="meta page 1 is not valid"):
        preflight(data)
    with pytest.raises(lmdb.InvalidError):
        lmdb.open(str(filled / "catalog"), readonly=True, lock=False)


def grown(path: Path) -> tuple[Path, bytes, int]:
    """(file, the bytes before its last commit, the meta page of that one), of an index whose last
    commit made the file longer, and has a number of which one bit makes two less."""
    data = path / "catalog" / "data.mdb"
    with simindex.open(path, "w") as index:
        while True:
            before = data.read_bytes()
            index.append(np.arange(500, dtype=np.uint64))
            index.commit()
            metas = [np.frombuffer(data.read_bytes(), META, 1, at)[0] for at in (0, 4096)]
            page = int(metas[1]["commit"] > metas[0]["commit"])
            if metas[page]["commit"] & 2 and metas[page]["last"] > metas[1 - page]["last"]:
                return data, before, page


def test_last_commit_does_not_pass_for_the_one_before_the_last(filled: Path) -> None:
    data, _, page = grown(filled)
    with data.open("r+b") as file:
        at = 4096 * page + META.itemsize - 8
        number = np.frombuffer(data.read_bytes(), "<u8", 1, at)[0]
        os.pwrite(file.fileno(), int(number ^ 2).to_bytes(8, "little"), at)
    with pytest.raises(CorruptFile, match="passes for the one before the last"):
        preflight(data)


def test_meta_page_that_could_not_be_written_is_no_damage(filled: Path) -> None:
    """LMDB leaves it with its new roots, and puts back the number and the last page it had."""
    data, before, page = grown(filled)
    with simindex.open(filled) as index:
        rows = len(index)
    file = bytearray(data.read_bytes())
    at = 4096 * page + META.itemsize - 16
    assert file[at - 96 : at] != before[at - 96 : at]
    file[at : at + 16] = before[at : at + 16]
    data.write_bytes(file)
    preflight(data)
    with simindex.open(filled) as index:
        assert len(index) == rows - 500


# -- disks and rights -----------------------------------------------------------------------------


def test_lock_file_has_its_space_before_it_is_mapped(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = filled / "catalog" / "lock.mdb"
    lock.unlink()

    def full(fd: int, offset: int, size: int) -> None:
        raise OSError(28, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "posix_fallocate", full)
        for mode in ("r", "w"):
            with pytest.raises(StorageFull):
                simindex.open(filled, mode)  # type: ignore[arg-type]
            assert not lock.exists()
    with simindex.open(filled) as reader:
        assert len(reader) == 30
    assert lock.stat().st_blocks * 512 >= lock.stat().st_size >= 64 * lmdb_files.MAX_READERS


def test_existing_lock_file_is_never_opened(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening and closing it would drop LMDB's locks in this process."""
    real = os.open
    opened: list[str] = []

    def note(path: os.PathLike[str], flags: int, *rest: int, **named: object) -> int:
        fd = real(path, flags, *rest, **named)  # type: ignore[arg-type]
        opened.append(Path(path).name)
        return fd

    monkeypatch.setattr(os, "open", note)
    with simindex.open(filled, "w") as index:
        index.append(ROWS)
        index.commit()
        assert index.check() == []
    assert "lock.mdb" not in opened
    assert "LOCK" in opened


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_index_that_cannot_be_written_is_read(filled: Path) -> None:
    for path in (filled, filled / "catalog", filled / "segments"):
        path.chmod(0o555)
    try:
        with simindex.open(filled) as reader:
            assert len(reader) == 30
    finally:
        for path in (filled, filled / "catalog", filled / "segments"):
            path.chmod(0o755)


def test_reader_without_rights_takes_no_locks(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[dict[str, object]] = []
    real = lmdb.open
    monkeypatch.setattr(module.os, "access", lambda path, how: False)
    monkeypatch.setattr(
        module.lmdb, "open", lambda path, **given: (options.append(given), real(path, **given))[1]
    )
    (filled / "catalog" / "lock.mdb").unlink()
    with simindex.open(filled) as reader:
        assert len(reader) == 30
    assert options[0]["lock"] is False
    assert options[0]["readonly"] is True
    assert not (filled / "catalog" / "lock.mdb").exists()


def test_limited_address_space_is_typed(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, **options: object) -> None:
        raise lmdb.MemoryError("Cannot allocate memory")

    monkeypatch.setattr(module.lmdb, "open", fail)
    with pytest.raises(UnsupportedStorage, match="virtual memory"):
        simindex.open(filled)


def test_environment_is_the_old_engine_and_never_writes_through_the_map(filled: Path) -> None:
    environment = Environment(filled / "catalog", writable=True, create=False)
    flags = environment._env.flags()
    assert flags["writemap"] is False
    assert flags["sync"] is flags["metasync"] is True
    environment.close()
    data = (filled / "catalog" / "data.mdb").read_bytes()[:4096]
    assert int.from_bytes(data[20:24], "little") == 1


def test_writer_that_is_refused_leaves_the_environment_to_its_reader(
    filled: Path, tmp_path: Path
) -> None:
    with simindex.open(filled) as reader:
        held = reader._handle.environment
        os.link(filled / "catalog" / "data.mdb", tmp_path / "second")
        with pytest.raises(CorruptFile, match="second name"):
            simindex.open(filled, "w")
        assert len(reader) == 30
    assert held.closed


def test_environment_that_could_not_be_opened_anew_is_tried_again(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed commit; handles that are opened meanwhile share it."""

    def refuse(*arguments: object, **named: object) -> None:
        raise lmdb.MemoryError("none")

    with simindex.open(filled) as reader:
        reader._handle.environment._broken = True
        with monkeypatch.context() as patch:
            patch.setattr(module.lmdb, "open", refuse)
            with pytest.raises(UnsupportedStorage):
                reader.refresh()
        with simindex.open(filled, "w") as writer:
            assert writer._handle.environment is reader._handle.environment
            reader.refresh()
            assert len(reader) == len(writer) == 30
