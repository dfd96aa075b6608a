"""text-dedup: beside it, where it is installed, else beside values that it gave."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from simindex.compat.text_dedup import batch
from simindex.errors import InvalidBatch, InvalidOption, MissingExtra

GIVEN = {
    "The quick brown fox jumps over the lazy dog.": 0xA23EC444685F346C,
    "aaaaa": 0xE4BA3228795DC9EF,
    "Ein Straßenfest in İstanbul: ΟΔΟΣ": 0x6FA6B030E9942EDF,
}
"""By `embed_func` of text-dedup 0.4.0, with n-grams of 3."""

PROGRAM = """
import json, sys
from text_dedup.simhash import embed_func
from text_dedup.utils import xxh3_64_digest
for ngram, text in json.load(sys.stdin):
    made = embed_func(text, 0, ngram=ngram, permutations=None, hash_func=xxh3_64_digest)
    print(int.from_bytes(made["__signature__"], "big"))
"""


def test_texts_have_the_fingerprints_that_text_dedup_gave() -> None:
    pytest.importorskip("xxhash")
    made = batch(GIVEN, keys=list(GIVEN))
    assert made.rows[:, 0].tolist() == list(GIVEN.values())


@pytest.mark.slow
def test_texts_have_the_fingerprints_of_the_package() -> None:
    """In a process of its own, because its import changes how processes start."""
    if importlib.util.find_spec("text_dedup") is None:
        pytest.skip("text-dedup is not installed")
    asked = [(ngram, text * ngram) for ngram in (1, 3, 9, 500) for text in GIVEN]
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(asked), capture_output=True, text=True,
        check=True,
    ).stdout
    assert [batch([text], ngram).rows[0, 0] for ngram, text in asked] == [
        int(line) for line in printed.split()
    ]


def test_a_text_of_less_than_five_characters_is_left_out() -> None:
    pytest.importorskip("xxhash")
    made = batch(["abcd", "abcde"], ids=[3, 4])
    assert made.ids is not None and made.ids.tolist() == [4]
    assert [skip.position for skip in made.skipped] == [0]


def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOption, match="ngram"):
        batch(["a text"], 0)
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(MissingExtra, match="pip install xxhash"):
        batch(["a text"])
    monkeypatch.undo()
    pytest.importorskip("xxhash")
    with pytest.raises(InvalidBatch, match="single str"):
        batch("a text")
