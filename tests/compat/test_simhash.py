"""The package simhash of PyPI: beside it, where it is installed, and beside brute force."""

from __future__ import annotations

import gc
import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.compat import named_rows
from simindex.compat.simhash import Simhash, SimhashIndex, batch
from simindex.errors import InvalidBatch, InvalidOption

TEXTS = st.text(st.sampled_from("abc ß漢字Ä-1_.\n"), max_size=30)
FEATURES = st.lists(
    st.one_of(st.text(max_size=3), st.tuples(st.text(max_size=3), st.integers(0, 120))),
    min_size=1, max_size=8,
)


def theirs() -> Any:
    found = pytest.importorskip("simhash")
    if not hasattr(found, "SimhashIndex"):
        pytest.skip("another package of this name is installed")
    return found


def of_sha512(data: bytes) -> bytes:
    return hashlib.sha512(data).digest()


def as_number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest(), "big")


@given(TEXTS, st.sampled_from([8, 64, 128]))
def test_texts_have_the_fingerprints_of_the_package(text: str, f: int) -> None:
    assert Simhash(text, f).value == theirs().Simhash(text, f).value
    assert Simhash(text, f, r"\w").value == theirs().Simhash(text, f, r"\w").value


@given(st.lists(TEXTS, max_size=5))
def test_many_texts_have_the_fingerprints_of_each(texts: list[str]) -> None:
    numbers = batch(texts).rows[:, 0].tolist()
    assert numbers == [Simhash(text).value for text in texts]
    assert numbers == [theirs().Simhash(text).value for text in texts]
    numbers = batch(texts, r"\w").rows[:, 0].tolist()
    assert numbers == [Simhash(text, reg=r"\w").value for text in texts]


def test_values_are_those_of_the_package() -> None:
    """Of simhash 2.1.2, where no package is installed to compare with."""
    texts = ["The quick brown fox jumps over the lazy dog.", "", "aaaaaa 漢字漢字"]
    assert batch(texts, keys=["fox", "none", "more"]).rows[:, 0].tolist() == [
        0x2C2A1290908A898A, 0xE9800998ECF8427E, 0xD52F80C4663D85E5
    ]


@given(FEATURES, st.sampled_from([None, of_sha512, as_number]), st.sampled_from([64, 128]))
@pytest.mark.slow
def test_features_have_the_fingerprints_of_the_package(
    features: list[Any], hashfunc: Any, f: int
) -> None:
    options = {} if hashfunc is None else {"hashfunc": hashfunc}
    assert Simhash(features, f, **options).value == theirs().Simhash(features, f, **options).value


@given(st.dictionaries(st.text(max_size=3), st.integers(-5, 120), min_size=1, max_size=8))
def test_weights_have_the_fingerprints_of_the_package(features: dict[str, int]) -> None:
    """Those below 0, too, and both sides of REPEATED."""
    assert Simhash(features).value == theirs().Simhash(features).value


def test_a_bit_is_one_where_more_than_half_of_the_weights_have_it() -> None:
    hashes = {"a": 0b1100, "b": 0b1010, "c": 0b0110}
    made = Simhash(
        [("a", 2), ("b", 1), ("c", 1)], 8, hashfunc=lambda data: hashes[data.decode()]
    )
    assert made.value == 0b1100
    assert Simhash([], 8).value == 0


def test_numbers_and_copies_are_taken_as_they_are() -> None:
    one = Simhash(0b1011)
    assert one == Simhash(one) and one.value == 11
    assert one.distance(Simhash(0b1000)) == 2
    assert one != Simhash(0) and one != 11
    compiled = Simhash("a text", reg=re.compile("[a-z]+"))
    assert compiled == Simhash("a text", reg="[a-z]+")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidOption, match="multiple of 8"):
        Simhash("a", f=12)
    for wrong in (None, 1.5, b"bytes"):
        with pytest.raises(InvalidBatch, match="no fingerprint is made of"):
            Simhash(wrong)
    for features in (["a", 1], [("a", 1), ("b",)], {"a": 1, "b": None}, [("a", 1), (b"b", 1)]):
        with pytest.raises(InvalidBatch, match="feature 1 is neither a str nor a pair"):
            Simhash(features)
    with pytest.raises(InvalidOption, match="16 bytes, and f=256 takes 32"):
        Simhash("a text", f=256)
    with pytest.raises(InvalidOption, match="the same f"):
        Simhash(1, f=64).distance(Simhash(1, f=32))
    with pytest.raises(InvalidOption, match="k="):
        SimhashIndex([], k=-1)
    with SimhashIndex([], f=64) as index, pytest.raises(InvalidOption, match="the same f"):
        index.add("a", Simhash(1, f=32))


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "delete", "ask"]), st.sampled_from("abc"), st.integers(0, 15)
    ),
    max_size=12,
)


@given(OPERATIONS, st.sampled_from([8, 64, 128]), st.integers(0, 2), st.sampled_from([2, 4096]))
@pytest.mark.slow
def test_an_index_answers_as_a_set_does(
    operations: list[tuple[str, str, int]], f: int, k: int, recent: int
) -> None:
    held: set[tuple[str, int]] = set()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(named_rows, "RECENT", recent)
        index = SimhashIndex([("z", Simhash(3, f))], f, k, path=Path(folder, "i.sim"))
        held.add(("z", 3))
        for what, name, value in operations:
            fingerprint = Simhash(value | 1 << f - 1, f)
            if what == "add":
                index.add(name, fingerprint)
                held.add((name, fingerprint.value))
            elif what == "delete":
                index.delete(name, fingerprint)
                held.discard((name, fingerprint.value))
            else:
                assert sorted(index.get_near_dups(fingerprint)) == sorted({
                    name for name, other in held
                    if (other ^ fingerprint.value).bit_count() <= k
                })
        index.close()
        index.close()
        with SimhashIndex([], f, k, path=Path(folder, "i.sim")) as again:
            for name, other in held:
                assert name in again.get_near_dups(Simhash(other, f))


def test_the_nearest_come_first_and_names_are_texts() -> None:
    with SimhashIndex([(1, Simhash(0b111)), ("b", Simhash(0b1)), ("a", Simhash(0b1))]) as index:
        assert index.get_near_dups(Simhash(0b1)) == ["a", "b", "1"]


@pytest.mark.slow
def test_what_is_dropped_is_stored_and_what_is_temporary_goes(tmp_path: Path) -> None:
    index = SimhashIndex([("a", Simhash(5))], path=tmp_path / "i.sim")
    del index
    gc.collect()
    with SimhashIndex([], path=tmp_path / "i.sim") as again:
        assert again.get_near_dups(Simhash(5)) == ["a"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        SimhashIndex([("a", Simhash(5))]).close()
    assert [path.name for path in tmp_path.iterdir()] == ["i.sim"]


def test_deletions_wait_for_a_commit_and_are_counted_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_rows, "RECENT", 4)
    names = [(f"n{number}", Simhash(number << 8)) for number in range(8)]
    with SimhashIndex([*names, ("n1", Simhash(1 << 30))], path=tmp_path / "i.sim", k=0) as index:
        committed = index._rows._index.generation
        for name, fingerprint in names[:3]:
            index.delete(name, fingerprint)
            assert index.get_near_dups(fingerprint) == []
        assert index.get_near_dups(Simhash(1 << 30)) == ["n1"]
        index.add("n2", names[2][1])
        assert index.get_near_dups(names[2][1]) == ["n2"]
        assert index._rows._index.generation == committed
    with SimhashIndex([], path=tmp_path / "i.sim", k=0) as again:
        found = [again.get_near_dups(fingerprint) for _, fingerprint in names]
        assert found == [[], [], *([name] for name, _ in names[2:])]
        assert again.get_near_dups(Simhash(1 << 30)) == ["n1"]
