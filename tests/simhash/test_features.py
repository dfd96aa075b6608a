"""Units and features: what is a word, what is folded, how texts are handed over."""

from __future__ import annotations

import gc
import sys
import unicodedata

import mmh3
import numpy as np
import pyarrow as pa
import pytest
import regex
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native
from simindex.errors import InvalidBatch
from simindex.simhash import features
from simindex.simhash.features import portions
from simindex.simhash.recipe import Recipe

NONE = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int16)
PIECE = 1 << 14
"""Code units that the kernels read at once."""


def reader(
    unit: str = "word", sizes: tuple[int, ...] = (1,), pairs: bool = True, level: int = -1,
    seed: int = 0,
):  # fmt: skip
    """The kernels with the simplest of recipes."""
    return _native.TextRecipe(
        oracle_unit(unit), pairs, np.array(sizes, dtype=np.uint8), seed, 1, False,
        np.empty((0, 8), dtype=np.uint64), 4096, NONE[0], 0, NONE[1], 1, 1, level,
    )  # fmt: skip


def oracle_unit(unit: str) -> int:
    return ("word", "char").index(unit)


def split(texts: list[str | bytes], unit: str = "word", **options) -> list[list[str]]:
    data, starts, ends, offsets, invalid = reader(unit, **options).split(texts)
    assert invalid == (-1, -1)
    content = data.tobytes()
    assert content[len(content) - 64 :] == bytes(64)
    found = [
        content[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return [found[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def assert_features(text: str | bytes, shown: str, unit: str, sizes, level: int, pairs=True):
    hashes, counts, offsets, invalid = reader(unit, sizes, pairs, level).features([text])
    expected = oracle.features(shown, unit, sizes, pairs)
    assert invalid == (-1, -1) and offsets.tolist() == [0, len(expected)]
    found = dict(zip(hashes.tolist(), counts.tolist(), strict=True))
    assert found == {oracle.feature_hash(name, 0): n for name, n in expected.items()}


# code points --------------------------------------------------------------------------------------

ALIKE = (
    (0x3500, 0x4D80), (0x4F00, 0x9F00), (0xAD00, 0xD700), (0xE100, 0xF800), (0x17100, 0x18700),
    (0x20100, 0x2A600), (0x33500, 0xDFF00), (0xE0200, 0x10FF00),
)  # fmt: skip
LISTED = [
    chr(c) for c in range(sys.maxunicode + 1)
    if c % 0x101 == 0 or not any(first < c < last for first, last in ALIKE)
]  # fmt: skip
"""All code points, but of the insides of large blocks of the same kind one of 257."""


def test_every_code_point_is_folded_as_python_folds_it():
    """Where this Python knows a later Unicode than the tables, only its new foldings may differ."""
    white = {c for c in LISTED if c.isspace()}
    written = [c for c in LISTED if c not in white]
    ours = "".join(split(["\x00".join(written)], "char")[0]).split("\x00")
    theirs = [c.casefold() for c in written]
    # The list has the code point \x00 itself, between two that separate.
    assert len(ours) == len(theirs) + 1 and ours[:2] == ["", ""]
    differing = {
        c for c, one, other in zip(written[1:], ours[2:], theirs[1:], strict=True) if one != other
    }
    assert differing <= oracle.NEWER_FOLDS


@pytest.mark.slow
def test_every_code_point_is_in_a_word_exactly_where_regex_says_so():
    """As itself, after a letter, a pair's letter and a mark; only code points that another Unicode
    version added are left out when `regex` has another one."""
    same_tables = oracle.regex_unicode() == _native.unicode_versions()[0]
    listed = [
        c for c in LISTED
        if c not in oracle.NEWER_FOLDS and (same_tables or unicodedata.category(c) != "Cn")
    ]  # fmt: skip
    assert len(listed) > 70_000
    for around in ("-{}-a{}b", "漢{}字-漢\u0301{}か"):
        written = "\n".join([around.replace("{}", c) for c in listed])
        assert split([written]) == [oracle.words(written)], around


def test_white_space_is_what_python_calls_so():
    separated = "".join(split(["a" + "ba".join(LISTED) + "b"], "char")[0])
    spaces = [c for c in LISTED if c.isspace()]
    assert separated.count("a b") == len(spaces) > 20
    assert split([f"a{c}b" for c in spaces], "char") == [["a", " ", "b"]] * len(spaces)


def test_the_tables_say_which_unicode_they_are_of():
    words, folding = _native.unicode_versions()
    assert folding == "15.1.0"
    assert f"words {words}, folding {folding}" == features.UNICODE


# texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("unit", ["word", "char"])
def test_scripts_and_odd_strings_are_split_as_defined(unit, level):
    texts = [*oracle.SCRIPTS, *oracle.ODDITIES]
    for pairs in (True, False):
        expected = [oracle.units(text, unit, pairs) for text in texts]
        assert split(texts, unit, pairs=pairs, level=level) == expected
        plain = [text for text in texts if not regex.search(r"\p{Cs}", text)]
        expected = [oracle.units(text, unit, pairs) for text in plain]
        assert split([t.encode() for t in plain], unit, pairs=pairs, level=level) == expected


@pytest.mark.parametrize("unit", ["word", "char"])
@given(text=oracle.texts, pairs=st.booleans())
def test_any_text_is_split_as_defined(unit, text, pairs):
    expected = oracle.units(text, unit, pairs)
    for level in range(len(LEVELS)):
        assert split([text], unit, pairs=pairs, level=level) == [expected]


@pytest.mark.parametrize("unit", ["word", "char"])
@given(text=st.text(st.characters(max_codepoint=127), max_size=200))
def test_ascii_is_split_as_defined_however_it_is_stored(unit, text):
    """Also in the wider kinds of str, which a separator at the end brings about."""
    expected = oracle.units(text, unit)
    for level in range(len(LEVELS)):
        assert split([text, text.encode()], unit, level=level) == [expected, expected]
        for wide, end in (("·", "·"), ("—", "—"), ("\U0001f600", "\U0001f600")):
            followed = oracle.units(text + " " + end, unit)
            assert split([text + " " + wide], unit, level=level) == [followed]


def test_the_rule_of_pairs():
    assert oracle.words("漢") == ["漢"]
    assert oracle.words("漢字の") == ["漢字", "字の"]
    assert oracle.words("か\u3099き") == ["か\u3099", "\u3099き"]
    assert oracle.words("a\u0301漢x") == ["a\u0301", "漢", "x"]
    texts = [
        "漢", "漢字の", "か\u3099き", "a\u0301漢x", "ไทย-한글a漢字", "한국어 문장은",
        "Cafe\u0301 हिन्दी",
    ]  # fmt: skip
    assert split(texts) == [
        ["漢"], ["漢字", "字の"], ["か\u3099", "\u3099き"], ["a\u0301", "漢", "x"],
        ["ไท", "ทย", "한글a", "漢字"], ["한국어", "문장은"], ["cafe\u0301", "हिन्दी"],
    ]  # fmt: skip
    assert split(texts, pairs=False) == [oracle.words(text, False) for text in texts]


# where pieces and blocks meet ---------------------------------------------------------------------

FILLINGS = ("ab ", "abcdefg", "漢字", "é", "b漢 a\u0301", "  ", "İ ")
MEETING = ("é", "漢字仮", " ", "か\u3099", "\u0301", "😀", "İ", "a", "-", "漢 a漢")


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("meeting", MEETING)
def test_whatever_lies_across_blocks_of_64_is_split_as_defined(unit, meeting):
    texts = [
        ("".join(["ab cdefg "] * 20))[:before] + meeting + ("tail ab " * 20)[:after]
        for before in (*range(50, 68), *range(120, 131))
        for after in (0, 1, 63, 64, 65)
    ]
    expected = [oracle.units(text, unit) for text in texts]
    for level in range(len(LEVELS)):
        assert split(texts, unit, level=level) == expected
        assert split([text.encode() for text in texts], unit, level=level) == expected
        wide = [text + " 😀" for text in texts]
        assert split(wide, unit, level=level) == [oracle.units(text, unit) for text in wide]


@pytest.mark.parametrize("filling", FILLINGS)
@pytest.mark.slow
def test_whatever_lies_across_pieces_is_split_as_defined(filling):
    """Every place of a text's part around the end of a piece, in every kind of storage."""
    beginning = ("x" * 99 + " ") * (PIECE // 100 - 1)
    before = beginning + filling * 200
    for meeting in MEETING:
        # As bytes, the end of a piece is met by another text.
        ends = range(PIECE - 5, PIECE + 3)
        texts = [before[:end] + meeting + "漢b c" for end in ends]
        wide = [text + "😀" for text in texts]
        near = [before.encode()[:end].decode("utf-8", "ignore") + meeting for end in ends]
        shapes = [*texts, *wide, *[text.encode() for text in near]]
        shown = [*texts, *wide, *near]
        assert split(shapes) == [oracle.words(text) for text in shown]
        assert split(shapes[::3], "char") == [oracle.units(text, "char") for text in shown[::3]]


@pytest.mark.parametrize("sizes", [(1, 2, 5), (5,)])
@pytest.mark.parametrize("filling", FILLINGS)
def test_features_across_pieces_are_those_of_the_whole(filling, sizes):
    for unit, size in (("word", PIECE - 1), ("word", 2 * PIECE + 3), ("char", PIECE + 1)):
        text = (filling * size)[:size] + "漢字 end"
        for shape in (text, text.encode()):
            assert_features(shape, text, unit, sizes, -1)


@pytest.mark.slow
@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_line_of_ten_megabytes(as_bytes):
    """One word; many words; one run of pairs; and white space alone."""
    rng = np.random.default_rng(1)
    names = np.array([f"w{i}é" if i % 50 == 0 else f"w{i}" for i in range(2000)])
    many = " ".join(rng.choice(names, 1_900_000).tolist())
    assert len(many.encode()) > 10_000_000
    counts: dict[str, int] = {}
    for word in many.split(" "):
        counts[word] = counts.get(word, 0) + 1
    expectations = [
        ("Ab" * 5_000_000, {b"ab" * 5_000_000: 1}),
        (many, {word.encode(): n for word, n in counts.items()}),
        ("漢字" * 1_700_000, {"漢字".encode(): 1_700_000, "字漢".encode(): 1_699_999}),
        (" \n" * 5_000_000, {}),
    ]
    for text, expected in expectations:
        shape = text.encode() if as_bytes else text
        hashes, found, _, _ = reader().features([shape])
        assert dict(zip(hashes.tolist(), found.tolist(), strict=True)) == {
            mmh3.hash64(name, signed=False)[0]: n for name, n in expected.items()
        }


# hashes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_every_feature_hash_is_that_of_mmh3(level, seed):
    """All lengths to 70 bytes and some beyond, at every alignment, among others of all lengths."""
    rng = np.random.default_rng(seed)
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    for shift in range(16):
        lengths = [*range(1, 71), 127, 128, 129, 1000, *rng.integers(1, 40, 60).tolist()]
        rng.shuffle(lengths)
        listed = ["s" * (shift + 1)]
        listed += ["".join(rng.choice(list(alphabet), n).tolist()) + "z" for n in lengths]
        hashes, _, _, _ = reader(level=level, seed=seed).features([" ".join(listed)])
        expected = dict.fromkeys(
            mmh3.hash64(word.encode(), seed=seed, signed=False)[0] for word in listed
        )
        assert hashes.tolist() == list(expected)


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_hashes_of_units_that_were_found_elsewhere_are_those_of_mmh3(level):
    """Lengths 0 to 70, each at every place of the array: one unit's fingerprint is its hash."""
    content = bytes(range(256)) * 2 + bytes(64)
    data = np.frombuffer(content, dtype=np.uint8)
    starts = np.array([at for at in range(24) for _ in range(71)], dtype=np.uint64)
    ends = starts + np.array([n for _ in range(24) for n in range(71)], dtype=np.uint64)
    one = np.array([0, 1], dtype=np.int64)
    kernel = reader(level=level, seed=9)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        made = kernel.units(
            data, np.array([start], dtype=np.uint64), np.array([end], dtype=np.uint64), one
        )
        expected = mmh3.hash64(content[start:end], seed=9, signed=False)[0]
        assert made[0].tolist() == [[expected]]


@settings(max_examples=60)
@given(
    texts=st.lists(oracle.texts, max_size=4),
    unit=st.sampled_from(["word", "char"]),
    sizes=st.sets(st.integers(1, 5), min_size=1, max_size=3).map(lambda s: tuple(sorted(s))),
    seed=st.integers(0, 2**32 - 1),
    pairs=st.booleans(),
)
def test_features_are_counted_by_hash(texts, unit, sizes, seed, pairs):
    for level in range(len(LEVELS)):
        hashes, counts, ends, _ = reader(unit, sizes, pairs, level, seed).features(texts)
        assert ends[0] == 0 and len(hashes) == len(counts) == ends[-1]
        for row, text in enumerate(texts):
            expected = oracle.features(text, unit, sizes, pairs)
            part = slice(ends[row], ends[row + 1])
            found = dict(zip(hashes[part].tolist(), counts[part].tolist(), strict=True))
            assert len(hashes[part]) == len(found)
            assert found == {oracle.feature_hash(f, seed): n for f, n in expected.items()}


def test_a_text_of_many_features_grows_the_table():
    text = " ".join(f"w{i % 5000}" for i in range(12_000))
    hashes, counts, ends, _ = reader().features([text, "a", text])
    assert ends.tolist() == [0, 5000, 5001, 10_001]
    assert hashes[:5000].tolist() == [oracle.feature_hash(b"w%d" % i, 0) for i in range(5000)]
    assert counts[:5000].tolist() == counts[5001:].tolist()
    assert counts[:5000].sum() == 12_000


# how texts are handed over ------------------------------------------------------------------------

TEXTS = [*oracle.SCRIPTS, "", "one two", "x" * 70, "漢字", "", "end"]


def columns() -> dict[str, pa.Array | pa.ChunkedArray]:
    """The same texts as Arrow stores them in all its ways."""
    listed = pa.array(TEXTS)
    longer = pa.array(["before", "é", *TEXTS, "after"])
    return {
        "string": listed,
        "large string": listed.cast(pa.large_string()),
        "binary": pa.array([text.encode() for text in TEXTS]),
        "large binary": pa.array([text.encode() for text in TEXTS], pa.large_binary()),
        "dictionary": listed.dictionary_encode(),
        "sliced": longer.slice(2, len(TEXTS)),
        "sliced dictionary": longer.dictionary_encode().slice(2, len(TEXTS)),
        "chunked": pa.chunked_array([TEXTS[:3], [], TEXTS[3:4], TEXTS[4:]], pa.string()),
        "sliced chunked": pa.chunked_array([longer.slice(1, 4), longer.slice(5)]).slice(
            1, len(TEXTS)
        ),
        "chunked dictionary": pa.chunked_array(
            [listed.slice(0, 5).dictionary_encode(), listed.slice(5).dictionary_encode()]
        ),
        "string view": listed.cast(pa.string_view()),
        "binary view": pa.array([text.encode() for text in TEXTS], pa.binary_view()),
        "sliced string view": longer.cast(pa.string_view()).slice(2, len(TEXTS)),
    }


COLUMNS = columns()


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize(
    "recipe", [Recipe(), Recipe(ngram=(1, 2), stop_words=["two"])], ids=["kernels", "words"]
)
def test_an_arrow_column_gives_what_a_list_gives(recipe, kind):
    expected = recipe.batch(TEXTS)
    found = recipe.batch(COLUMNS[kind])
    assert found.fingerprints.tolist() == expected.fingerprints.tolist()
    assert found.weights.tolist() == expected.weights.tolist()
    assert found.skipped == expected.skipped and len(found.skipped) == 2
    if isinstance(COLUMNS[kind], pa.Array):
        chunked = recipe.batch(pa.chunked_array([COLUMNS[kind], COLUMNS[kind]]))
        assert chunked.fingerprints.tolist() == 2 * expected.fingerprints.tolist()
        assert [s.position for s in chunked.skipped[2:]] == [
            s.position + len(TEXTS) for s in expected.skipped
        ]


@pytest.mark.parametrize(
    "recipe", [Recipe(), Recipe(stop_words=["two"])], ids=["kernels", "words"]
)
@pytest.mark.parametrize(
    "empty",
    [
        [], (), pa.array([], pa.string()), pa.array([], pa.large_string()),
        pa.array(["a", "b"]).slice(1, 0), pa.array(["a"]).slice(1),
        pa.chunked_array([], pa.string()),
        pa.chunked_array([[]], pa.binary()), pa.array([], pa.string()).dictionary_encode(),
        pa.array([], pa.string_view()),
    ],
    ids=lambda empty: f"{type(empty).__name__}",
)  # fmt: skip
def test_no_texts_give_no_fingerprints(recipe, empty):
    assert len(recipe.batch(empty)) == 0
    assert recipe.batch(empty).weights.shape == (0, 64)
    assert recipe.document_frequencies(empty).documents == 0


@pytest.mark.parametrize("texts", [[""], pa.array([""]), ["", b""]])
def test_texts_of_nothing_are_counted_and_skipped(texts):
    for recipe in (Recipe(), Recipe(stop_words=["two"])):
        assert [s.reason for s in recipe.batch(texts).skipped] == ["empty"] * len(texts)
        assert recipe.document_frequencies(texts).documents == len(texts)


@pytest.mark.slow
def test_a_column_is_not_needed_after_the_call():
    column = pa.array(TEXTS)
    batch = Recipe().batch(column)
    expected = Recipe().batch(TEXTS).weights.tolist()
    del column
    gc.collect()
    assert batch.weights.tolist() == expected


def test_nulls_and_other_arrow_types_are_refused():
    for column, position in (
        (pa.array(["a", None]), 1),
        (pa.array(["x", "a", "b", None]).slice(1), 2),
        (pa.chunked_array([["a", "b"], ["c", None]]), 3),
        (pa.array(["a", None]).dictionary_encode(), 1),
        (pa.array([None, "a"], pa.string_view()), 0),
        (pa.array([None, "a"]).cast(pa.binary()), 0),
    ):
        with pytest.raises(InvalidBatch, match=f"text {position} is null") as caught:
            Recipe().batch(column)
        assert caught.value.data["position"] == position
    for wrong in (
        pa.array([1, 2]), pa.array([["a"]]), pa.array([1.5]).dictionary_encode(),
        pa.array([None, None]), pa.array([b"ab"], pa.binary(2)),
    ):  # fmt: skip
        with pytest.raises(InvalidBatch, match="not text: cast it to string"):
            Recipe().batch(wrong)


@pytest.mark.parametrize(("most_characters", "most_texts"), [(1, 99), (10, 99), (1 << 20, 2)])
def test_portions_hold_the_texts_in_order_within_their_bounds(
    monkeypatch, most_characters, most_texts
):
    monkeypatch.setattr(features, "PORTION_CHARACTERS", most_characters)
    monkeypatch.setattr(features, "PORTION_TEXTS", most_texts)
    listed = ["one two", "", b"three", "four five six", "", "seven"]
    seen = []
    for portion in portions(iter(listed)):
        assert 0 < len(portion) <= most_texts
        assert sum(map(len, portion[:-1])) < most_characters
        seen += portion
    assert seen == listed
    assert list(portions(listed)) == list(portions(tuple(listed))) == [listed]


def test_an_iterator_is_read_no_further_than_its_portion(monkeypatch):
    monkeypatch.setattr(features, "PORTION_TEXTS", 3)
    taken = []
    made = portions(taken.append(i) or str(i) for i in range(10))
    assert next(made) == ["0", "1", "2"]
    assert taken == [0, 1, 2]


# what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [None, 3, ["a"], bytearray(b"a"), 1.5])
@pytest.mark.parametrize("words", [False, True])
def test_a_text_of_another_type_is_refused_by_position(wrong, words, monkeypatch):
    recipe = Recipe(stop_words=["two"] if words else ())
    for portion_texts in (1 << 14, 2):
        monkeypatch.setattr(features, "PORTION_TEXTS", portion_texts)
        for texts in (["a", b"b", wrong], iter(["a", b"b", wrong])):
            with pytest.raises(InvalidBatch, match="text 2 is") as caught:
                recipe.batch(texts)
            assert caught.value.data["position"] == 2
            assert caught.value.data["found"] == type(wrong).__name__


BAD_UTF8 = (
    b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2A", b"\xe0\x80\x80", b"\xe0\x9f\xbf",
    b"\xe1\x80", b"\xe1\x80A", b"\xe1", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xef\xbf",
    b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf1\x80\x80", b"\xf1\x80\x80A",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff",
)  # fmt: skip


def failure_of(data: bytes) -> int:
    with pytest.raises(UnicodeDecodeError) as caught:
        data.decode("utf-8")
    return caught.value.start


@pytest.mark.parametrize("bad", BAD_UTF8, ids=bytes.hex)
@pytest.mark.parametrize("words", [False, True])
def test_bytes_that_are_no_utf8_are_refused_where_python_refuses_them(bad, words):
    recipe = Recipe(stop_words=["two"] if words else ())
    for before in (b"", b"abc", "é漢😀".encode(), b"a" * 63, b"a" * 64, b" " * (PIECE - 1)):
        for after in (b"", b"z", b"\x80", " é".encode(), b"\xff"):
            data = before + bad + after
            if data.decode("utf-8", "ignore").encode() == data:
                continue  # what follows completes it
            with pytest.raises(InvalidBatch, match="text 1 is not UTF-8 at byte") as caught:
                recipe.batch([b"fine", data, "fine", b"\xff"])
            assert caught.value.data == {"position": 1, "offset": failure_of(data)}


@settings(max_examples=300)
@given(data=st.binary(max_size=12) | st.lists(st.sampled_from(BAD_UTF8)).map(b"".join))
@pytest.mark.slow
def test_any_bytes_are_read_or_refused_as_python_does(data):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        for call in (reader().features, reader().texts, reader().split):
            assert call([data])[-1] == (0, error.start)
    else:
        if not oracle.NEWER_FOLDS.intersection(text):
            assert_features(data, text, "word", (1,), -1)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("first", [0, 1, 500, 998, 999])
def test_the_first_bad_text_is_named_whatever_the_threads(threads, first):
    rng = np.random.default_rng(first)
    texts = [b"good words " * int(n) for n in rng.integers(0, 60, 1000)]
    for position in {first, *rng.integers(first, 1000, 20).tolist()}:
        texts[position] = texts[position][:20] + b"\xff"
    expected = {"position": first, "offset": failure_of(texts[first])}
    calls = (Recipe().batch, Recipe().document_frequencies)
    column = pa.array(texts, pa.binary())
    for call in calls:
        for shape in (texts, column, iter(texts)):
            with pytest.raises(InvalidBatch) as caught:
                call(shape, threads=threads)
            assert caught.value.data == expected


def test_bad_texts_of_later_portions_and_chunks_are_named_by_their_position(monkeypatch):
    monkeypatch.setattr(features, "PORTION_TEXTS", 2)
    texts = [b"a", b"b", b"c", b"d\xff"]
    for shape in (iter(texts), pa.chunked_array([texts[:1], texts[1:]], pa.binary())):
        for recipe in (Recipe(), Recipe(stop_words=["two"])):
            if not isinstance(shape, pa.ChunkedArray):
                shape = iter(texts)
            with pytest.raises(InvalidBatch) as caught:
                recipe.batch(shape)
            assert caught.value.data == {"position": 3, "offset": 1}


@pytest.mark.parametrize("wrong", ["one text", b"one text", 7, None, pa.table({"text": ["a"]})])
def test_something_else_than_several_texts_is_refused(wrong):
    for call in (Recipe().batch, Recipe().document_frequencies, Recipe(weighting="idf").fit):
        with pytest.raises(InvalidBatch, match="texts"):
            call(wrong)


def test_a_dict_of_texts_is_refused() -> None:
    """Its keys would count as the texts."""
    texts = {"a.md": "one two", "b.md": "three four"}
    for call in (Recipe().batch, Recipe(weighting="tfidf").fit):
        with pytest.raises(InvalidBatch, match=r"keys would be .*: give its values, list\(texts"):
            call(texts)
    assert len(Recipe().batch(texts.values())) == 2


def test_a_column_of_objects_that_are_not_alike_tells_the_first_that_is_no_text():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    for values, told in ((["a", 5], "text 1 is int"), ([1.5, "a"], "text 0 is float"),
                         ([None, 5], "not text")):
        with pytest.raises(InvalidBatch, match=told):
            Recipe().batch(pandas.Series(values, dtype=object))
    assert len(Recipe().batch(pandas.Series([], dtype=object))) == 0
