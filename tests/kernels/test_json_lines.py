"""Lines of JSON as columns, against `json.loads`; and lines that get something more."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simindex._kernels import _native

MOST_LINE, MOST_KEY = 200, 12
MARK = b"a_mark"

names = st.sampled_from(["text", "id", "other", "te\\u0078t", "é", "", "\\n"])
strings = st.lists(
    st.sampled_from(
        ["a", "b c", "\\n", "\\\\", '\\"', "\\/", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\ude00",
         "\\u0000", "\\u00E", "\\x", "é", "漢", "😀", "\t", "\x7f", "'", "\\uD7ff", "x" * 40, "_"]
    ),
    max_size=6,
).map(lambda parts: '"' + "".join(parts) + '"')
scalars = st.sampled_from(
    ["1", "-0", "01", "-", "1.5e3", "1.", ".5", "1e", "1E+2", "true", "truth", "null", "NaN",
     "Infinity", "-Infinity", "1" * 301, "false", "", "nul"]
)
values = st.recursive(
    strings | scalars,
    lambda inner: st.lists(inner, max_size=3).map(lambda some: "[" + ",".join(some) + "]")
    | st.lists(st.tuples(strings, inner), max_size=2).map(
        lambda some: "{" + ", ".join(f"{name} :{value}" for name, value in some) + "}"
    ),
    max_leaves=5,
)
plain_fields = st.just(['"id": "k1"', '"text":"a b"'])
fields = st.lists(
    st.tuples(names, values).map(lambda field: f'"{field[0]}": {field[1]}'), max_size=3
)
objects = st.tuples(fields, plain_fields | st.just([]), fields, st.permutations([0, 1, 2])).map(
    lambda given: "{" + ", ".join(
        field for place in given[3] for field in given[:3][place]
    ) + "}"
)
ends = st.sampled_from(["\n", "\r\n", " \t\n", "x\n", "\n\n"])
damage = st.tuples(st.integers(0, 400), st.sampled_from([b"", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf",
                                                         b"\xf4\x90\x80\x80", b"\0", b'"', b"{"]))
blocks = st.tuples(
    st.lists(st.tuples(objects, ends), max_size=6), st.none() | damage, st.booleans()
)


def read(block: bytes, text: str = "text", key: str = "id") -> list[tuple[bytes, Any]]:
    """Each line, with its key and text where it is plain."""
    starts, plain, texts, text_ends, keys, key_ends = _native.json_lines(
        np.frombuffer(block, np.uint8), np.frombuffer(text.encode(), np.uint8),
        np.frombuffer(key.encode(), np.uint8), MOST_LINE, MOST_KEY,
    )
    found: list[tuple[bytes, Any]] = []
    columns = zip(plain, pairwise(key_ends.tolist()), pairwise(text_ends.tolist()), strict=True)
    for (at, end), (is_plain, one, other) in zip(pairwise(starts.tolist()), columns, strict=True):
        pair = keys[slice(*one)].tobytes().decode(), texts[slice(*other)].tobytes().decode()
        assert is_plain or pair == ("", "")
        found.append((block[at:end], pair if is_plain else None))
    return found


def block_of(made: Any) -> bytes:
    lines, spoilt, ended = made
    block = "".join(line + end for line, end in lines).encode("utf-8", "surrogatepass")
    if spoilt is not None:
        place, put = spoilt
        block = block[:place] + put + block[place + 1 :]
    return block if ended else block.removesuffix(b"\n")


@settings(max_examples=300)
@given(blocks.map(block_of))
@example(b'{"text": "a", "id": "b", "text": 5}\n')
@example(b'{"text": 5, "id": "b", "text": "a"}\n')
@example(b'{"id": "b", "text": "a"}}\n')
@example(b'\xef\xbb\xbf{"id": "b", "text": "a"}\n')
@example(b'{"id": "b", "text": "a",}\n')
@example(b'{"id": -0, "text": "a"}\n')
@pytest.mark.slow
def test_plain_lines_are_what_json_says(block: bytes) -> None:
    """A plain line is read as `json.loads` reads it, and a line that it refuses is never plain."""
    lines = read(block)
    assert [line for line, _ in lines] == block.splitlines(keepends=True) or b"\r" in block
    assert b"".join(line for line, _ in lines) == block
    for line, pair in lines:
        if pair is None:
            continue
        record = json.loads(line.decode())
        key = record["id"]
        assert type(key) in (str, int) and pair == (str(key), record["text"])
        assert 0 < len(pair[0]) <= MOST_KEY and pair[0].isascii()
        assert len(line) <= MOST_LINE


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
        .filter(lambda name: json.dumps(name)[1:-1] == name),
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=4).filter(
            lambda text: text.isprintable()
        ) | st.floats(allow_nan=False, allow_infinity=False) | st.lists(st.integers(0, 9)),
        max_size=3,
    ),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=10),
    st.booleans(),
)
def test_records_that_json_writes_are_plain(record: Any, text: str, escaped: bool) -> None:
    line = json.dumps({**record, "text": text, "id": "key"}, ensure_ascii=escaped)
    if len(line.encode()) <= MOST_LINE:
        assert read(line.encode()) == [(line.encode(), ("key", text))]


@pytest.mark.parametrize("levels", [1, 32, 33, 100_000])
def test_deep_lines_are_not_plain(levels: int) -> None:
    record = b'{"id": "k", "text": "t", "in": ' + b"[" * levels + b"]" * levels + b"}"
    (_, pair), = read(record)
    assert (pair is not None) == (levels <= 32 and len(record) <= MOST_LINE)


@pytest.mark.parametrize(
    ("value", "key"),
    [("7", "7"), ("-12", "-12"), ("0", "0"), ("-0", None), ("1.0", None), ("1e3", None),
     ("true", None), ("null", None), ("[1]", None), ("0123", None), ("1234567890123", None)],
)
def test_whole_numbers_are_keys(value: str, key: str | None) -> None:
    """By their digits, as `str` writes them."""
    (_, pair), = read(b'{"text": "t", "id": %b}' % value.encode())
    assert pair == (None if key is None else (key, "t"))


def test_limits_of_lines_and_keys() -> None:
    for key, text in (("k" * MOST_KEY, ""), ("k" * (MOST_KEY + 1), ""), ("", ""), ("ä", "")):
        (_, pair), = read(json.dumps({"id": key, "text": text}, ensure_ascii=False).encode())
        assert (pair is not None) == (key == "k" * MOST_KEY)
    for more in (0, 1):
        line = json.dumps({"id": "k", "text": ""}) + "\n"
        line = line.replace('""', '"' + "t" * (MOST_LINE - len(line) + more) + '"')
        (_, pair), = read(line.encode())
        assert (pair is not None) == (not more)
    assert read(b"") == [] and read(b"\n") == [(b"\n", None)]
    assert read(b'{"a": "both"}', "a", "a") == [(b'{"a": "both"}', ("both", "both"))]


def splice(lines: list[bytes], inserts: list[bytes]) -> tuple[int, bytes]:
    def column(parts: list[bytes]) -> tuple[Any, Any]:
        data = np.frombuffer(b"".join(parts), np.uint8)
        return data, np.cumsum([0, *map(len, parts)], dtype=np.int64)

    done, size, out = _native.spliced_lines(
        *column(lines), *column(inserts), np.frombuffer(MARK, np.uint8)
    )
    return done, out[:size].tobytes()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"{}", b'{"a": 1} \r', b" {x_} ", b"{a_mar}", b"{a_mark}", b"", b" "]),
            st.sampled_from([b"", b", 1}", b"more"]),
        )
    ),
    st.booleans(),
)
def test_inserts_take_the_place_of_last_braces(
    given_lines: list[tuple[bytes, bytes]], ended: bool
) -> None:
    """Up to the first line that has the mark, or nothing."""
    lines = [line + b"\n" for line, _ in given_lines]
    if lines and not ended:
        lines[-1] = lines[-1][:-1]
    expected = []
    for line, (_, insert) in zip(lines, given_lines, strict=True):
        if MARK in line or not line.strip():
            break
        body = line.rstrip()
        made = body[:-1] + insert + line[len(body) :]
        expected.append(made if made.endswith(b"\n") else made + b"\n")
    found = splice(lines, [insert for _, insert in given_lines])
    assert found == (len(expected), b"".join(expected))


def test_columns_that_lie_are_refused() -> None:
    eight, nothing = np.zeros(8, np.uint8), np.empty(0, np.uint8)
    for starts in ([], [-1, 2], [0, 9], [3, 2]):
        with pytest.raises(ValueError, match="within"):
            _native.spliced_lines(
                eight, np.array(starts, np.int64), nothing, np.zeros(len(starts), np.int64), eight
            )
    with pytest.raises(ValueError, match="within"):
        _native.spliced_lines(eight, np.array([0, 1]), nothing, np.array([0, 1]), eight)
    with pytest.raises(ValueError, match="length"):
        _native.spliced_lines(eight, np.array([0, 1]), nothing, np.array([0]), eight)
