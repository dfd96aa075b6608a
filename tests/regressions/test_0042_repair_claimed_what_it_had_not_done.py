"""A repair left what only the content of a file or a record tells, said that it was done, and was
needed again; and the rows that it called lost had been deleted before."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from reliability.forgery import forge_run, forge_value, forged

import simindex
from simindex import IndexOptions, RepairReport
from simindex.errors import CorruptFile
from simindex.records.reports import Finding
from simindex.storage.catalog.records import encode_pending
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.segment import IDS, KEY_BYTES, KEY_OFFSETS
from simindex.storage.tables.structure import FINGERPRINTS
from simindex.storage.tables.table import Table
from simindex.storage.tables.tombstones import Tombstones

ROWS = np.random.default_rng(42).integers(0, 1 << 64, 300, dtype=np.uint64)


def build(path: Path, **options: Any) -> Path:
    """One segment of 300 rows; row i has id i or key "key i"."""
    made = IndexOptions(batch_rows=200, min_merge=0, **options)
    names: dict[str, Any] = {"ids": np.arange(300, dtype=np.uint64)}
    if made.keyed:
        keys = [f"key {number}" for number in range(300)]
        names = {"keys": keys if made.keys == "str" else [key.encode() for key in keys]}
    width = made.words
    rows = np.repeat(ROWS[:, None], width, axis=1) if width > 1 else ROWS
    with simindex.open(path, "n", options=made) as index:
        index.append(rows, **names)
        index.compact(full=True)
    return path


def file_of(path: Path, suffix: str) -> Path:
    (file,) = (path / "segments").glob(f"*{suffix}")
    return file


def repaired(path: Path, rows: int, *lost: str, lost_rows: int = 0) -> RepairReport:
    """Repairs; the index then is whole, also to the next repair."""
    told = simindex.repair(path)
    assert told.needed
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.steps, done.losses) == (told.findings, told.steps, told.losses)
    assert (done.rows, done.lost_rows, done.applied, done.remaining) == (rows, lost_rows, True, ())
    assert len(done.losses) == len(lost)
    for said, expected in zip(done.losses, lost, strict=True):
        assert expected in said
    with simindex.open(path) as index:
        assert [finding for finding in index.check() if finding.severity == "error"] == []
        assert len(index) == sum(len(batch) for batch in index.rows()) == rows
    assert not simindex.repair(path).needed
    return done


def test_key_that_is_no_text_is_lost_and_told(index_path: Path) -> None:
    path = build(index_path, keys="str", structures=("psm", "issl"))
    with forged(path, file_of(path, ".rows")) as change:
        change.section(KEY_BYTES, "u1")[0] = 0xFF
    repaired(path, 299, "1 of the 300 rows", lost_rows=1)


def test_key_that_makes_another_id_is_lost_and_told(index_path: Path) -> None:
    path = build(index_path, keys="bytes")
    with forged(path, file_of(path, ".rows")) as change:
        change.section(IDS, "<u8")[[3, 7]] ^= np.uint64(1)
    done = repaired(path, 298, "2 of the 300 rows", lost_rows=2)
    assert any("keys" in finding.what for finding in done.findings)


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("structure", ["bphs:G=4,g=1", "issl:w=8"])
def test_what_stands_beside_the_rows_is_built_anew(
    index_path: Path, bits: int, structure: str
) -> None:
    path = build(index_path, bits=bits, structures=("psm", structure))
    file = file_of(path, ".issl" if "issl" in structure else ".bphs")
    with forged(path, file) as change:
        section = change.section(1, "<u8")
        section[:] = section[::-1].copy()
    repaired(path, 300)
    assert file_of(path, file.suffix).name != file.name


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("structure", ["bphs:G=4,g=1", "issl:w=8"])
def test_compacting_with_the_same_structures_builds_them_anew(
    index_path: Path, bits: int, structure: str
) -> None:
    """The remedy that errors name."""
    structures = ("psm", structure)
    path = build(index_path, bits=bits, structures=structures)
    file = file_of(path, ".issl" if "issl" in structure else ".bphs")
    with simindex.open(path, "w") as index:
        index.compact(structures=structures)
    assert file_of(path, file.suffix) == file
    with forged(path, file) as change:
        section = change.section(1, "<u8")
        section[:] = section[::-1].copy()
    with simindex.open(path, "w") as index:
        assert index.check()
        index.compact(structures=structures)
        assert index.check() == []


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("keys", [False, "str"])
def test_rows_out_of_order_are_put_in_order(index_path: Path, bits: int, keys: Any) -> None:
    path = build(index_path, bits=bits, keys=keys, structures=("psm",))
    with simindex.open(path) as index:
        before = {(str(m.key), m.id) for m in index.query(ROWS[:, None].repeat(bits // 64, 1), h=0)}
    with forged(path, file_of(path, ".rows")) as change:
        words = change.section(FINGERPRINTS, "<u8").reshape(-1, bits // 64)
        ids = change.section(IDS, "<u8")
        if not keys:
            words[:], ids[:] = words[::-1].copy(), ids[::-1].copy()
        else:
            offsets, data = change.section(KEY_OFFSETS, "<i8"), change.section(KEY_BYTES, "u1")
            back = np.arange(299, -1, -1, dtype=np.int64)
            heap = KeyHeap(offsets.copy(), data.copy()).take(back)
            words[:], ids[:] = words[::-1].copy(), ids[::-1].copy()
            offsets[:], data[:] = heap.offsets, heap.data
    repaired(path, 300)
    with simindex.open(path) as index:
        found = index.query(ROWS[:, None].repeat(bits // 64, 1), h=0)
        assert {(str(m.key), m.id) for m in found} == before


@pytest.mark.parametrize(("name", "payload", "said"), [
    ("machine", msgpack.packb({"levels": []}), "tune"),
    ("machine", b"\xc1", "tune"),
    ("audit", msgpack.packb({"recall": "many"}), "recall"),
    ("audit", msgpack.packb({"rows": None}), "recall"),
    ("reservoir", bytes(40), "sample"),
    ("recipe", bytes(40), "recipe"),
])
def test_values_that_mean_nothing_are_told_and_left_out(
    index_path: Path, name: str, payload: bytes, said: str
) -> None:
    path = build(index_path)
    forge_value(path, name, payload)
    try:
        with simindex.open(path) as index:
            assert [f for f in index.check() if f.severity == "error" and name in f.what]
    except CorruptFile:
        assert name == "recipe", "the others are read when they are needed"
    repaired(path, 300, said)


def test_waiting_rows_are_put_in_order_and_those_without_a_key_left_out(index_path: Path) -> None:
    path = build(index_path, keys="str")
    with simindex.open(path) as index:
        secret = index.options.stored_secret
    keys = KeyHeap.of(["a", "b", "c"])
    keys.data.setflags(write=False)
    data = keys.data.copy()
    data[1] = 0xFF
    table = Table(
        "", np.array([[5], [3], [1]], np.uint64), keys.hashes(secret)[:, 0],
        KeyHeap(keys.offsets, data), horizon=1, header_bits=0,
    )
    payload = encode_pending(table, Reservoir.empty(1))
    forge_run(path, "pending", payload, rows=3)
    with simindex.open(path) as index:
        assert [f for f in index.check() if f.severity == "error"]
    repaired(path, 302, "1 row", lost_rows=1)
    with simindex.open(path) as index:
        assert {m.key for m in index.query(np.array([1, 5], np.uint64), h=0)} == {"a", "c"}


@pytest.mark.parametrize("commit", [1 << 40, 1 << 63, (1 << 64) - 1])
def test_deletions_of_a_commit_that_never_was_are_told_and_left_out(
    index_path: Path, commit: int
) -> None:
    """They would delete rows that are appended later."""
    path = build(index_path)
    forge_run(path, "tombstones", np.array([3, 0, commit], "<u8").tobytes())
    with simindex.open(path) as index:
        assert [f for f in index.check() if f.severity == "error"]
    repaired(path, 300, "deletions")


def test_deletions_under_ids_that_their_keys_do_not_make_are_told_and_left_out(
    index_path: Path,
) -> None:
    path = build(index_path, keys="str")
    keys = KeyHeap.of(["key 3"])
    with simindex.open(path) as index:
        ids, second = keys.hashes(index.options.stored_secret).T
    wrong = Tombstones.of(ids ^ np.uint64(1), second, np.ones(1, np.uint64), keys)
    forge_run(path, "tombstones", wrong.encode())
    with simindex.open(path) as index:
        assert [f for f in index.check() if f.severity == "error"]
    repaired(path, 300, "deletions")


def test_rows_that_were_deleted_are_not_called_lost(index_path: Path) -> None:
    path = build(index_path)
    with simindex.open(path, "w") as index:
        index.delete(ids=range(100))
    file = file_of(path, ".rows")
    content = bytearray(file.read_bytes())
    content[4096 + 800] ^= 1  # of the chunk with all fingerprints
    file.write_bytes(content)
    repaired(path, 0, "200 of the 300 rows", lost_rows=200)


def test_deletions_that_cannot_be_told_are_said_to_be_possible(index_path: Path) -> None:
    """Where the file is gone, nothing tells which of its rows were deleted."""
    path = build(index_path)
    with simindex.open(path, "w") as index:
        index.delete(ids=range(100))
    file_of(path, ".rows").unlink()
    done = repaired(path, 0, "all 300 rows", lost_rows=300)
    assert "deleted" in done.losses[0]


def test_what_a_repair_could_not_do_it_says(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(index_path)
    (path / "FORMAT").unlink()
    left = [Finding("error", "a file", "is as it was")]
    rebuild = import_module("simindex.repair.rebuild")
    monkeypatch.setattr(rebuild, "_checked", lambda directory: left)
    done = simindex.repair(path, apply=True)
    assert done.applied
    assert done.remaining == tuple(left)




@pytest.mark.parametrize("error", [OSError(5, "input/output error"), MemoryError()])
def test_a_report_survives_a_system_that_reads_no_more(
    index_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(index_path)
    (path / "FORMAT").unlink()
    module, calls = import_module("simindex.repair.rebuild"), []
    real = module.survey

    def survey(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise error
        return real(*arguments)

    monkeypatch.setattr(module, "survey", survey)
    done = simindex.repair(path, apply=True)
    assert (done.applied, done.rows) == (True, 300)
    assert [finding.severity for finding in done.remaining] == ["note"]
    assert not simindex.repair(path).needed
