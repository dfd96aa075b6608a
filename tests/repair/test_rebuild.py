"""What a repair brings back is what was committed, and what it does not bring back it says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repairable import LAST_PAGE, Held, examine, fresh, rows_of, segments, with_field

import simindex
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    IndexLocked,
    SimindexError,
    UnsupportedStorage,
)
from simindex.storage import location


def test_a_whole_index_is_left_as_it_is(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any]
) -> None:
    path = fresh(held, tmp_path / "index")
    simindex.open(path).close()
    before = tree(path)
    for apply in (False, True):
        report = simindex.repair(path, apply=apply)
        assert (report.needed, report.applied, report.steps, report.losses) == (
            False, False, (), ()
        )
        assert report.rows == held.live.total()
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}


def test_without_apply_nothing_changes(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any]
) -> None:
    path = fresh(held, tmp_path / "index")
    (path / "catalog" / "data.mdb").unlink()
    segments(path, ".bphs")[0].write_bytes(b"x")
    before = tree(path)
    told = simindex.repair(path)
    assert told.needed
    assert told.kept is None
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.steps, done.losses, done.rows) == (
        told.findings, told.steps, told.losses, told.rows
    )
    with simindex.open(path) as index:
        assert len(index) == done.rows


def test_deleted_rows_are_not_counted(held: Held, tmp_path: Path) -> None:
    """Nor where they stand in a segment that is damaged elsewhere."""
    path = fresh(held, tmp_path / "index")
    segments(path, ".bphs")[0].unlink()
    file = segments(path)[0]
    file.write_bytes(file.read_bytes()[:-9])
    for apply in (False, True):
        assert simindex.repair(path, apply=apply).rows == held.live.total()
    with simindex.open(path) as index:
        assert len(index) == held.live.total()


def test_what_only_a_check_finds_is_repaired(unkeyed: Held, tmp_path: Path) -> None:
    """A page that is neither in use nor free. No finding says to run what is being run."""
    path = fresh(unkeyed, tmp_path / "index")
    data = path / "catalog" / "data.mdb"
    content = bytearray(data.read_bytes())
    for at in LAST_PAGE:
        content[at : at + 8] = (len(content) // 4096 - 1).to_bytes(8, "little")
    data.write_bytes(content)
    report = simindex.repair(path, apply=True)
    assert [f.what.count("simindex repair") for f in report.findings] == [0]
    assert "neither in use nor free" in report.findings[0].what
    assert report.losses == ()
    assert examine(path) == unkeyed.live


@pytest.mark.parametrize("what", ["FORMAT", "catalog/data.mdb", "segments"])
def test_opening_what_is_damaged_names_the_repair(
    held: Held, tmp_path: Path, what: str
) -> None:
    path = fresh(held, tmp_path / "index")
    for file in segments(path) if what == "segments" else [path / what]:
        file.write_bytes(file.read_bytes()[:5] * 3)
    with pytest.raises(CorruptFile, match="`simindex repair"):
        simindex.open(path)


@pytest.mark.parametrize("what", ["FORMAT", "segment"])
def test_what_another_version_may_not_write_is_told_but_not_repaired(
    held: Held, tmp_path: Path, tree: Callable[[Path], Any], what: str
) -> None:
    """A read-compatible feature that is not known forbids writing."""
    path = fresh(held, tmp_path / "index")
    file, size = (path / "FORMAT", 64) if what == "FORMAT" else (segments(path)[0], 4096)
    file.write_bytes(with_field(file.read_bytes(), 20, b"\x08", size))
    segments(path, ".bphs")[1].unlink()
    before = tree(path)
    assert simindex.repair(path).needed
    with pytest.raises(FormatTooNew, match="can read but not write"):
        simindex.repair(path, apply=True)
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}


def test_golden_index_is_repaired(tmp_path: Path) -> None:
    """Its segment was written before segments told what they were merged from."""
    golden = Path(__file__).parents[1] / "golden" / "index-1.0"
    path = Path(shutil.copytree(golden, tmp_path / "index"))
    assert not simindex.repair(path).needed
    shutil.rmtree(path / "catalog")
    (path / "FORMAT").unlink()
    assert simindex.repair(path, apply=True).rows == 9
    assert (path / "FORMAT").read_bytes() == (golden / "FORMAT").read_bytes()
    with simindex.open(path) as index:
        assert index.options.keys == "str"
        assert {name for _, name in rows_of(index)} == {f"k{n}" for n in range(9)}


def test_a_writer_keeps_a_repair_out(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    with simindex.open(path, "w"):
        for apply in (False, True):
            with pytest.raises(IndexLocked):
                simindex.repair(path, apply=apply)


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.01, 0.2, 0.9]))
def test_files_of_anything_give_typed_errors(
    unkeyed: Held, tmp_path_factory: pytest.TempPathFactory, seed: int, share: float
) -> None:
    """All files are overwritten in many places at once, meta pages and headers, too."""
    path = fresh(unkeyed, tmp_path_factory.mktemp("anything") / "index")
    rng = np.random.default_rng(seed)
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.name != "LOCK":
            content = np.frombuffer(file.read_bytes(), np.uint8).copy()
            places = rng.integers(0, len(content), 1 + int(share * len(content) / 64))
            content[places] = rng.integers(0, 256, len(places))
            file.write_bytes(content.tobytes())
    try:
        simindex.repair(path, apply=True)
        with simindex.open(path) as index:
            assert rows_of(index) <= unkeyed.sealed | unkeyed.live
            assert [f for f in index.check() if f.severity == "error"] == []
    except SimindexError:
        pass
    shutil.rmtree(path)


def test_repair_refuses_a_network_file_system(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes as a writer does, so not where locks and maps cannot be trusted."""
    simindex.open(index_path, "c").close()
    (index_path / "FORMAT").unlink()
    monkeypatch.setattr(location, "file_system_kind", lambda path: "nfs4")
    with pytest.raises(UnsupportedStorage, match="nfs4"):
        simindex.repair(index_path, apply=True)
    assert not (index_path / "FORMAT").exists()
