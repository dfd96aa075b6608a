"""Wrong calls get a typed error that names what is wrong, and leave the index as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    FormatTooNew,
    IndexExists,
    IndexNotFound,
    InvalidBatch,
    InvalidOption,
    ReadOnlyIndex,
    RecipeMismatch,
    SimindexError,
)

Tree = dict[str, tuple[int, str]]
TreeOf = Callable[[Path], Tree]
Call = Callable[[simindex.Index], object]

ONE = np.array([1], dtype=np.uint64)
TWO = np.array([1, 2], dtype=np.uint64)
WEIGHTS = np.full((2, 64), -1, dtype=np.float32)
BROKEN = WEIGHTS.copy()
BROKEN[1, 9] = np.nan
ENDLESS = WEIGHTS.copy()
ENDLESS[0, 63] = np.inf


@pytest.fixture
def filled(index_path: Path) -> Path:
    """An index with a segment and a pending row."""
    options = IndexOptions(batch_rows=64, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(np.arange(8, dtype=np.uint64), ids=np.arange(8))
        index.commit()
        index.append(ONE, ids=[9])
    return index_path


@pytest.fixture
def keyed(index_path: Path) -> Path:
    """An index whose rows are named by str keys."""
    with simindex.open(index_path, "n", options=IndexOptions(keys="str")) as index:
        index.append(TWO, keys=["one", "two"])
    return index_path


def contents(path: Path) -> list[tuple[int, Any]]:
    """Every (fingerprint, id or key) of an index."""
    with simindex.open(path) as index:
        return sorted(
            (row, name)
            for part in index.rows()
            for row, name in zip(
                part.fingerprints.tolist(), part.keys or part.ids.tolist(), strict=True
            )
        )


def refused(
    path: Path, tree: TreeOf, call: Call, error: type[SimindexError], named: tuple[str, ...]
) -> SimindexError:
    """The error of a call on a writer, once it is sure that the call left no trace."""
    before_rows = contents(path)
    with simindex.open(path, "w") as index:
        before, length = tree(path), len(index)
        with pytest.raises(error) as caught:
            call(index)
        assert tree(path) == before
        assert len(index) == length
        index.commit()
        assert len(index) == length
    assert contents(path) == before_rows
    for word in named:
        assert word in str(caught.value), f"{word!r} is missing in: {caught.value}"
    return caught.value


# Batches -----------------------------------------------------------------------------------------

BAD_BATCHES: dict[str, tuple[Call, tuple[str, ...]]] = {
    "float fingerprints": (lambda i: i.append(np.ones(2)), ("float64", "uint64")),
    "signed fingerprints": (lambda i: i.append(np.ones(2, np.int64)), ("int64", "view")),
    "text for fingerprints": (lambda i: i.append("pages"), ("str", "uint64")),
    "a fingerprint below zero": (lambda i: i.append([-1]), ("2**64",)),
    "a fingerprint too large": (lambda i: i.append([2**64]), ("2**64",)),
    "three dimensions": (lambda i: i.append(np.ones((1, 1, 1), np.uint64)), ("(1, 1, 1)",)),
    "no dimension": (lambda i: i.append(np.array(1, np.uint64)), ("()",)),
    "another width": (lambda i: i.append(np.ones((2, 2), np.uint64)), ("128", "64")),
    "another width in a batch": (lambda i: i.append(Batch(np.ones((2, 2), np.uint64))), ("128",)),
    "another width replaced": (
        lambda i: i.replace(Batch(np.ones((1, 4), np.uint64), ids=[1])), ("256", "64")
    ),
    "weights not finite": (lambda i: i.append(TWO, weights=BROKEN), ("row 1", "finite")),
    "weights infinite": (lambda i: i.append(TWO, weights=ENDLESS), ("row 0", "finite")),
    "too few weights": (lambda i: i.append(TWO, weights=WEIGHTS[:1]), ("(1, 64)", "(2, 64)")),
    "narrow weights": (lambda i: i.append(TWO, weights=WEIGHTS[:, :32]), ("(2, 32)",)),
    "weights of text": (lambda i: i.append(TWO, weights=WEIGHTS.astype(str)), ("float32",)),
    "too few ids": (lambda i: i.append(TWO, ids=[1]), ("2 fingerprints", "(1,)")),
    "ids of two dimensions": (lambda i: i.append(TWO, ids=[[1, 2]]), ("(1, 2)",)),
    "ids of fractions": (lambda i: i.append(TWO, ids=[1.0, 2.0]), ("float64", "keys=")),
    "ids of text": (lambda i: i.append(TWO, ids=["a", "b"]), ("keys=",)),
    "an id below zero": (lambda i: i.append(TWO, ids=[3, -1]), ("row 1", "-1")),
    "ids and keys": (lambda i: i.append(TWO, ids=[1, 2], keys=["a", "b"]), ("not both",)),
    "keys without a place": (lambda i: i.append(TWO, keys=["a", "b"]), ("keys",)),
    "keys without a place in a batch": (lambda i: i.append(Batch(TWO, keys=["a", "b"])), ("keys",)),
    "deleting keys without a place": (lambda i: i.delete(keys=["a"]), ("keys",)),
    "deleting ids of fractions": (lambda i: i.delete(ids=[0.5]), ("float64",)),
    "deleting an id below zero": (lambda i: i.delete(ids=[-4]), ("-4",)),
    "queries of another width": (lambda i: i.query(np.ones((1, 2), np.uint64)), ("128", "64")),
    "queries of another dtype": (lambda i: i.query(np.ones(1, np.uint32)), ("uint32",)),
    "queries with broken weights": (lambda i: i.query(Batch(TWO, weights=BROKEN)), ("row 1",)),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused(name: str, filled: Path, tree: TreeOf) -> None:
    call, named = BAD_BATCHES[name]
    refused(filled, tree, call, InvalidBatch, named)


BAD_KEYS: dict[str, tuple[Call, tuple[str, ...]]] = {
    "ids where keys belong": (lambda i: i.append(TWO, ids=[1, 2]), ("keys",)),
    "no keys": (lambda i: i.append(TWO), ("keys",)),
    "too few keys": (lambda i: i.append(TWO, keys=["a"]), ("2 fingerprints", "1 keys")),
    "one string for keys": (lambda i: i.append(TWO, keys="ab"), ("str",)),
    "keys of numbers": (lambda i: i.append(TWO, keys=["a", 2]), ("row 1", "int")),
    "keys of bytes": (lambda i: i.append(TWO, keys=[b"a", b"b"]), ("bytes", "str")),
    "keys of two types": (lambda i: i.append(TWO, keys=["a", b"b"]), ("row 1", "bytes")),
    "a key too long": (lambda i: i.append(TWO, keys=["a", "b" * 65_536]), ("row 1", "65535")),
    "deleting ids": (lambda i: i.delete(ids=[1]), ("keys",)),
    "deleting bytes": (lambda i: i.delete(keys=[b"one"]), ("bytes", "str")),
    "deleting one string": (lambda i: i.delete(keys="one"), ("str",)),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_a_bad_key_is_refused(name: str, keyed: Path, tree: TreeOf) -> None:
    call, named = BAD_KEYS[name]
    refused(keyed, tree, call, InvalidBatch, named)


def test_the_first_bad_row_is_data_of_the_error(filled: Path, tree: TreeOf) -> None:
    error = refused(filled, tree, lambda i: i.append(TWO, weights=BROKEN), InvalidBatch, ())
    assert error.data["row"] == 1
    assert error.exit_code == 2


def test_a_batch_of_another_recipe_is_refused(index_path: Path, tree: TreeOf) -> None:
    text = ["one two three four five six seven eight nine ten eleven twelve"]
    mine, other = simindex.Recipe(seed=0), simindex.Recipe(seed=5)
    with simindex.open(index_path, "n", options=IndexOptions(recipe=mine)) as index:
        index.append(mine.batch(text, ids=[1]))
    for call in (
        lambda i: i.append(other.batch(text, ids=[2])),
        lambda i: i.query(other.batch(text)),
    ):
        error = refused(index_path, tree, call, RecipeMismatch, ("seed", "0", "5"))
        assert "seed" in error.data["differences"]


# Options -----------------------------------------------------------------------------------------

BAD_OPTIONS: dict[str, tuple[Call, tuple[str, ...]]] = {
    "h below zero": (lambda i: i.query(TWO, h=-1), ("h", "-1", "64")),
    "h above the width": (lambda i: i.query(TWO, h=65), ("h", "65", "64")),
    "h of text": (lambda i: i.query(TWO, h="3"), ("h", "'3'")),
    "h of a fraction": (lambda i: i.query(TWO, h=2.5), ("h", "2.5")),
    "recall above one": (lambda i: i.query(TWO, recall=1.5), ("recall", "1.5")),
    "recall below zero": (lambda i: i.query(TWO, recall=-0.1), ("recall", "-0.1")),
    "recall not a number": (lambda i: i.query(TWO, recall=float("nan")), ("recall", "nan")),
    "recall of text": (lambda i: i.query(TWO, recall="high"), ("recall", "'high'")),
    "an unknown method": (lambda i: i.query(TWO, method="guess"), ("guess", "psm", "scan")),
    "threads below one": (lambda i: i.query(TWO, threads=0), ("threads", "0")),
    "an age without times": (lambda i: i.expire(older_than=1), ("merge", "times")),
    "nothing to delete": (lambda i: i.delete(), ("ids", "keys")),
    "ids and keys to delete": (lambda i: i.delete(ids=[1], keys=["a"]), ("ids", "keys")),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_refused(name: str, filled: Path, tree: TreeOf) -> None:
    call, named = BAD_OPTIONS[name]
    # InvalidBatch is also right where an option names rows.
    refused(filled, tree, call, (InvalidOption, InvalidBatch), named)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("bits", 63), ("bits", 0), ("bits", 8192), ("bits", "64"), ("structures", ("trie",)),
        ("structures", ()), ("batch_rows", 0), ("keys", "int"), ("min_merge", 1),
        ("reservoir_rows", -1), ("allow_remote", 1),
    ],
)
def test_an_option_out_of_range_creates_nothing(
    option: str, value: Any, index_path: Path
) -> None:
    with pytest.raises(InvalidOption, match=option):
        simindex.open(index_path, "n", options=IndexOptions(**{option: value}))
    assert not index_path.exists()


def test_an_unknown_mode_is_refused(filled: Path, tree: TreeOf) -> None:
    before = tree(filled)
    for mode in ("rw", "", "x", None):
        with pytest.raises(InvalidOption, match="mode"):
            simindex.open(filled, mode)
    assert tree(filled) == before


def test_options_that_contradict_the_index_are_refused(filled: Path, tree: TreeOf) -> None:
    before = tree(filled)
    with pytest.raises(InvalidOption, match="bits") as caught:
        simindex.open(filled, "c", options=IndexOptions(bits=128, batch_rows=64, min_merge=0))
    assert "128" in str(caught.value)
    assert "64" in str(caught.value)
    assert tree(filled) == before
    assert len(contents(filled)) == 9


# Paths -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_missing_index_is_named_and_not_made(mode: str, index_path: Path) -> None:
    with pytest.raises(IndexNotFound) as caught:
        simindex.open(index_path, mode)
    assert str(index_path) in str(caught.value)
    assert "'c'" in str(caught.value) or "build" in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert not index_path.exists()


def test_mode_n_keeps_an_index_unless_told_to_overwrite(filled: Path, tree: TreeOf) -> None:
    before = tree(filled)
    with pytest.raises(IndexExists) as caught:
        simindex.open(filled, "n")
    assert str(filled) in str(caught.value)
    assert "overwrite" in str(caught.value)
    assert tree(filled) == before
    with simindex.open(filled, "n", overwrite=True, options=IndexOptions(bits=128)) as index:
        assert len(index) == 0
    with simindex.open(filled) as index:
        assert index.stats().bits == 128
        assert index.check() == []


@pytest.mark.parametrize("mode", ["r", "w", "c", "n"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_somebody_elses_directory_is_left_alone(
    mode: str, overwrite: bool, tmp_path: Path, tree: TreeOf
) -> None:
    place = tmp_path / "photos"
    place.mkdir()
    (place / "catalog").mkdir()
    (place / "catalog" / "data.txt").write_text("mine")
    (place / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(IndexNotFound if mode in "rw" else IndexExists, match="photos"):
        simindex.open(place, mode, overwrite=overwrite)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("mode", ["r", "w", "c", "n"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_in_the_place_of_an_index_is_left_alone(
    mode: str, overwrite: bool, tmp_path: Path, tree: TreeOf
) -> None:
    (tmp_path / "pages.sim").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises((IndexNotFound, IndexExists), match=r"pages\.sim"):
        simindex.open(tmp_path / "pages.sim", mode, overwrite=overwrite)
    assert tree(tmp_path) == before


# Formats -----------------------------------------------------------------------------------------


def crc32c(data: bytes) -> int:
    """CRC-32C, one bit at a time."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def patch_format(path: Path, offset: int, value: bytes) -> None:
    """Overwrites bytes of FORMAT and seals them again, as another version would have."""
    file = path / "FORMAT"
    data = bytearray(file.read_bytes())
    assert crc32c(bytes(data[:-4])).to_bytes(4, "little") == data[-4:]
    data[offset : offset + len(value)] = value
    data[-4:] = crc32c(bytes(data[:-4])).to_bytes(4, "little")
    file.write_bytes(data)


MAJOR_AT, INCOMPATIBLE_AT, READ_COMPATIBLE_AT = 12, 16, 20
"""Frozen with the format: 8 bytes of magic, 4 of byte order, then major, minor, feature bits."""


@pytest.mark.parametrize("mode", ["r", "w", "c"])
@pytest.mark.parametrize(
    ("offset", "value"),
    [(MAJOR_AT, b"\x63\x00"), (INCOMPATIBLE_AT, b"\x00\x00\x00\x80")],
    ids=["major", "feature"],
)
def test_a_newer_format_is_refused(
    mode: str, offset: int, value: bytes, filled: Path, tree: TreeOf
) -> None:
    patch_format(filled, offset, value)
    before = tree(filled)
    with pytest.raises(FormatTooNew) as caught:
        simindex.open(filled, mode)
    assert str(filled) in str(caught.value)
    assert "newer" in str(caught.value)
    assert caught.value.exit_code == 3
    if offset == MAJOR_AT:
        assert "99" in str(caught.value)
    assert tree(filled) == before


@pytest.mark.parametrize(
    ("offset", "value"),
    [(MAJOR_AT, b"\x63\x00"), (INCOMPATIBLE_AT, b"\x00\x00\x00\x80"),
     (READ_COMPATIBLE_AT, b"\x01\x00\x00\x00")],
    ids=["major", "feature", "read-compatible"],
)
def test_a_newer_format_is_not_overwritten(
    offset: int, value: bytes, filled: Path, tree: TreeOf
) -> None:
    patch_format(filled, offset, value)
    before = tree(filled)
    with pytest.raises(FormatTooNew, match=r"newer simindex; or remove .* by hand"):
        simindex.open(filled, "n", overwrite=True)
    assert tree(filled) == before


def test_a_format_that_looks_newer_by_damage_is_overwritten(filled: Path) -> None:
    data = bytearray((filled / "FORMAT").read_bytes())
    data[MAJOR_AT] ^= 4
    (filled / "FORMAT").write_bytes(data)
    with simindex.open(filled, "n", overwrite=True) as index:
        assert len(index) == 0


@pytest.mark.parametrize("mode", ["r", "w", "c"])
@pytest.mark.parametrize("damage", ["byte", "short", "empty", "long", "foreign"])
def test_a_damaged_format_file_is_refused(
    mode: str, damage: str, filled: Path, tree: TreeOf
) -> None:
    file = filled / "FORMAT"
    data = bytearray(file.read_bytes())
    flipped = data.copy()
    flipped[30] ^= 4
    file.write_bytes(
        {
            "byte": flipped,
            "short": data[:40],
            "empty": b"",
            "long": data + b"x",
            "foreign": b"SQLite format 3\x00" * 4,
        }[damage]
    )
    before = tree(filled)
    with pytest.raises(CorruptFile, match="FORMAT") as caught:
        simindex.open(filled, mode)
    assert str(filled) in str(caught.value)
    assert tree(filled) == before


@pytest.mark.parametrize("damage", ["missing", "short", "empty"])
def test_a_segment_that_is_not_whole_is_named(damage: str, filled: Path, tree: TreeOf) -> None:
    (segment,) = (filled / "segments").glob("*.rows")
    content = segment.read_bytes()
    segment.unlink()
    if damage != "missing":
        segment.write_bytes(content[: len(content) // 2] if damage == "short" else b"")
    before = tree(filled)
    with pytest.raises(CorruptFile) as caught, simindex.open(filled) as index:
        index.query(TWO, h=3)
    assert segment.name in str(caught.value)
    assert tree(filled) == before


# Handles -----------------------------------------------------------------------------------------

WRITING: dict[str, Call] = {
    "append": lambda i: i.append(ONE, ids=[1]),
    "replace": lambda i: i.replace(Batch(ONE, ids=[1])),
    "delete": lambda i: i.delete(ids=[1]),
    "expire": lambda i: i.expire(older_than=1),
    "commit": lambda i: i.commit(),
    "compact": lambda i: i.compact(),
}


@pytest.mark.parametrize("name", WRITING)
def test_a_reader_refuses_to_write(name: str, filled: Path, tree: TreeOf) -> None:
    before = tree(filled)
    with (
        simindex.open(filled) as index,
        pytest.raises(ReadOnlyIndex, match=r"'w'|reading") as caught,
    ):
        WRITING[name](index)
    assert str(filled) in str(caught.value)
    assert tree(filled) == before


@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_closed_handle_says_so(mode: str, filled: Path) -> None:
    index = simindex.open(filled, mode)
    index.close()
    index.close()
    for call in (lambda: index.query(TWO), index.stats, lambda: len(index), index.refresh):
        with pytest.raises(ClosedIndex, match="open"):
            call()
    if mode == "w":
        with pytest.raises((ClosedIndex, ReadOnlyIndex)):
            index.append(ONE, ids=[1])


def test_an_error_in_a_batch_does_not_spoil_the_handle(filled: Path) -> None:
    with simindex.open(filled, "w") as index:
        index.append(ONE, ids=[50])
        with pytest.raises(InvalidBatch):
            index.append(ONE, ids=[51, 52])
        index.append(ONE, ids=[53])
    assert {name for _, name in contents(filled)} == {*range(8), 9, 50, 53}


def test_every_error_can_be_caught_by_its_root() -> None:
    for kind in (InvalidBatch, IndexNotFound, IndexExists, CorruptFile, FormatTooNew):
        assert issubclass(kind, SimindexError)


# -- structures -----------------------------------------------------------------------------------


def test_an_index_keeps_its_structures_if_none_are_asked_for(index_path: Path) -> None:
    """Those of a new index are a default, not a demand."""
    for own in (("psm",), ("psm", "bphs:G=4,g=1")):
        options = IndexOptions(keys=True, structures=own)
        with simindex.open(index_path, "n", options=options, overwrite=True) as index:
            index.append(Batch(TWO, keys=["a", "b"]))
        for mode in ("c", "w", "r"):
            with simindex.open(
                index_path, mode, options=IndexOptions(keys=True)  # type: ignore[arg-type]
            ) as index:
                assert index.options.structures == own
    with simindex.open(index_path, "w", options=IndexOptions(keys=True)) as index:
        index.compact(structures=("psm",))
    other = IndexOptions(keys=True, structures=("psm", "bphs:G=4,g=1"))
    with pytest.raises(InvalidOption, match="compact --structures"):
        simindex.open(index_path, options=other)
    simindex.open(index_path, options=IndexOptions(keys=True)).close()


def test_wide_fingerprints_have_no_tables_by_default() -> None:
    assert replace(IndexOptions(), bits=256).structures == IndexOptions(bits=256).structures
    assert IndexOptions(bits=256).structures == ("psm",)
    assert replace(IndexOptions(bits=256), bits=64).structures == IndexOptions().structures
    given = ("psm", "bphs:G=3,g=1,r=2")
    assert IndexOptions(bits=256, structures=given).structures == given


@pytest.mark.parametrize(
    "method", ["bphs:", "bphs:foo", "bphs:G=", "bphs:G=4,g=1,r=0", "bphs:G=4,g=1 "]
)
def test_a_malformed_structure_is_no_method(filled: Path, method: str) -> None:
    refused = pytest.raises(InvalidOption, match="is not the name of a structure")
    with simindex.open(filled) as index, refused:
        index.query(TWO, method=method)


def test_stats_tell_of_the_segments_that_were_searched(index_path: Path) -> None:
    options = IndexOptions(batch_rows=8, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        for first in (0, 100, 200):
            index.append(np.arange(first, first + 8, dtype=np.uint64) << np.uint64(40))
            index.commit()
        asked = np.array([3 << 40, 5 << 40], np.uint64)
        assert index.query(asked, h=0).stats.segments == 3
        assert index.query(asked, h=0, first=True).stats.segments == 1
        assert index.query(asked ^ np.uint64(1), h=0, first=True).stats.segments == 3


def test_repair_takes_no_array_for_a_flag(index_path: Path) -> None:
    simindex.open(index_path, "c").close()
    (index_path / "FORMAT").unlink()
    with pytest.raises(InvalidOption, match="apply"):
        simindex.repair(index_path, apply=np.array([1, 0]))  # type: ignore[arg-type]
    assert not (index_path / "FORMAT").exists()


def test_a_path_is_no_text(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(recipe=simindex.Recipe())) as index:
        for given in (index_path, [index_path]):
            with pytest.raises(InvalidBatch, match=r"a path is not read: give the text"):
                index.query(given, h=1)


def test_another_folder_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    with pytest.raises(IndexNotFound, match=r"which holds 'a\.md': name the folder"):
        simindex.open(tmp_path)
