"""Times are stored beside rows, in the order of rows, wherever rows are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sections import flip, section

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.repair.rebuild import repair
from simindex.storage import snapshot
from simindex.storage.tables import times
from simindex.storage.tables.record import SegmentFolder
from simindex.storage.tables.segment import Segment, open_segment

START, ROWS = 1_000_000, 20_000


def at(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "clock", lambda: seconds)


@pytest.fixture(params=[False, True], ids=["ids", "keys"])
def filled(
    request: pytest.FixtureRequest, index_path: Path, rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Row i, whose fingerprint says so, came i seconds after START; the last ten are pending."""
    options = IndexOptions(times=True, batch_rows=1 << 16, keys=request.param)
    order = rng.permutation(ROWS)
    with simindex.open(index_path, "n", options=options) as index:
        for first in range(0, ROWS, 2000):
            part = range(first, first + 2000)
            for second in (part[:1000], part[1000:]):
                at(START + second[0], monkeypatch)
                named: dict[str, Any] = {"keys": [str(order[i]) for i in second]}
                index.append(
                    np.array(order[list(second)], np.uint64),
                    **(named if request.param else {"ids": order[list(second)].tolist()}),
                )
        index.commit()
        index.compact(full=True)
        at(START + ROWS, monkeypatch)
        last = np.arange(1 << 40, (1 << 40) + 10, dtype=np.uint64)
        index.append(last, **({"keys": list(map(str, last))} if request.param else {"ids": last}))
    np.save(index_path.with_suffix(".npy"), order)
    return index_path


def expected(path: Path) -> dict[int, int]:
    """When each fingerprint came."""
    order = np.load(path.with_suffix(".npy"))
    came = {int(order[i]): START + i // 1000 * 1000 for i in range(ROWS)}
    return came | {(1 << 40) + i: START + ROWS for i in range(10)}


def stored(path: Path) -> dict[int, int]:
    with simindex.open(path) as index:
        return {
            word: came for table in index._current().tables
            for word, came in zip(
                table.fingerprints[:, 0].tolist(), np.asarray(table.times).tolist(), strict=True
            )
        }


def test_each_row_has_its_time(filled: Path) -> None:
    assert stored(filled) == expected(filled)


def test_the_last_number_is_the_least_time(filled: Path) -> None:
    file, start, end = section(filled, times.TIMES)
    found = np.frombuffer(file.read_bytes(), "<u4", (end - start) // 4, start)
    assert len(found) == ROWS + 1
    assert int(found[-1]) == int(found[:-1].min()) == START


def test_nothing_is_stored_where_nobody_asked(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=8)) as index:
        index.append(np.arange(9, dtype=np.uint64))
        index.commit()
        assert all(table.times is None for table in index._current().tables)
        assert index.stats().oldest is None


def test_a_damaged_time_is_an_error_and_not_a_wrong_answer(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, start, _ = section(filled, times.TIMES)
    flip(file, start + 40)
    at(START + ROWS, monkeypatch)
    with simindex.open(filled, "w") as index:
        with pytest.raises(CorruptFile, match=file.name):
            index.expire(older_than=10)
        assert any("damaged" in finding.what for finding in index.check())


def test_repair_gives_rows_of_unknown_age_the_time_of_the_repair(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose times are in the damaged chunk; all others keep theirs."""
    file, start, _ = section(filled, times.TIMES)
    flip(file, start + 40)
    at(START + 9 * ROWS, monkeypatch)
    report = repair(filled, apply=True)
    assert (report.lost_rows, report.remaining) == (0, ())
    found, came = stored(filled), expected(filled)
    unknown = {word for word in came if found[word] != came[word]}
    assert len(unknown) == 65_536 // 4
    assert {found[word] for word in unknown} == {START + 9 * ROWS}
    with simindex.open(filled) as index:
        assert [one for one in index.check() if one.severity == "error"] == []


def test_repair_without_the_catalog_keeps_times_of_segments(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(START + 5000, monkeypatch)
    with simindex.open(filled, "w") as index:
        assert index.expire(older_than=1000) == 4000
    (filled / "catalog" / "data.mdb").unlink()
    report = repair(filled, apply=True)
    assert any("expired" in loss for loss in report.losses)
    came = expected(filled)
    found = stored(filled)
    assert found == {word: came[word] for word in found}
    with simindex.open(filled, "w") as index:
        assert len(index) in (ROWS, ROWS - 4000)  # as a merge may have dropped them
        index.expire(older_than=1000)
        index.commit()
        assert len(index) == ROWS - 4000


def test_repair_keeps_what_has_expired(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(START + 5000, monkeypatch)
    with simindex.open(filled, "w") as index:
        index.expire(older_than=1000)
    file, start, _ = section(filled, 5)
    flip(file, start)
    report = repair(filled, apply=True)
    assert report.rows == ROWS + 10 - 4000
    with simindex.open(filled) as index:
        assert len(index) == ROWS + 10 - 4000


def test_a_file_that_hides_its_oldest_row_is_found(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole by its checksums; only a second look at the rows tells."""
    monkeypatch.setattr(Segment, "_least_time", lambda self: START + 1)
    with simindex.open(filled) as index:
        assert any("older than it says" in finding.what for finding in index.check())


@pytest.mark.parametrize("times_wanted", [False, True])
def test_options_and_files_agree(index_path: Path, times_wanted: bool) -> None:
    options = IndexOptions(times=not times_wanted, batch_rows=8)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(np.arange(9, dtype=np.uint64))
        index.commit()
        segment = index._current().segments[0]
        own = segment.envelope.identity.index
        folder = SegmentFolder(
            index_path / "segments", own, 64, False, timed=times_wanted
        )
        with pytest.raises(CorruptFile, match="times"):
            open_segment(folder, segment.record, lambda: None)


def test_the_oldest_row_is_told(index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are neither deleted nor expired."""
    options = IndexOptions(times=True, batch_rows=8, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        assert index.stats().oldest is None
        for number in range(4):
            at(START + number, monkeypatch)
            index.append(np.array([number], np.uint64), ids=[number])
            index.commit()
        assert index.stats().oldest == START
        index.delete(ids=[0])
        index.commit()
        assert index.stats().oldest == START + 1
        at(START + 4, monkeypatch)
        index.expire(older_than=2)
        index.commit()
        assert index.stats().oldest == START + 2


def test_the_oldest_row_is_told_whatever_part_of_a_table_it_is_in(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are read in parts, of which some have no live row."""
    monkeypatch.setattr(snapshot, "READ_ROWS", 8)
    came = expected(filled)
    left = sorted(came)[5::1009]
    with simindex.open(filled, "w") as index:
        gone: list[Any] = sorted(came.keys() - set(left))
        named = {"keys": list(map(str, gone))} if index.options.keys else {"ids": gone}
        index.delete(**named)
        index.commit()
        assert index.stats().oldest == min(came[word] for word in left)


@pytest.mark.parametrize("incremental", [False, True])
def test_a_backup_has_the_times_and_what_has_expired(
    filled: Path, monkeypatch: pytest.MonkeyPatch, incremental: bool
) -> None:
    copy = filled.with_name("copy.sim")
    with simindex.open(filled, "w") as index:
        if incremental:
            index.backup(copy)
        at(START + 5000, monkeypatch)
        index.expire(older_than=1000)
        index.commit()
        index.backup(copy)
    with simindex.open(copy, "w") as index:
        assert len(index) == ROWS + 10 - 4000
        at(START + 6000, monkeypatch)
        assert index.expire(older_than=1000) == 1000
