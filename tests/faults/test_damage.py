"""Damaged files and flipped bits: the quick form of `tools/torture.py damage` and `bits`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reliability import bits, damage
from reliability.specimens import Specimen, make

import simindex
from simindex.errors import CorruptFile
from simindex.storage.catalog.pages import preflight

# Forks are what is tested here; from Python 3.12 on they warn of the threads that numpy keeps.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def test_damaged_files_give_typed_errors_or_right_answers() -> None:
    """Each kind of file and each kind of damage, in a child that reads and writes.

    `tools/torture.py damage` takes each damage of each kind of file, many times.
    """
    goal, seed = 40, 1
    tally = damage.trial(goal, seed, 2, shapes=("plain", "keyed", "aged", "sketched", "many"))
    print(f"damage: {tally.done} of {goal} files, seed {seed}, {tally.refused} refused")
    assert tally.faults == []
    assert (tally.done, tally.wrong, tally.signals, tally.hangs) == (goal, 0, 0, 0)
    assert goal / 4 < tally.refused < goal, "some damage must be met, and some must not matter"


@pytest.mark.parametrize(("shape", "share"), [("tiny", 0.001), ("many", 0.0002)])
def test_every_flipped_bit_of_what_is_live_is_found(shape: str, share: float) -> None:
    live, asked, tally = bits.trial(shape, 3, 2, share=share)
    print(f"bits: {tally.done} of {live}, {tally.found} found, {tally.harmless} harmless")
    assert tally.done == asked
    assert tally.broken == []
    assert tally.missed == []
    assert tally.done > live * share / 2
    assert tally.found + tally.harmless == tally.done


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Specimen:
    return make(tmp_path_factory.mktemp("specimen"), "tiny")


@pytest.fixture
def copy(tiny: Specimen, tmp_path: Path) -> Path:
    path = tmp_path / "index"
    shutil.copytree(tiny.path, path)
    for stray in tiny.strays:
        (path / stray).unlink()
    return path


def test_check_of_a_flipped_bit_ends_with_exit_code_3(copy: Path) -> None:
    """The command, where the trial of all bits calls what it calls."""
    command = [sys.executable, "-m", "simindex", "check", str(copy)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    file = next((copy / "segments").glob("*.rows"))
    bits.flip(file, 8 * 5000)  # between two sections, where nobody reads
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 3
    assert "not zero between its sections" in done.stdout + done.stderr


def test_catalog_of_another_index_is_refused(copy: Path, tiny: Specimen) -> None:
    """Also one that needs no other file; and so is the FORMAT of another."""
    for name in ("catalog/data.mdb", "FORMAT"):
        mine = (copy / name).read_bytes()
        shutil.copy(tiny.other / name, copy / name)
        for mode in ("r", "w"):
            with pytest.raises(CorruptFile, match="another index"):
                simindex.open(copy, mode)  # type: ignore[arg-type]
        (copy / name).write_bytes(mine)
    with simindex.open(copy) as index:
        assert index.check() == []


def test_catalog_older_than_its_files_is_refused_by_readers(tmp_path: Path) -> None:
    """Where it is by more than the one commit that a writer may not have come to."""
    path, old = tmp_path / "index", tmp_path / "old.mdb"
    options = simindex.IndexOptions(batch_rows=8, min_merge=0)
    with simindex.open(path, "c", options=options) as index:
        shutil.copy(path / "catalog" / "data.mdb", old)
        for step in range(3):
            index.append(np.arange(4 * step, 4 * step + 4, dtype=np.uint64))
            index.commit()
    new = (path / "catalog" / "data.mdb").read_bytes()
    shutil.copy(old, path / "catalog" / "data.mdb")
    for mode in ("r", "w"):
        with pytest.raises(CorruptFile, match="newer than the catalog"):
            simindex.open(path, mode)  # type: ignore[arg-type]
    (path / "catalog" / "data.mdb").write_bytes(new)
    with simindex.open(path) as index:
        assert len(index) == 12


WRITER = """
import sys, lmdb, os
env = lmdb.open(sys.argv[1], map_size=1 << 30, max_dbs=2, lib_version=0, sync=False)
one, two = env.open_db(b"one"), env.open_db(b"two")
number = 0
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    with env.begin(write=True) as txn:
        for step in range(number % 7 + 1):
            key = b"%040d" % ((number * 7919 + step) % 2000)
            if number % 3:
                txn.put(key, key * (1 + number % 150), db=one if number % 2 else two)
            else:
                txn.delete(key, db=one)
    needed = (env.info()["last_pgno"] + 1) * 4096
    if os.path.getsize(sys.argv[1] + "/data.mdb") < needed:
        os.truncate(sys.argv[1] + "/data.mdb", needed + (1 << 20))
    number += 1
print(number)
"""


def test_catalog_is_sound_at_every_moment_of_a_writer(tmp_path: Path) -> None:
    """Another process commits without a pause, and without syncing, while this one looks."""
    goal = 500
    (tmp_path / "env").mkdir()
    data, stop = tmp_path / "env" / "data.mdb", tmp_path / "stop"
    command = [sys.executable, "-c", WRITER, str(tmp_path / "env"), str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        try:
            for _ in range(goal):
                preflight(data)
        finally:
            stop.touch()
        commits = int(writer.stdout.readline())
    print(f"pages: {goal} looks during {commits} commits")
    assert commits > 50
