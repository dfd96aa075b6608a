"""A segment is the file the catalog names, of the index that names it, or it is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import NAME, SegmentFolder, SegmentRecord, generation_of
from simindex.storage.tables.segment import Segment, SegmentWriter, open_segment
from simindex.storage.tables.table import sort_table

INDEX = bytes(16)


def write(
    directory: Path, rows: int, *, words: int = 1, keys: list[str] | None = None,
    index: bytes = INDEX, generation: int = 1, seed: int = 0,
) -> SegmentRecord:
    rng = np.random.default_rng(seed)
    table = sort_table(
        "", rng.integers(0, 2**64, (rows, words), dtype=np.uint64),
        np.arange(rows, dtype=np.uint64), None if keys is None else KeyHeap.of(keys), horizon=1,
    )
    with SegmentWriter(
        directory, index=index, generation=generation, horizon=1, bits=64 * words, rows=rows,
        key_bytes=None if table.keys is None else len(table.keys.data), description=b"\x80",
    ) as writer:
        writer.write(table.fingerprints, table.ids, table.keys)
        return writer.finish()


def opened(
    directory: Path, record: SegmentRecord, bits: int = 64, *, keyed: bool = False
) -> Segment:
    return open_segment(SegmentFolder(directory, INDEX, bits, keyed), record, lambda: None)


@pytest.mark.parametrize("rows", [0, 1, 17, 3000])
@pytest.mark.parametrize("words", [1, 2, 64])
@pytest.mark.parametrize("keyed", [None, "keys", "empty"])
def test_written_rows_are_opened(tmp_path: Path, rows: int, words: int, keyed: str | None) -> None:
    named = {"keys": [f"{i}" * (i % 4) for i in range(rows)], "empty": [""] * rows}
    keys = None if keyed is None else named[keyed]
    record = write(tmp_path, rows, words=words, keys=keys)
    assert NAME.fullmatch(record.name)
    assert generation_of(record.name) == 1
    segment = opened(tmp_path, record, 64 * words, keyed=keys is not None)
    assert segment.fingerprints.shape == (rows, words)
    assert (np.diff(segment.fingerprints[:, 0].astype(object)) >= 0).all()
    assert sorted(segment.ids.tolist()) == list(range(rows))
    assert segment.directory[-1] == rows
    if keys is not None:
        assert segment.keys is not None
        assert segment.keys.decoded("str") == [keys[i] for i in segment.ids.tolist()]
    for column in (segment.fingerprints, segment.ids):
        assert not column.flags.writeable


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 99}, {"horizon": 0}, {"file_bytes": 1}, {"footer_checksum": 0},
    ],
    ids=str,
)
def test_record_that_disagrees_with_its_file_is_refused(
    tmp_path: Path, change: dict[str, int]
) -> None:
    record = write(tmp_path, 100)
    with pytest.raises(CorruptFile, match="not the file that the catalog names"):
        opened(tmp_path, replace(record, **change))


def test_segment_of_another_index_or_width_is_refused(tmp_path: Path) -> None:
    record = write(tmp_path, 100, index=b"x" * 16)
    with pytest.raises(CorruptFile, match="not the file that the catalog names"):
        opened(tmp_path, record)
    record = write(tmp_path, 100, words=2)
    with pytest.raises(CorruptFile, match="not the file that the catalog names"):
        opened(tmp_path, record, 64)


@pytest.mark.parametrize("name", ["../x.rows", "x", "", "0000000000000001-00000001.rows/.."])
def test_name_that_leaves_the_directory_is_refused(tmp_path: Path, name: str) -> None:
    record = replace(write(tmp_path, 5), name=name)
    with pytest.raises(CorruptFile):
        opened(tmp_path, record)


def test_missing_file_is_told_apart_from_a_damaged_one(tmp_path: Path) -> None:
    record = write(tmp_path, 5)
    (tmp_path / record.name).unlink()
    with pytest.raises(FileNotFoundError):
        opened(tmp_path, record)


def test_swapped_segments_are_refused(index_path: Path) -> None:
    """Both are whole, and of one size: only their identities are wrong."""
    options = IndexOptions(batch_rows=8, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        for start in (0, 100):
            index.append(np.arange(start, start + 8, dtype=np.uint64))
            index.commit()
    a, b = sorted((index_path / "segments").glob("*.rows"))
    assert a.stat().st_size == b.stat().st_size
    kept = index_path.parent / "kept"
    a.rename(kept)
    b.rename(a)
    kept.rename(b)
    for mode in ("r", "w"):
        with pytest.raises(CorruptFile, match="not the file that the catalog names"):
            simindex.open(index_path, mode)  # type: ignore[arg-type]


def test_segment_of_a_copied_index_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with simindex.open(tmp_path / name, "c", options=IndexOptions(batch_rows=8)) as index:
            index.append(np.arange(8, dtype=np.uint64))
    mine, = (tmp_path / "one" / "segments").glob("*.rows")
    other, = (tmp_path / "two" / "segments").glob("*.rows")
    shutil.copy(other, mine)
    with pytest.raises(CorruptFile, match="not the file that the catalog names"):
        simindex.open(tmp_path / "one")


def test_older_catalog_than_files_is_refused(tmp_path: Path) -> None:
    """An old `data.mdb` put back would make live files look like strays: none is removed."""
    path = tmp_path / "index"
    with simindex.open(path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        index.append(np.arange(8, dtype=np.uint64))
    shutil.copy(path / "catalog" / "data.mdb", tmp_path / "old")
    with simindex.open(path, "w") as index:
        for start in (100, 200, 300):
            index.append(np.arange(start, start + 8, dtype=np.uint64))
            index.commit()
    shutil.copy(tmp_path / "old", path / "catalog" / "data.mdb")
    files = sorted((path / "segments").iterdir())
    for mode in ("w", "r"):
        with pytest.raises(CorruptFile, match="newer than the catalog"):
            simindex.open(path, mode)
    assert sorted((path / "segments").iterdir()) == files


@pytest.mark.parametrize("keyed", [False, True])
def test_damaged_rows_are_found_by_check_and_stop_a_merge(index_path: Path, keyed: bool) -> None:
    rng = np.random.default_rng(5)
    options = IndexOptions(batch_rows=64, min_merge=0, keys=keyed)
    with simindex.open(index_path, "c", options=options) as index:
        for start in (0, 64):
            keys = [f"k{i}" for i in range(start, start + 64)] if keyed else None
            index.append(
                Batch(rng.integers(0, 2**64, 64, dtype=np.uint64), keys=keys)
            )
            index.commit()
    file = min((index_path / "segments").glob("*.rows"))
    clean = file.read_bytes()
    for offset in (4096 + 3, 8192 + 100):
        torn = bytearray(clean)
        torn[offset] ^= 16
        file.write_bytes(torn)
        with simindex.open(index_path, "w") as index:
            findings = index.check()
            assert [finding.severity for finding in findings] == ["error"]
            assert str(file) == findings[0].path
            with pytest.raises(CorruptFile):
                index.compact(full=True)
            assert index.stats().segments == 2
        file.write_bytes(clean)
    with simindex.open(index_path, "w") as index:
        assert index.check() == []
        index.compact(full=True)
        assert len(index) == 128


def test_bytes_that_belong_to_no_key_are_refused(tmp_path: Path) -> None:
    """A merge would count them, and find them nowhere."""
    heap = KeyHeap.of(["a", "b"])
    with SegmentWriter(
        tmp_path, index=INDEX, generation=1, horizon=1, bits=64, rows=2, key_bytes=5,
        description=b"\x80",
    ) as writer:
        writer.write(np.arange(2, dtype=np.uint64)[:, None], heap.hashes(bytes(16))[:, 0], heap)
        writer._envelope.write(4, np.zeros(3, np.uint8))
        record = writer.finish()
    with pytest.raises(CorruptFile, match="do not fit each other"):
        opened(tmp_path, record, keyed=True)


@pytest.mark.parametrize("keyed", [False, True])
def test_segment_with_keys_is_one_of_an_index_with_keys(tmp_path: Path, keyed: bool) -> None:
    record = write(tmp_path, 2, keys=["a", "b"] if keyed else None)
    opened(tmp_path, record, keyed=keyed)
    with pytest.raises(CorruptFile, match="keys"):
        opened(tmp_path, record, keyed=not keyed)
