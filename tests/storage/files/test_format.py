"""FORMAT and the golden files: what is on disk today can be read for ever."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from pathlib import Path

import msgpack
import numpy as np
import pytest
from children import in_child
from siphash import key_id

import simindex
from simindex._kernels import _native
from simindex.errors import CorruptFile, FormatTooNew, FormatTooOld, IndexNotFound
from simindex.storage.files import locks, removal
from simindex.storage.files.format import FORMAT_DTYPE, read_format, write_format
from simindex.storage.location import file_system_kind
from simindex.storage.tables import segment as segment_module
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import SegmentFolder, SegmentRecord
from simindex.storage.tables.segment import SegmentWriter, open_segment

GOLDEN = Path(__file__).parents[2] / "golden"
"""Written once by version 1.0 of the format, by `write_golden` below; never written anew."""

UUID = bytes(range(100, 116))
FILE_ID = 0x8F1D_22C3_4A5B_6C7D
SECRET = bytes(range(16))
NAME = "0000000000000003-4a5b6c7d.rows"
KEYS = ["", "http://example.org/a", "é漢", "same", "same"]
FINGERPRINTS = np.array([[1, 9], [1, 2], [2**63, 0], [2**64 - 1, 5], [2**64 - 1, 5]], np.uint64)


def write_golden(directory: Path) -> SegmentRecord:
    """FORMAT and a segment with an identity that does not vary."""
    write_format(directory, UUID)
    keys = KeyHeap.of(KEYS)
    with SegmentWriter(
        directory, index=UUID, generation=3, horizon=2, bits=128, rows=5,
        key_bytes=len(keys.data), description=msgpack.packb({"bits": 128}),
    ) as writer:
        ids = np.array([key_id(key, SECRET) for key in KEYS], np.uint64)
        writer.write(FINGERPRINTS[:2], ids[:2], keys.slice(0, 2))
        writer.write(FINGERPRINTS[2:], ids[2:], keys.slice(2, 5))
        return writer.finish()


@pytest.fixture
def rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(segment_module.os, "urandom", lambda size: FILE_ID.to_bytes(size, "little"))
    record = write_golden(tmp_path)
    assert record.name == NAME
    return tmp_path


@pytest.mark.parametrize("name", ["FORMAT", NAME])
def test_the_writer_reproduces_the_golden_bytes(rewritten: Path, name: str) -> None:
    assert (rewritten / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_golden_format_is_read() -> None:
    assert read_format(GOLDEN) == UUID
    assert (GOLDEN / "FORMAT").stat().st_size == 64


def test_golden_segment_is_read() -> None:
    size = (GOLDEN / NAME).stat().st_size
    footer = int.from_bytes((GOLDEN / NAME).read_bytes()[-12:-8], "little")
    segment = open_segment(
        SegmentFolder(GOLDEN, UUID, bits=128, keyed=True),
        SegmentRecord(NAME, 5, 2, size, footer, 0), lambda: None,
    )
    assert segment.fingerprints.tolist() == FINGERPRINTS.tolist()
    assert segment.keys is not None
    assert segment.keys.decoded("str") == KEYS
    assert segment.ids.tolist() == segment.keys.hashes(SECRET)[:, 0].tolist()
    assert segment.directory.tolist() == [0, 5]
    assert segment.envelope.identity.generation == 3
    assert segment.envelope.damaged_chunks() == []


# -- FORMAT ---------------------------------------------------------------------------------------


@pytest.fixture
def formatted(tmp_path: Path) -> Path:
    shutil.copy(GOLDEN / "FORMAT", tmp_path)
    return tmp_path


def test_every_flipped_bit_of_format_is_noticed(formatted: Path) -> None:
    clean = (GOLDEN / "FORMAT").read_bytes()
    for bit in range(8 * len(clean)):
        data = bytearray(clean)
        data[bit // 8] ^= 1 << bit % 8
        (formatted / "FORMAT").write_bytes(data)
        with pytest.raises(CorruptFile):
            read_format(formatted)


@pytest.mark.parametrize("length", [*range(64), 65, 128])
def test_format_of_another_length_is_noticed(formatted: Path, length: int) -> None:
    os.truncate(formatted / "FORMAT", length)
    with pytest.raises(CorruptFile):
        read_format(formatted)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("major", 2, FormatTooNew), ("major", 65_535, FormatTooNew), ("major", 0, FormatTooOld),
        ("incompatible", 1 << 31, FormatTooNew),
    ],
)
def test_other_formats_are_refused_with_the_remedy(
    formatted: Path, field: str, value: int, error: type[CorruptFile]
) -> None:
    record = np.frombuffer((GOLDEN / "FORMAT").read_bytes(), FORMAT_DTYPE).copy()
    record[field] = value
    body = np.frombuffer(record.tobytes(), np.uint8)[:-4]
    record["checksum"] = _native.crc32c(body)
    (formatted / "FORMAT").write_bytes(record.tobytes())
    with pytest.raises(error, match="simindex"):
        read_format(formatted)


def test_newer_minor_is_read(formatted: Path) -> None:
    record = np.frombuffer((GOLDEN / "FORMAT").read_bytes(), FORMAT_DTYPE).copy()
    record["minor"], record["compatible"] = 7, 3
    record["checksum"] = _native.crc32c(np.frombuffer(record.tobytes(), np.uint8)[:-4])
    (formatted / "FORMAT").write_bytes(record.tobytes())
    assert read_format(formatted) == UUID


@pytest.mark.parametrize("kind", ["directory", "fifo", "socket", "link"])
def test_format_that_is_no_plain_file_is_damage(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "FORMAT"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    else:
        path.symlink_to(GOLDEN / "FORMAT")
    with pytest.raises(CorruptFile):
        read_format(tmp_path)


def test_directory_without_format_is_no_index(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", GOLDEN / "FORMAT"):
        with pytest.raises(IndexNotFound):
            read_format(path)


def test_file_system_is_named(tmp_path: Path) -> None:
    assert file_system_kind(Path("/proc")) == "proc"
    assert file_system_kind(tmp_path / "none") == ""


# -- a whole index --------------------------------------------------------------------------------


def write_golden_index(path: Path) -> None:
    """A keyed index with a segment, a pending run, tombstones and a sample of weights."""
    options = simindex.IndexOptions(batch_rows=40, keys=True, min_merge=0, reservoir_rows=4)
    values = np.arange(12, dtype=np.uint64) << np.uint64(60) | np.arange(12, dtype=np.uint64)
    weights = np.linspace(-1, 1, 12 * 64, dtype=np.float32).reshape(12, 64)
    with simindex.open(path, "c", options=options) as index:
        index.append(
            simindex.Batch(values[:9], keys=[f"k{i}" for i in range(9)], weights=weights[:9])
        )
        index.commit()
        index.append(simindex.Batch(values[9:], keys=["k9", "k10", "k11"]))
        index.delete(keys=["k2"])


@pytest.mark.parametrize("mode", ["r", "w"])
def test_golden_index_is_read_and_written_further(tmp_path: Path, mode: str) -> None:
    path = Path(shutil.copytree(GOLDEN / "index-1.0", tmp_path / "index"))
    with simindex.open(path, mode) as index:  # type: ignore[arg-type]
        queries = [3, 3 << 60 | 3, 9 << 60 | 9]
        found = index.query(np.array(queries, np.uint64), h=2)
        assert {(m.query, m.key, m.distance) for m in found} == {
            (place, f"k{i}", distance)
            for place, query in enumerate(queries)
            for i in range(12)
            if (distance := (query ^ (i << 60 | i)).bit_count()) <= 2 and i != 2
        }
        assert index.check() == []
        assert len(index) == 11
        stats = index.stats()
        assert (stats.segments, stats.pending_rows, stats.tombstones) == (1, 3, 1)
        assert stats.sample_rows == 4
        if mode == "w":
            index.append(simindex.Batch(np.array([77], np.uint64), keys=["new"]))
            index.compact(full=True)
            assert len(index) == 12
            assert index.check() == []


def test_folder_that_another_run_put_in_the_place_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the opening and the lock."""
    folder = tmp_path / "folder"
    folder.mkdir()
    real = fcntl.flock

    def flock(fd: int, how: int) -> None:
        folder.rmdir()
        folder.mkdir()
        real(fd, how)

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    assert locks.hold(folder) is None


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_child_gives_space_back_while_a_thread_of_its_parent_did(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"some bytes")

    def child() -> None:
        file = removal.unlink_held(path)
        assert file is not None
        removal.free(file)

    with removal._freeing:
        assert in_child(child) == 0
