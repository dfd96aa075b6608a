"""Preparing text: what is a word, what is folded, what is refused."""

from __future__ import annotations

import sys
import unicodedata
from importlib.metadata import metadata
from itertools import pairwise

import numpy as np
import pytest
import regex
import simhash_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import InvalidBatch
from simindex.simhash import features
from simindex.simhash._word_ranges import UNICODE_VERSION
from simindex.simhash.features import prepare, prepared_slices


def reference(text: str, unit: str) -> bytes:
    if unit == "word":
        return " ".join(oracle.words(text)).encode("utf-8")
    return " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")


def test_every_code_point_is_a_word_character_exactly_where_regex_says_so():
    """Code points that another Unicode version added are left out when `regex` has another one."""
    ours = features._kept("word")
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    theirs = np.zeros(len(everything), dtype=bool)
    for match in regex.finditer(r"\w+", everything):
        theirs[match.start() : match.end()] = True
    differing = np.flatnonzero(ours != theirs).tolist()
    same_tables = f"Unicode {UNICODE_VERSION}" in regex_description()
    assert [c for c in differing if same_tables or unicodedata.category(chr(c)) != "Cn"] == []


def regex_description() -> str:
    return str(metadata("regex").json.get("description", ""))


def test_white_space_is_what_python_calls_so():
    kept = features._kept("char")
    assert [c for c in range(sys.maxunicode + 1) if chr(c).isspace()] == (
        np.flatnonzero(~kept).tolist()
    )


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("text", oracle.SCRIPTS + oracle.ODDITIES)
def test_scripts_and_odd_strings_are_prepared_as_defined(unit, text):
    assert prepare(text, unit) == reference(text, unit)


@pytest.mark.parametrize("unit", ["word", "char"])
@given(text=oracle.texts)
def test_prepared_text_is_as_defined(unit, text):
    assert prepare(text, unit) == reference(text, unit)


@pytest.mark.parametrize("unit", ["word", "char"])
@given(text=st.text(st.characters(max_codepoint=127), max_size=80))
def test_the_ascii_path_agrees_with_the_definition(unit, text):
    assert prepare(text, unit) == reference(text, unit)


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7])
@given(text=oracle.texts)
def test_a_long_text_prepared_in_pieces_is_the_same(unit, piece, text):
    before = features._PIECE
    features._PIECE = piece
    try:
        assert prepare(text, unit) == reference(text, unit)
    finally:
        features._PIECE = before


def test_combining_marks_stay_inside_their_word():
    assert prepare("Cafe\u0301 हिन्दी", "word") == "cafe\u0301 हिन्दी".encode()


@pytest.mark.parametrize(("most_bytes", "most_texts"), [(1, 99), (10, 99), (1 << 20, 2)])
def test_slices_hold_the_texts_in_order_within_their_bounds(monkeypatch, most_bytes, most_texts):
    monkeypatch.setattr(features, "SLICE_BYTES", most_bytes)
    monkeypatch.setattr(features, "SLICE_TEXTS", most_texts)
    given_texts = ["one two", "", b"three", "four five six", "", "seven"]
    seen = []
    for part in prepared_slices(iter(given_texts), "word"):
        assert len(part) <= most_texts
        assert len(part) == 1 or len(part.data) <= most_bytes
        ends = part.offsets.tolist()
        seen += [part.data[a:b].tobytes() for a, b in pairwise(ends)]
    assert seen == [b"one two", b"", b"three", b"four five six", b"", b"seven"]


@pytest.mark.parametrize("wrong", [None, 3, ["a"], bytearray(b"a"), 1.5])
def test_a_text_of_another_type_is_refused_by_position(wrong):
    with pytest.raises(InvalidBatch, match="text 2 is") as caught:
        list(prepared_slices(["a", b"b", wrong], "word"))
    assert caught.value.data["position"] == 2


def test_bytes_that_are_not_utf8_are_refused_by_position_and_offset():
    with pytest.raises(InvalidBatch, match="text 1 is not UTF-8 at byte 3") as caught:
        list(prepared_slices([b"fine", b"abc\xff"], "word"))
    assert caught.value.data == {"position": 1, "offset": 3}


@pytest.mark.parametrize("wrong", ["one text", b"one text", 7, None])
def test_something_else_than_several_texts_is_refused(wrong):
    with pytest.raises(InvalidBatch, match="texts"):
        list(prepared_slices(wrong, "word"))
