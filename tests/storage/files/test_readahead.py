"""Arrays on a map are read in order, once, and no further than they are asked for."""

from __future__ import annotations

import mmap
import os
import signal
import threading
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simindex.errors import CorruptFile
from simindex.storage.files import readahead
from simindex.storage.files.checksums import Map
from simindex.storage.files.readahead import chunks, even_bounds, give_back

PAGE = mmap.PAGESIZE


def mapped(path: Path, size: int, words: int = 1) -> NDArray[np.uint64]:
    """Rows (n, words) on a map of a new file, a page from its start, which hold their numbers."""
    values = np.arange(size // 8, dtype=np.uint64)
    path.write_bytes(bytes(PAGE) + values.tobytes())
    with path.open("rb") as file:
        file_map = Map(file.fileno(), 0, access=mmap.ACCESS_READ)
    file_map.path = str(path)
    return np.frombuffer(file_map, np.uint8)[PAGE:].view(f"V{8 * words}").view("<u8").reshape(
        -1, words
    )


def resident_bytes(rows: NDArray[np.uint64]) -> int:
    """Bytes of the array's map that this process holds."""
    address = rows.ctypes.data
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line[0] in "0123456789abcdef" and "-" in line.split()[0]:
            low, high = (int(end, 16) for end in line.split()[0].split("-"))
            inside = low <= address < high
        elif inside and line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the map is gone")


def readers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == readahead.THREAD_NAME]


def test_an_array_in_memory_passes_through() -> None:
    """No thread, no advice: pending rows and batches are read as segments are."""
    rows = np.zeros((10, 2), np.uint64)
    iterator = chunks(rows, [0, 4, 4, 10], release=True)
    assert next(iterator) == (0, 4)
    assert not readers()
    assert list(iterator) == [(4, 4), (4, 10)]
    assert list(chunks(rows[:0], [0])) == []
    give_back(rows)


def test_even_bounds_cover_all_rows() -> None:
    """The last chunk is what is left, and no rows make no chunk."""
    assert even_bounds(10, 4) == [0, 4, 8, 10]
    assert even_bounds(8, 4) == [0, 4, 8]
    assert even_bounds(0, 4) == [0]
    assert even_bounds(3, 0) == [0, 1, 2, 3]


@pytest.mark.parametrize("release", [False, True])
@pytest.mark.parametrize("window", [0, PAGE, 1 << 20, 1 << 30])
def test_every_row_is_read_in_order(tmp_path: Path, window: int, release: bool) -> None:
    """Whatever the window; and with bounds that are not pages'."""
    rows = mapped(tmp_path / "rows", 12 << 20, 3)
    bounds = even_bounds(len(rows), 77_777)
    read = [
        rows[start:stop].copy()
        for start, stop in chunks(rows, bounds, window_bytes=window, release=release)
    ]
    assert np.array_equal(np.concatenate(read).reshape(-1), np.arange(len(rows) * 3))
    assert not readers()


@pytest.mark.parametrize("window", [0, 1 << 20, 1 << 30])
def test_a_chunk_is_resident_when_it_is_given(tmp_path: Path, window: int) -> None:
    """So that the caller's threads do not wait for the disk, each for another page."""
    rows = mapped(tmp_path / "rows", 16 << 20)
    for _, stop in chunks(rows, even_bounds(len(rows), 1 << 18), window_bytes=window):
        assert resident_bytes(rows) >= stop * 8


@pytest.mark.slow
def test_released_pages_do_not_add_up(tmp_path: Path) -> None:
    """A chunk, the window and a piece are resident at most, and nothing at the end."""
    rows = mapped(tmp_path / "rows", 64 << 20)
    for start, stop in chunks(
        rows, even_bounds(len(rows), 1 << 18), window_bytes=8 << 20, release=True
    ):
        assert int(rows[start:stop].max()) == stop - 1
        assert resident_bytes(rows) <= (2 + 8 << 20) + readahead.PIECE_BYTES
    assert resident_bytes(rows) <= 2 * PAGE
    assert int(rows[12345, 0]) == 12345
    list(chunks(rows, [0, len(rows)]))
    assert resident_bytes(rows) >= 64 << 20
    give_back(rows[: len(rows) // 2])
    assert resident_bytes(rows) <= (32 << 20) + 2 * PAGE


def test_the_window_comes_in_beside_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the caller is busy with the first chunk, and no further than the window."""
    rows = mapped(tmp_path / "rows", 256 * PAGE)
    reached = threading.Event()
    stops = []

    def bring_in(_: object, start: int, stop: int, exactly: bool) -> None:
        stops.append(stop)
        if stop == (16 + 64) * PAGE:
            reached.set()

    monkeypatch.setattr(readahead, "PIECE_BYTES", 4 * PAGE)
    monkeypatch.setattr(readahead._Span, "bring_in", bring_in)
    iterator = chunks(rows, even_bounds(len(rows), 16 * PAGE // 8), window_bytes=64 * PAGE)
    with closing(iterator):
        next(iterator)
        assert reached.wait(30)
    assert stops[-1] == (16 + 64) * PAGE


@settings(max_examples=100, deadline=None)
@given(data=st.data())
@pytest.mark.slow
def test_what_is_brought_in(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without gap or overlap, a chunk's all before it is given, and never beyond the window."""
    pages = data.draw(st.integers(1, 40))
    rows = mapped(tmp_path_factory.mktemp("readahead") / "rows", pages * PAGE)
    bounds = sorted(data.draw(st.lists(st.integers(0, len(rows)), min_size=1, max_size=12)))
    window = data.draw(st.integers(0, 30 * PAGE))
    taken = data.draw(st.integers(0, len(bounds)))
    calls: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            readahead._Span, "bring_in", lambda _, start, stop, exactly: calls.append((start, stop))
        )
        patch.setattr(readahead, "PIECE_BYTES", 4 * PAGE)
        last = bounds[0]
        iterator = chunks(rows, bounds, window_bytes=window)
        for expected, found in zip(list(pairwise(bounds))[:taken], iterator, strict=False):
            assert found == expected
            assert not calls or calls[0][0] == bounds[0] * 8
            assert max((stop for _, stop in calls), default=bounds[0] * 8) >= found[1] * 8
            last = found[1]
        iterator.close()
    assert not readers()
    for (_, stop), (start, _) in pairwise(calls):
        assert start == stop
    if calls:
        assert calls[-1][1] <= min(bounds[-1] * 8, last * 8 + window)


def test_leaving_early_ends_the_thread(tmp_path: Path) -> None:
    """By break, by an error, by Ctrl-C, or by forgetting the iterator."""
    rows = mapped(tmp_path / "rows", 32 << 20)
    bounds = even_bounds(len(rows), 1 << 16)
    for _ in chunks(rows, bounds, window_bytes=1 << 20):
        assert readers()
        break
    assert not readers()
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            for _ in chunks(rows, bounds, window_bytes=1 << 20, release=True):
                raise error
        assert not readers()
    iterator = chunks(rows, bounds, window_bytes=1 << 20)
    next(iterator)
    del iterator
    assert not readers()


@pytest.mark.slow
def test_ctrl_c_while_waiting_ends_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait for a slow disk is left at once."""
    rows = mapped(tmp_path / "rows", 32 << 20)
    slow = threading.Event()
    main = threading.main_thread().ident

    def bring_in(_: object, start: int, stop: int, exactly: bool) -> None:
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        slow.wait(1)

    monkeypatch.setattr(readahead._Span, "bring_in", bring_in)
    with pytest.raises(KeyboardInterrupt):
        next(chunks(rows, even_bounds(len(rows), 1 << 16)))
    assert not readers()


@pytest.mark.parametrize("window", [0, 1 << 20])
def test_a_file_cut_short_is_an_error(tmp_path: Path, window: int) -> None:
    """Not a signal: rows before the cut are given, then the error names the file."""
    path = tmp_path / "rows"
    rows = mapped(path, 32 << 20)
    os.truncate(path, 16 << 20)
    given_rows = 0
    with pytest.raises(CorruptFile, match="made shorter") as caught:
        for start, stop in chunks(rows, even_bounds(len(rows), 1 << 17), window_bytes=window):
            assert int(rows[start:stop].max()) == stop - 1
            given_rows = stop
    assert caught.value.data["path"] == str(path)
    assert 8 << 20 <= given_rows * 8 <= 16 << 20
    assert not readers()


@pytest.mark.parametrize("window", [0, 1 << 20])
def test_a_system_without_the_advice_reads_as_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    """Linux before 5.14 refuses it; then rows come in when they are touched."""
    monkeypatch.setattr(readahead, "POPULATE_READ", 9999)
    rows = mapped(tmp_path / "rows", 12 << 20)
    read = [int(rows[a:b].sum()) for a, b in chunks(
        rows, even_bounds(len(rows), 99_999), window_bytes=window, release=True
    )]
    assert sum(read) == len(rows) * (len(rows) - 1) // 2


def test_a_map_of_the_caller_is_left_alone(tmp_path: Path) -> None:
    """Giving back the pages of a private map would lose what was written to them."""
    path = tmp_path / "array.npy"
    np.save(path, np.zeros((1 << 20, 1), np.uint64))
    rows = np.load(path, mmap_mode="c")
    rows[:] = 7
    list(chunks(rows, even_bounds(len(rows), 1000), release=True))
    give_back(rows)
    assert (rows == 7).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_few_values_are_taken(tmp_path: Path, seed: int) -> None:
    """In the order asked for, repeated ones too, from a map or from memory."""
    rng = np.random.default_rng(seed)
    values = mapped(tmp_path / "values", 4 << 20)[:, 0]
    for count in (0, 1, 7, 5000):
        places = rng.integers(0, len(values), count).astype(np.uint32)
        for column in (values, values.copy()):
            assert np.array_equal(readahead.take_at(column, places), places)


def test_no_more_pages_are_read_than_hold_the_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages next to each other by one call."""
    asked: list[tuple[int, int]] = []
    values = mapped(tmp_path / "values", 4 << 20)[:, 0]
    start = values.ctypes.data

    def advise(address: int, size: int, advice: int) -> int:
        assert advice == mmap.MADV_WILLNEED
        asked.append(((address - start) // PAGE, size // PAGE))
        return 0

    monkeypatch.setattr(readahead, "_advise", advise)
    page = PAGE // 8
    places = np.array([5, 6, 9 * page, 1, 10 * page, 700 * page + 1, 10 * page - 1], np.uint32)
    assert np.array_equal(readahead.take_at(values, places), places)
    assert asked == [(0, 1), (9, 2), (700, 1)]
