"""A recipe's identity, and the bytes that bring it back; damaged and newer ones are refused."""

from __future__ import annotations

import hashlib
import pickle
import shlex
import struct
import textwrap
from dataclasses import replace

import msgpack
import numpy as np
import pytest
import simhash_oracle as oracle

from simindex.errors import CorruptFile, FormatTooNew, InvalidBatch
from simindex.simhash.document_frequencies import DocumentFrequencies
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import IdfTable

CORPUS = [*oracle.SCRIPTS, *oracle.ODDITIES, "the fox and the dog", "the the the"]


VARIANTS = [
    Recipe(),
    Recipe(bits=128),
    Recipe(unit="char"),
    Recipe(ngram=2),
    Recipe(ngram=(2, 3)),
    Recipe(weighting="binary"),
    Recipe(weighting="tfidf"),
    Recipe(seed=1),
    Recipe(min_features=2),
    Recipe(sketch_bits=64),
    Recipe(sketch_bits=512),
    Recipe(weighting="tfidf").fit(["a b c"]),
    Recipe(weighting="tfidf").fit(["a b c", "a b c"]),
    Recipe(weighting="tfidf").fit(["a b d"]),
]


OTHERS = [
    *(Recipe(weighting=name) for name in ("tf", "idf", "sublinear-tfidf", "given")),
    Recipe(projection="gaussian"), Recipe(projection="ternary"),
    Recipe(stop_words=["the"]), Recipe(stop_words=["a"]), Recipe(stop_words="en"),
    Recipe(stemmer="english"), Recipe(stemmer="german"), Recipe(tokenizer=textwrap.wrap),
    Recipe(tokenizer=shlex.split), Recipe(weighting="sublinear-tfidf").fit(["a b d"]),
]  # fmt: skip


def test_identity_tells_all_recipes_apart_and_is_stable():
    every = [*VARIANTS, *OTHERS]
    assert len({recipe.identity for recipe in every}) == len(set(every)) == len(every)
    assert Recipe(stop_words=["B", "a", "a"]) == Recipe(stop_words=("a", "b"))
    assert Recipe(ngram=(2, 1)) == Recipe(64, "word", (1, 2), "sublinear") == Recipe()
    assert Recipe(unit="char") == Recipe(unit="char", ngram=(5,))
    deciding = {name: value for name, value in Recipe().to_dict().items() if name != "h"}
    assert Recipe().identity == hashlib.blake2b(
        msgpack.packb(sorted(deciding.items())), digest_size=16
    ).hexdigest()
    assert Recipe() != "recipe"


def test_golden_identity_and_fingerprint():
    """Frozen: stored indexes compare with these."""
    for recipe, identity, digits, further in (
        (
            Recipe(), "9a5e21cde42484c59072a24cea77e217", "7abf448dc9e2665c",
            ["fc4972545d5114e1", "f331876f9023c398"],
        ),
        (
            Recipe(ngram=3, weighting="tf"), "ca37cba39a007fc1b6f14c40a4b0fbf2",
            "f8130a3876855016", ["db58016aa7c4f79a", "9b96f7893990ed4e"],
        ),
    ):
        assert recipe.identity == identity
        batch = recipe.fingerprint("The quick brown fox jumps over the lazy dog")
        assert f"{int(batch.fingerprints[0]):016x}" == digits
        sketched = replace(recipe, sketch_bits=128)
        assert replace(sketched, sketch_bits=0).identity == identity
        assert "sketch_bits" not in recipe.to_dict()
        batch = sketched.fingerprint("The quick brown fox jumps over the lazy dog")
        assert f"{int(batch.fingerprints[0]):016x}" == digits
        assert [f"{word:016x}" for word in batch.sketch[0].tolist()] == further


def test_differences_name_what_differs():
    assert Recipe().differences(Recipe()) == {}
    assert Recipe().differences(Recipe(bits=128, seed=4)) == {"bits": (64, 128), "seed": (0, 4)}
    for mine, theirs in ((0, 512), (512, 0), (512, 64)):
        found = Recipe(sketch_bits=mine).differences(Recipe(sketch_bits=theirs))
        assert found == {"sketch_bits": (mine, theirs)}
    fitted, other = VARIANTS[-3], VARIANTS[-1]
    assert set(fitted.differences(other)) == {"idf_digest"}


@pytest.mark.parametrize("recipe", [*VARIANTS, *OTHERS], ids=repr)
def test_bytes_and_pickles_bring_the_recipe_back(recipe):
    for back in (Recipe.from_bytes(recipe.to_bytes()), pickle.loads(pickle.dumps(recipe))):  # noqa: S301
        assert back == recipe and back.to_dict() == recipe.to_dict()
        if isinstance(back.tokenizer, str):
            back = back.using(recipe.tokenizer)
        if recipe.fitted and recipe.weighting != "given":
            assert (
                back.batch(CORPUS).weights.tolist() == recipe.batch(CORPUS).weights.tolist()
            )


@pytest.mark.parametrize("recipe", [Recipe(), VARIANTS[-1]], ids=["unfitted", "fitted"])
def test_any_damage_to_the_bytes_is_noticed(recipe):
    content = recipe.to_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(bytes(damaged))
    for length in range(len(content)):
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(content[:length])
    with pytest.raises(CorruptFile):
        Recipe.from_bytes(content + b"\0")


def sealed(header, arrays=b"", version=1, length=None) -> bytes:
    prefix = struct.pack("<8sII", b"SIMRECIP", version, len(header) if length is None else length)
    content = prefix + header + arrays
    return content + hashlib.blake2b(content, digest_size=16).digest()


FITTED = VARIANTS[-1]


VALUES = {**FITTED.to_dict(), "unseen": FITTED.idf.unseen}


ARRAYS = FITTED.idf.hashes.tobytes() + FITTED.idf.steps.tobytes()


def test_what_sealed_makes_is_what_is_written():
    assert sealed(msgpack.packb(VALUES), ARRAYS) == FITTED.to_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 63}, {"bits": "64"}, {"unit": ["word"]}, {"ngram": [3]}, {"ngram": []},
        {"ngram": {}}, {"weighting": "tf"}, {"seed": None}, {"tokenizer": 0}, {"tokenizer": "1"},
        {"tokenizer": None}, {"projection": "x"}, {"projection": 0},
        {"unicode": None}, {"unicode": "1"}, {"stop_words": ["b", "a"]}, {"stop_words": "en"},
        {"stop_words": ["A"]}, {"stop_words": {}}, {"stop_words": [1]}, {"stemmer": 0},
        {"documents": 0}, {"documents": -1}, {"documents": 2**60}, {"documents": None},
        {"features": 2}, {"features": -1}, {"features": None}, {"features": True},
        {"unseen": 1}, {"unseen": 2**20}, {"unseen": None}, {"idf_digest": "00"}, {"more": 1},
        {"h": None}, {"h": 65}, {"h": "6"},
    ],
    ids=str,
)  # fmt: skip
def test_sealed_bytes_with_a_wrong_header_are_refused(change):
    with pytest.raises(CorruptFile):
        Recipe.from_bytes(sealed(msgpack.packb({**VALUES, **change}), ARRAYS))


def test_sealed_bytes_without_a_name_or_with_another_shape_are_refused():
    for name in VALUES:
        header = msgpack.packb({key: value for key, value in VALUES.items() if key != name})
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(sealed(header, ARRAYS))
    for header in (b"", b"\xc1", b"\x93\x01", msgpack.packb([1]), b"\x81\x90\x01", b"\x81\xc0\x01"):
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(sealed(header))
    for length in (0, 5, 2**32 - 1):
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(sealed(msgpack.packb(VALUES), ARRAYS, length=length))
    with pytest.raises(CorruptFile):
        Recipe.from_bytes(sealed(msgpack.packb(VALUES), ARRAYS, version=0))


def test_an_idf_table_out_of_order_is_refused():
    three = Recipe(ngram=1, weighting="tfidf").fit(["a b c"])
    table = three.idf
    values = {**three.to_dict(), "unseen": table.unseen}
    for hashes, steps in (
        (table.hashes[::-1], table.steps),
        (table.hashes[[0, 0, 1]], table.steps),
        (table.hashes, table.steps - np.uint32(4096)),
        (table.hashes, table.steps + np.uint32(1 << 20)),
    ):
        broken = IdfTable(table.documents, hashes, steps, table.unseen, table.source)
        header = msgpack.packb({**values, "idf_digest": broken.digest})
        with pytest.raises(CorruptFile, match="out of order or out of range"):
            Recipe.from_bytes(sealed(header, hashes.tobytes() + steps.tobytes()))


def test_newer_bytes_are_refused_as_newer():
    with pytest.raises(FormatTooNew):
        Recipe.from_bytes(sealed(b"", version=2))
    with pytest.raises(FormatTooNew, match="tokenizer 2"):
        Recipe.from_bytes(sealed(msgpack.packb({**VALUES, "tokenizer": 2}), ARRAYS))


def test_the_representation_is_short_and_says_what_was_learned():
    recipe = Recipe()
    assert repr(recipe) == f"<Recipe 64 bits, word (1, 2), sublinear, h=7, {recipe.identity[:8]}>"
    assert "fitted on 2 documents" in repr(VARIANTS[-2])


def test_what_is_no_bytes_is_refused():
    for read in (Recipe.from_bytes, DocumentFrequencies.from_bytes):
        for wrong in ("abc", None, 5):
            with pytest.raises(InvalidBatch, match="give bytes"):
                read(wrong)
    with pytest.raises(InvalidBatch, match="cannot be merged"):
        DocumentFrequencies().merge(5)
