"""Arrays on a map are verified as far as they are read; arrays in memory pass through."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import damaged
import numpy as np
import pytest

from simindex.errors import CorruptFile
from simindex.storage.files.checksums import Verify, map_of, section_of, verified, verified_at
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import CHUNK_BYTES, Envelope, Identity, open_envelope
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec, reads_back
from simindex.storage.tables.keys import KeyHeap

ROWS = 20_000
"""Of 16 bytes and of 8: five chunks and three."""


def write(directory: Path) -> Path:
    identity = Identity(bytes(16), 3, 1, 1, ROWS, 128)
    specs = [SectionSpec(1, 16, ROWS), SectionSpec(2, 8, ROWS)]
    with NewFile(directory) as file:
        writer = EnvelopeWriter(file, identity, specs)
        writer.write(0, np.arange(2 * ROWS, dtype=np.uint64))
        writer.write(1, np.arange(ROWS, dtype=np.uint64))
        writer.finish()
        return file.publish("a.rows", partial(reads_back, name="a.rows"))


def opened(path: Path, verify: Verify = "lazy") -> tuple[Envelope, list[np.ndarray]]:
    envelope = open_envelope(path, verify=verify, remedy="do this")
    rows, ids = envelope.section(1, "V16"), envelope.section(2, "<u8")
    assert rows is not None and ids is not None
    return envelope, [rows.view("<u8").reshape(-1, 2), ids]


def left(*arrays: np.ndarray) -> list[int]:
    found = [section_of(array) for array in arrays]
    return [section.left for section in found if section is not None]


def test_an_array_is_verified_as_far_as_it_reaches(tmp_path: Path) -> None:
    _, (rows, ids) = opened(write(tmp_path))
    assert left(rows, ids) == [5, 3]
    some = rows[:10]
    assert verified(some) is some
    assert left(rows, ids) == [4, 3]
    verified(rows[5000:5001, 1])  # a column's rows
    assert left(rows, ids) == [3, 3]
    verified(rows[4000:4200, 0])  # 64,000 to 67,200: both chunks are known by now
    assert left(rows, ids) == [3, 3]
    verified(ids, threads=3)
    assert left(rows, ids) == [3, 0]
    verified(rows[0:0])
    verified(rows[::2])
    assert left(rows, ids) == [0, 0]


def test_rows_are_verified_one_by_one(tmp_path: Path) -> None:
    _, (rows, ids) = opened(write(tmp_path))
    assert verified_at(ids, np.array([19_999, 0, 1])).tolist() == [19_999, 0, 1]
    assert verified_at(rows, np.array([8192], np.uint32)).tolist() == [[16_384, 16_385]]
    assert left(rows, ids) == [4, 1]
    assert verified_at(ids[9000:], np.array([5])).tolist() == [9005]
    assert left(rows, ids) == [4, 0]
    assert verified_at(rows[:100], np.empty(0, np.int64)).shape == (0, 2)


def test_what_is_in_memory_has_no_section(tmp_path: Path) -> None:
    _, (rows, _) = opened(write(tmp_path))
    for array in (np.arange(5), rows.copy(), np.empty((0, 2), np.uint64)):
        assert map_of(array) is None and section_of(array) is None
        assert verified(array) is array
    heap = KeyHeap.of(["a", "b"])
    assert heap.take(np.array([1])).decoded("str") == ["b"]


def test_keys_are_verified_as_far_as_they_are_taken(tmp_path: Path) -> None:
    """Also where nothing else has read them before: no row of theirs is deleted."""
    keys = KeyHeap.of([f"{number:09d}" for number in range(ROWS)])  # two chunks and more of each
    with NewFile(tmp_path) as file:
        writer = EnvelopeWriter(
            file, Identity(bytes(16), 3, 1, 1, ROWS, 64),
            [SectionSpec(3, 8, ROWS + 1), SectionSpec(4, 1, 9 * ROWS)],
        )
        writer.write(0, keys.offsets)
        writer.write(1, keys.data)
        writer.finish()
        path = file.publish("a.rows", partial(reads_back, name="a.rows"))
    (_, offsets_at, _), (_, data_at, _) = damaged.sections(path)

    def heap() -> KeyHeap:
        envelope = open_envelope(path)
        offsets, data = envelope.section(3, "<i8"), envelope.section(4, "u1")
        assert offsets is not None and data is not None
        return KeyHeap(offsets, data)

    with damaged.flipped(path, data_at + 70_000):  # of row 7777
        assert heap().slice(0, 7000).decoded("str")[-1] == "000006999"
        assert heap().take(np.array([3, 19_999])).decoded("str") == ["000000003", "000019999"]
        for wrong in (lambda: heap().slice(7700, 7800), lambda: heap().take(np.array([7777]))):
            with pytest.raises(CorruptFile):
                wrong()
    with damaged.flipped(path, offsets_at + 8 * 100):
        for wrong in (lambda: heap().slice(90, 110), lambda: heap().take(np.array([7777]))):
            with pytest.raises(CorruptFile):
                wrong()
        assert equal(heap(), 19_999, "000019999")  # another chunk of offsets
    for damage, row in ((data_at + 70_000, 7777), (offsets_at + 8 * 100, 100)):
        with damaged.flipped(path, damage):
            assert equal(heap(), 19_999, "000019999")
            assert not equal(heap(), 19_998, "000019999")
            with pytest.raises(CorruptFile):
                equal(heap(), row, f"{row:09d}")


def equal(heap: KeyHeap, row: int, key: str) -> bool:
    other = KeyHeap.of([key])
    return bool(heap.equal(np.array([row]), other, np.zeros(1, np.int64))[0])


def test_never_has_no_sections_and_open_has_none_left(tmp_path: Path) -> None:
    path = write(tmp_path)
    _, arrays = opened(path, "never")
    assert left(*arrays) == []
    _, arrays = opened(path, "open")
    assert left(*arrays) == [0, 0]
    with damaged.flipped(path, path.stat().st_size // 2):
        _, arrays = opened(path)
        with pytest.raises(CorruptFile, match="do this"):
            opened(path, "open")
        verified(opened(path, "never")[1][0])


def test_a_file_cut_short_while_mapped_is_an_error(tmp_path: Path) -> None:
    """Not a signal, where the system can tell beforehand: Linux from 5.14 on."""
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if os.uname().sysname != "Linux" or release < (5, 14):
        pytest.skip("1 test: reading a page that is gone ends the process here")
    path = write(tmp_path)
    _, (rows, ids) = opened(path)
    os.truncate(path, 4096 + CHUNK_BYTES)
    assert verified(rows[:4096])[0, 0] == 0
    for array in (rows[4096:4097], ids[:1], ids):
        with pytest.raises(CorruptFile, match="cut short") as caught:
            verified(array)
        assert caught.value.data["path"] == str(path)
    with pytest.raises(CorruptFile, match="cut short"):
        verified_at(ids, np.array([5]))


def test_a_map_ends_with_its_last_array(tmp_path: Path) -> None:
    """Sections borrow the map and do not keep it: nothing stays mapped."""
    path = write(tmp_path)
    for _ in range(3):
        _, (rows, ids) = opened(path)
        verified(rows[:1])
        del rows, ids, _
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("1 test: the system does not list its maps")
    assert str(path) not in maps.read_text(encoding="utf-8")
