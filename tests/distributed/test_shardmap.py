"""The map is replaced at once, and refused where it says what cannot be."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sharded import families

import simindex
from simindex.distributed import (
    Shard,
    Shards,
    extend_shard,
    read_map,
    shardmap,
    sweep,
    write_map,
)
from simindex.distributed.shard import seal
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    IndexLocked,
    IndexNotFound,
    InvalidOption,
    SimindexError,
    StorageFull,
)
from simindex.storage.files import disk, locks
from simindex.storage.files.published import FOLDER, MAP


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Shards.build(tmp_path / "s", simindex.Batch(families(1, 30)), 3)
    return tmp_path / "s"


def rewritten(
    root: Path, change: Callable[[dict[str, Any]], object], *, forged: bool = False
) -> None:
    """Changes the map, with a checksum that agrees; if it is `forged` with seals that do, too."""
    content = json.loads((root / MAP).read_bytes())
    del content["checksum"]
    change(content)
    if forged and isinstance(content["shards"], list):
        for entry in content["shards"]:
            folder, _, known = entry.pop("name").partition("/")
            found = seal({**entry, "facts": content["facts"]})
            entry["name"] = f"{folder}/{found}"
            place = root / FOLDER / folder
            if known and (place / known).is_dir():
                (place / known).rename(place / found)
    content["checksum"] = shardmap._checksum(content)
    (root / MAP).write_text(json.dumps(content))


def test_a_map_comes_back_as_it_was_written(root: Path) -> None:
    found = read_map(root)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301
    write_map(replace(found, generation=2))
    assert read_map(root) == replace(found, generation=2)
    assert found.rows == 30
    assert found.h == 3
    assert found.shard(2) is found.shards[2]


def test_a_change_from_an_older_map_is_refused(root: Path) -> None:
    found = read_map(root)
    for generation in (1, 3):
        with pytest.raises(IndexLocked, match="replaced meanwhile"):
            write_map(replace(found, generation=generation))
    held = locks.hold(root)
    assert held is not None
    with held, pytest.raises(IndexLocked, match="another process"):
        write_map(replace(found, generation=2))
    assert read_map(root) == found


@pytest.mark.parametrize("call", ["write", "sync", "rename"])
def test_a_full_disk_leaves_the_old_map(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    found, before = read_map(root), sorted(root.iterdir())

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(disk.system, call, full)
        with pytest.raises(StorageFull):
            write_map(replace(found, generation=2))
    assert read_map(root) == found
    assert sorted(root.iterdir()) == before


def test_every_byte_of_a_map_counts(root: Path) -> None:
    path = root / MAP
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]):
            path.write_bytes(damaged)
            try:
                found = read_map(root)
            except SimindexError as error:
                assert isinstance(error, CorruptFile | FormatTooNew)
                assert error.remedy
            else:  # a space became another one
                assert found == read_map(root)
                assert json.loads(damaged) == json.loads(data)


LIES: list[tuple[Callable[[dict[str, Any]], object], int]] = [
    (lambda c: c["shards"][1].update(rows=9), 1),
    (lambda c: c["shards"][1].update(rows=-1), 1),
    (lambda c: c["shards"][1].update(number=7, name="00007" + c["shards"][1]["name"][5:]), 7),
    (lambda c: c["shards"][1].update(region="0"), 1),
    (lambda c: c["shards"][1].update(region=None), 1),
    (lambda c: c["shards"][1].update(least_id=9), 1),
    (lambda c: c["shards"][2].update(greatest_id=30), 2),
    (lambda c: c["shards"][1].update(uuid="0" * 32), 1),
    (lambda c: c["shards"][1].update(generation=77), 1),
    (lambda c: c["shards"][1].update(checksum="0" * 32), 1),
    (lambda c: c["shards"][1].update(rows_digest="0" * 16), 1),
    (lambda c: c["shards"][1].update(more=1), 1),
    (lambda c: c["shards"][1].pop("uuid"), 1),
    (lambda c: c["shards"][1]["files"].update(FORMAT=65), 1),
    (lambda c: c["shards"][1]["files"].popitem(), 1),
    (lambda c: c["facts"].update(bits=128), 0),
    (lambda c: c["facts"].update(recipe="0" * 32), 0),
    (lambda c: c["facts"].update(names="str"), 0),
    (lambda c: c["facts"].update(secret="0" * 32), 0),
    (lambda c: c["facts"].update(format=2), 0),
    (lambda c: c["facts"].update(sketch=64), 0),
    (lambda c: c["facts"].update(h=4), 0),
]


@pytest.mark.parametrize(("change", "number"), LIES)
def test_a_map_that_lies_about_a_shard_is_refused(
    root: Path, change: Callable[[dict[str, Any]], object], number: int
) -> None:
    """With a checksum that agrees: the name of the directory says what it was published with."""
    rewritten(root, change)
    for look in (read_map, Shards):
        with pytest.raises(CorruptFile, match=rf"shard {number} \(.*shards/0000") as raised:
            look(root)
        assert raised.value.data["shard"] == number
        assert raised.value.remedy


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.update(kind="list"), "is not a shard map"),
        (lambda c: c.update(shards=[]), "names no shard"),
        (lambda c: c["shards"].append(dict(c["shards"][0])), "names a number of a shard twice"),
        (lambda c: c["shards"][1].update(name="../../../etc"), "that is none"),
        (lambda c: c["shards"][1].update(name="00001-9f3c5a7e12d4b680"), "that is none"),
        (lambda c: c["shards"][1].update(name=5), "damaged"),
        (lambda c: c["shards"][1].update(rows_digest="0" * 16), "of other rows"),
        (lambda c: c["shards"][1].update(rows=-1), "rows=-1 of shard 1"),
        (lambda c: c["shards"][1].update(rows=True), "rows=True of shard 1"),
        (lambda c: c["shards"][1].update(region="012"), "no region of shard 1"),
        (lambda c: c["shards"][1].update(region="01,0"), "no region of shard 1"),
        (lambda c: c["shards"][1].update(region=None), "no region of shard 1"),
        (lambda c: c["shards"][1].update(region="32-31"), "no region of shard 1"),
        (lambda c: c["shards"][1].update(checksum="x"), "no checksum of shard 1"),
        (lambda c: c["shards"][1].pop("uuid"), "has no 'uuid'"),
        (lambda c: c["shards"][1].update(more=1), "unexpected keyword argument 'more'"),
        (lambda c: c["shards"][1]["files"].update({"../x": 1}), "a file of shard 1"),
        (lambda c: c["shards"][1]["files"].update({"/etc/passwd": 1}), "a file of shard 1"),
        (lambda c: c["facts"].update(h="3"), "h='3'"),
        (lambda c: c["facts"].update(h=65), "h=65 of 64 bits"),
        (
            lambda c: c["shards"][1].update(least_id=11),
            "10 rows of shard 1 with ids from 11 to 19",
        ),
        (lambda c: c["facts"].pop("h"), "damaged"),
        (lambda c: c.update(shards=3), "damaged"),
    ],
)
def test_a_map_that_contradicts_itself_is_refused(
    root: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    """Also one that somebody has forged, with the names of all directories."""
    rewritten(root, change, forged="that is none" not in says and says != "damaged")
    with pytest.raises(CorruptFile, match="damaged") as raised:
        read_map(root)
    assert says in str(raised.value)


@pytest.mark.parametrize("data", [b"", b'{"kind": "simindex', b"\xff\xfe", b"shards"])
def test_a_map_that_is_cut_short_is_said_to_be_no_json(root: Path, data: bytes) -> None:
    (root / MAP).write_bytes(data)
    with pytest.raises(CorruptFile, match=r"shards\.json is damaged: it is not JSON \("):
        read_map(root)


@pytest.mark.parametrize("facts", [[], None, {}])
def test_facts_that_are_none_are_refused(root: Path, facts: Any) -> None:
    rewritten(root, lambda content: content.update(facts=facts))
    with pytest.raises(CorruptFile, match="damaged"):
        read_map(root)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["shards"][1].update(rows=9), "a number of rows of 10, and the shard map says"),
        (lambda c: c["shards"][1].update(uuid="0" * 32), "shard 1 .* the uuid"),
        (lambda c: c["shards"][1].update(generation=77), "shard 1 .* commit"),
        (lambda c: c["shards"][1]["files"].update(FORMAT=65), "shard 1 .* is not whole: FORMAT"),
        (lambda c: c["shards"][1]["files"].update(more=1), "shard 1 .* more is missing"),
        (lambda c: c["facts"].update(bits=128), "shard 0 .* bits 64, and the shard map has 128"),
        (lambda c: c["facts"].update(recipe="0" * 32), "shard 0 .* recipe None"),
        (lambda c: c["facts"].update(names="str"), "shard 0 .* names ids"),
        (lambda c: c["facts"].update(format=2), "shard 0 .* format 1, and the shard map has 2"),
        (lambda c: c["facts"].update(h=4), "shard 0 .* h 3, and the shard map has 4"),
    ],
)
def test_a_map_that_was_forged_is_found_out_before_any_work(
    root: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    """Whoever renames the directories, too, is found out where a shard itself says otherwise."""
    rewritten(root, change, forged=True)
    with pytest.raises(SimindexError, match=says) as raised:
        Shards(root)
    assert "shard" in raised.value.data
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["shards"][1].update(region="0101010101"), "does not begin with 0101010101"),
        (lambda c: c["shards"][1].update(least_id=0), "other ids"),
        (lambda c: c["shards"][1].update(checksum="0" * 32), "other checksum of files"),
    ],
)
def test_verify_finds_what_costs_reading(
    root: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    rewritten(root, change, forged=True)
    assert says in " ".join(finding.what for finding in Shards(root).verify())


def test_a_map_of_another_version_says_so(root: Path) -> None:
    rewritten(root, lambda content: content.update(version=2))
    with pytest.raises(FormatTooNew, match="version 2"):
        read_map(root)


def test_no_map(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / "none" / "none"):
        with pytest.raises(IndexNotFound, match="no shard map"):
            read_map(path)


def test_sweep_keeps_what_is_named_young_or_not_ours(root: Path) -> None:
    Shards(root).split(1)
    folder = root / "shards"
    (folder / "notes").mkdir()
    (folder / ".00001-0123456789abcdef.01234567" / "new").mkdir(parents=True)  # of a killed task
    old = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert sweep(root) == []
    (gone,) = sweep(root, older_than_s=0)
    assert gone.startswith("00001-")
    assert {path.name for path in folder.iterdir()} == old - {gone}
    with pytest.raises(InvalidOption, match="older_than_s"):
        sweep(root, older_than_s=-1)


def test_a_shard_counts_as_old_from_when_it_was_replaced(root: Path) -> None:
    shard = read_map(root).shard(1)
    os.utime(shard.folder, (0, 0))
    Shards(root).split(1)
    assert sweep(root, older_than_s=1000) == []


def test_a_sweep_before_the_map_leaves_the_old_one(root: Path) -> None:
    """With 0 seconds it removes what an append has just published: that append is refused."""
    before = read_map(root)

    def swept(function: Any, *tasks: Any) -> Any:
        found = list(map(function, *tasks))
        if found and isinstance(found[0], Shard):
            assert sweep(root, older_than_s=0) == [shard.folder.name for shard in found]
        return found

    with pytest.raises(IndexNotFound, match="was removed before a shard map named it") as raised:
        Shards(root, run=swept).append(families(2, 1))
    assert raised.value.remedy is not None
    assert read_map(root) == before
    assert Shards(root).verify() == []
    Shards(root).append(families(2, 1))
    assert len(Shards(root)) == 31


def test_a_shard_that_is_taken_again_counts_as_new(root: Path) -> None:
    """Of an append that was killed after it had published, and is repeated two hours later."""
    now = read_map(root)
    rows = simindex.Batch(families(2, 1), ids=[30])
    left = extend_shard(now.shards[0], rows, root)
    os.utime(left.folder, (0, 0))
    again = extend_shard(now.shards[0], rows, root)
    assert again == left
    assert sweep(root) == []
    write_map(now.replaced([again]))
    assert Shards(root).verify() == []
