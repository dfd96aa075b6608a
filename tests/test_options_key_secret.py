"""The secret that keys are hashed with: where it comes from, where it is kept, who sees it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from siphash import key_id

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile, InvalidBatch, InvalidOption
from simindex.storage.tables import tombstones
from simindex.writing import waiting

SECRET = bytes(range(200, 216))
OTHER = bytes(range(100, 116))


def made(path: Path, **options: Any) -> simindex.Index:
    return simindex.open(path, "n", options=IndexOptions(**options), overwrite=True)


def shown(secret: bytes) -> list[str]:
    """How text may show a secret, or half of it."""
    return [form for part in (secret, secret[:8], secret[8:])
            for form in (repr(part)[2:-1], part.hex(), part.hex().upper(), str(list(part))[1:-1])]


# -- the option -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "secret", [b"", bytes(15), bytes(17), bytes(32), "0" * 16, 0, [0] * 16, bytearray(16), True]
)
def test_secret_is_16_bytes(secret: Any) -> None:
    with pytest.raises(InvalidOption, match=r"key_secret.*16 bytes") as caught:
        IndexOptions(keys=True, key_secret=secret)
    assert caught.value.data["option"] == "key_secret"


def test_a_wrong_secret_is_not_told() -> None:
    with pytest.raises(InvalidOption) as caught:
        IndexOptions(keys=True, key_secret=SECRET + b"\n")
    told = f"{caught.value} {caught.value!r} {caught.value.data}"
    assert [form for form in shown(SECRET) if form in told] == []


def test_secret_is_for_keys() -> None:
    with pytest.raises(InvalidOption, match="keys=True"):
        IndexOptions(key_secret=SECRET)
    with pytest.raises(InvalidOption, match="keys=True"):
        replace(IndexOptions(keys=True, key_secret=SECRET), keys=False)


def test_repr_does_not_show_it() -> None:
    options = IndexOptions(keys=True, key_secret=SECRET)
    assert "key_secret" not in repr(options)
    assert options != replace(options, key_secret=OTHER)


# -- in an index ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", ["str", "bytes"])
def test_creating_an_index_with_keys_draws_one(index_path: Path, keys: Any) -> None:
    drawn = set()
    for _ in range(2):
        with made(index_path, keys=keys) as index:
            secret = index.options.key_secret
            assert isinstance(secret, bytes)
            assert len(secret) == 16
            drawn.add(secret)
    assert len(drawn) == 2
    with simindex.open(index_path, "r") as index:
        assert index.options.key_secret == secret


def test_it_is_drawn_from_the_systems_chance(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: drawn.append(size) or real(size))
    made(index_path, keys=True).close()
    assert drawn.count(16) == 2  # with the index's own name
    drawn.clear()
    made(index_path).close()
    made(index_path, keys=True, key_secret=SECRET).close()
    assert drawn.count(16) == 2


def test_an_index_without_keys_has_none(index_path: Path) -> None:
    with made(index_path) as index:
        assert index.options.key_secret is None
        assert "key_secret" not in index.options.to_dict()


def test_indexes_that_share_a_secret_give_equal_ids(tmp_path: Path) -> None:
    """On whatever machine, without a word between them."""
    keys = ["", "a", "http://example.org/page", "é漢"]
    rows = np.arange(4, dtype=np.uint64)
    with made(tmp_path / "a", keys=True) as first:
        secret = first.options.key_secret
        ids = first.append(Batch(rows, keys=keys)).tolist()
    with made(tmp_path / "b", keys=True, key_secret=secret) as second:
        assert second.append(Batch(rows[::-1], keys=keys[::-1])).tolist() == ids[::-1]
    with made(tmp_path / "c", keys=True) as third:
        assert not set(third.append(Batch(rows, keys=keys)).tolist()) & set(ids)
    assert ids == [key_id(key, secret) for key in keys]


def test_every_way_in_makes_the_same_id(index_path: Path) -> None:
    row = np.array([7], np.uint64)
    with made(index_path, keys=True, key_secret=SECRET) as index:
        wanted = key_id("k", SECRET)
        assert index.append(Batch(row, keys=["k"])).tolist() == [wanted]
        index.commit()
        assert index.query(row, h=0).id.tolist() == [wanted]
        assert index.seen_or_add(Batch(row ^ np.uint64(2**40 - 1)), "w", h=0) is None
        waiting = index.seen_or_add(Batch(row ^ np.uint64(2**40 - 1)), "x", h=0)
        assert waiting is not None
        assert (waiting.key, waiting.id) == ("w", key_id("w", SECRET))
        index.commit()
        index.ingest(Batch(row + np.uint64(1), keys=["i"]), h=0)
        index.replace(Batch(row, keys=["k"]))
        index.commit()
        index.compact(full=True)
        found = index.query(row, h=8)
        assert sorted(zip(found.id.tolist(), found.keys() or [], strict=True)) == sorted(
            (key_id(key, SECRET), key) for key in "ki"
        )
        assert index.check() == []


def test_opening_agrees_with_the_secret_or_leaves_it_out(index_path: Path) -> None:
    made(index_path, keys=True, key_secret=SECRET).close()
    for mode in ("r", "w", "c"):
        for secret in (None, SECRET):
            options = IndexOptions(keys=True, key_secret=secret)
            with simindex.open(index_path, mode, options=options) as index:  # type: ignore[arg-type]
                assert index.options.key_secret == SECRET
        with pytest.raises(InvalidOption, match="another secret") as caught:
            options = IndexOptions(keys=True, key_secret=OTHER)
            simindex.open(index_path, mode, options=options)  # type: ignore[arg-type]
        told = f"{caught.value} {caught.value!r} {caught.value.data}"
        assert [form for form in shown(SECRET) + shown(OTHER) if form in told] == []


def test_an_index_without_keys_refuses_one(index_path: Path) -> None:
    made(index_path).close()
    with pytest.raises(InvalidOption, match="keys"):
        simindex.open(index_path, "r", options=IndexOptions(keys=True, key_secret=SECRET))


def test_nothing_prints_it(index_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with made(index_path, keys=True, key_secret=SECRET, batch_rows=8) as index:
        index.append(Batch(np.arange(20, dtype=np.uint64), keys=[f"k{i}" for i in range(20)]))
        index.commit()
        index.delete(keys=["k3"])
        index.compact(full=True)
        said = [repr(index), repr(index.stats()), str(index.check()), repr(index.options)]
        said += [str(index.explain(np.array([3], np.uint64)))]
    report = simindex.repair(index_path)
    said += [repr(report), str(report), caplog.text]
    for text in said:
        assert [form for form in shown(SECRET) if form in text] == []


def test_segments_alone_keep_it(index_path: Path) -> None:
    keys = [f"k{i}" for i in range(40)]
    with made(index_path, keys=True, batch_rows=8, min_merge=0) as index:
        secret = index.options.key_secret
        index.append(Batch(np.arange(40, dtype=np.uint64), keys=keys))
    (index_path / "catalog" / "data.mdb").unlink()
    simindex.repair(index_path, apply=True)
    with simindex.open(index_path, "w") as index:
        assert index.options.key_secret == secret
        assert {finding.severity for finding in index.check()} == {"note"}
        index.delete(keys=keys[3:])
        index.commit()
        assert sorted(index.query(np.arange(40, dtype=np.uint64), h=0).keys() or []) == keys[:3]


# -- check, repair and bounds ---------------------------------------------------------------------


@pytest.fixture
def wrong_hashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Keys that are hashed with another secret than the index's, until it is undone."""
    heap = simindex.storage.tables.keys.KeyHeap
    real = heap.hashes
    with monkeypatch.context() as patch:
        patch.setattr(heap, "hashes", lambda keys, _: real(keys, OTHER))
        yield patch


@pytest.mark.parametrize("batch_rows", [8, 1 << 20], ids=["segment", "pending"])
def test_check_finds_keys_and_deletions_of_another_secret(
    index_path: Path, batch_rows: int, wrong_hashes: pytest.MonkeyPatch
) -> None:
    options = {"keys": True, "key_secret": SECRET, "batch_rows": batch_rows, "min_merge": 0}
    with made(index_path, **options) as index:
        index.append(Batch(np.arange(10, dtype=np.uint64), keys=[f"k{i}" for i in range(10)]))
        index.commit()
        index.delete(keys=["k3", "k4"])
        index.commit()
        wrong_hashes.undo()
        found = [finding.what for finding in index.check()]
        assert [what for what in found if "does not make its id" in what]
        assert [what for what in found if "2 deletions are under ids" in what]


def test_keys_of_a_commits_deletions_are_bounded_in_bytes(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MAX_DELETED_KEY_BYTES", 100)
    with made(index_path, keys="bytes") as index:
        index.append(Batch(np.arange(4, dtype=np.uint64), keys=[b"a" * 60, b"b" * 40, b"c", b""]))
        index.commit()
        index.delete(keys=[b"a" * 60])
        with pytest.raises(InvalidBatch, match="commit more often"):
            index.delete(keys=[b"b" * 41])
        assert index.delete(keys=[b"b" * 40]) == 1  # what was refused is not counted
        with pytest.raises(InvalidBatch, match="bytes"):
            index.delete(keys=[b"c"])
        index.delete(keys=[b""])
        index.commit()
        index.delete(keys=[b"x" * 100])
        assert len(index) == 1


def test_repair_counts_deletions_that_cannot_be_read_as_lost(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their checksums hold, and their keys are out of bounds."""
    rows = np.arange(10, dtype=np.uint64)
    index = made(index_path, keys=True, batch_rows=64, min_merge=0)
    index.append(Batch(rows, keys=[f"k{i}" for i in range(10)]))
    index.commit()
    real = tombstones.Tombstones.encode
    monkeypatch.setattr(tombstones.Tombstones, "encode", lambda self: real(self)[:-1])
    index.delete(keys=["k3"])
    with pytest.raises(CorruptFile, match="tombstones"):
        index.commit()
        index.query(rows, h=0)
    index.close()
    with pytest.raises(CorruptFile, match="tombstones"):
        simindex.open(index_path, "r")
    report = simindex.repair(index_path, apply=True)
    assert "1 deletions" in repr(report)
    with simindex.open(index_path, "r") as index:
        assert len(index) == 10
        assert {finding.severity for finding in index.check()} == {"note"}
