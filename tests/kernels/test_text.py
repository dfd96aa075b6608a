"""The text kernels alone: every level, hostile offsets, weights out of the ordinary."""

from __future__ import annotations

import numpy as np
import pytest
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native

UNITS = ("word", "char")
WEIGHTINGS = ("binary", "tf", "tfidf")
NO_HASHES = np.empty(0, dtype=np.uint64)
NO_STEPS = np.empty(0, dtype=np.uint32)


def packed(prepared: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.zeros(len(prepared) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in prepared], out=offsets[1:])
    return np.frombuffer(b"".join(prepared), dtype=np.uint8), offsets


def sizes_array(*sizes: int) -> np.ndarray:
    return np.array(sizes, dtype=np.uint8)


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("weighting", [0, 1, 2])
@pytest.mark.parametrize("words", [1, 2, 16, 64])
def test_every_level_gives_the_bits_of_the_definition(level, weighting, words):
    """300 units cross the block of 256 features in which the kernel sums."""
    rng = np.random.default_rng(words)
    text = " ".join(f"w{i}" for i in rng.integers(0, 400, 300 if words < 16 else 30))
    corpus = [text, "w1 w2 w3", "w1"]
    df = oracle.document_frequencies(corpus, "word", (1, 2))
    known = sorted((oracle.feature_hash(f, 5), oracle.idf_steps(3, n)) for f, n in df.items())
    data, offsets = packed([text.encode(), b"", b"w1"])
    fingerprints, weights, counts = _native.simhash(
        data, offsets, 0, sizes_array(1, 2), weighting,
        np.array([h for h, _ in known], dtype=np.uint64),
        np.array([s for _, s in known], dtype=np.uint32),
        oracle.idf_steps(3, 0), words, 5, level,
    )  # fmt: skip
    for row, expected_text in enumerate([text, "", "w1"]):
        expected = oracle.simhash(
            expected_text, unit="word", sizes=(1, 2), weighting=WEIGHTINGS[weighting],
            bits=64 * words, seed=5, corpus=corpus,
        )  # fmt: skip
        assert fingerprints[row].tolist() == expected[0]
        assert weights[row].tolist() == expected[1].tolist()
        assert counts[row] == expected[2]


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("step", [1, 1 << 22, (1 << 23) - 1, 1 << 23, 1 << 24, (1 << 32) - 1])
def test_sums_are_exact_for_light_and_heavy_features(level, step):
    """A weight from 2^23 leaves the 32-bit lanes; 300 just below it fill them."""
    words = [f"w{i}".encode() for i in range(300)]
    hashes = [oracle.feature_hash(word, 0) for word in words]
    data, offsets = packed([b" ".join([*words, *words[:7]])])
    fingerprints, weights, _ = _native.simhash(
        data, offsets, 0, sizes_array(1), 2, NO_HASHES, NO_STEPS, step, 1, 0, level
    )
    expected = np.zeros(64, dtype=object)
    for i, hash_ in enumerate(hashes):
        signs = 2 * np.array(oracle.phi(hash_, 1), dtype=object) - 1
        expected += signs * step * (2 if i < 7 else 1)
    assert weights[0].tolist() == [float(np.float32(w / 4096)) for w in expected]
    assert f"{int(fingerprints[0, 0]):064b}" == "".join("1" if w >= 0 else "0" for w in expected)


@given(
    texts=st.lists(oracle.texts, max_size=4),
    unit=st.sampled_from(UNITS),
    sizes=st.sets(st.integers(1, 5), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_features_are_counted_by_hash_in_order_of_occurrence(texts, unit, sizes, seed):
    prepared = [
        " ".join(oracle.words(t) if unit == "word" else t.casefold().split()) for t in texts
    ]
    data, offsets = packed([t.encode("utf-8", "surrogatepass") for t in prepared])
    hashes, counts, ends = _native.features(
        data, offsets, UNITS.index(unit), sizes_array(*sizes), seed
    )
    assert ends[0] == 0 and len(hashes) == len(counts) == ends[-1]
    for row, text in enumerate(texts):
        expected = oracle.features(text, unit, tuple(sorted(sizes)))
        part = slice(ends[row], ends[row + 1])
        assert hashes[part].tolist() == [oracle.feature_hash(f, seed) for f in expected]
        assert counts[part].tolist() == list(expected.values())


def test_a_text_of_many_features_grows_the_table():
    text = " ".join(f"w{i % 5000}" for i in range(12_000)).encode()
    hashes, counts, _ = _native.features(*packed([text, b"a", text]), 0, sizes_array(1), 0)
    assert len(hashes) == 10_001
    assert counts[:5000].tolist() == counts[5001:].tolist()
    assert counts[:5000].sum() == 12_000
    assert hashes[:5000].tolist() == [oracle.feature_hash(b"w%d" % i, 0) for i in range(5000)]


any_offset = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 40)


@given(
    offsets=st.lists(any_offset, min_size=1, max_size=6),
    data=st.binary(max_size=32),
    unit=st.sampled_from([0, 1]),
)
def test_any_offsets_and_bytes_are_survived(offsets, data, unit):
    """Offsets are clamped to the data, bytes need not be UTF-8."""
    arrays = np.frombuffer(data, dtype=np.uint8), np.array(offsets, dtype=np.int64)
    hashes, _, ends = _native.features(*arrays, unit, sizes_array(1, 3), 0)
    assert ends[-1] == len(hashes)
    fingerprints, weights, counts = _native.simhash(
        *arrays, unit, sizes_array(1, 3), 1, NO_HASHES, NO_STEPS, 0, 2, 0
    )
    assert fingerprints.shape == (len(offsets) - 1, 2) and weights.shape == (len(offsets) - 1, 128)
    assert counts.tolist() == np.diff(ends).tolist()


@settings(max_examples=60)
@given(
    known=st.dictionaries(st.integers(0, 2**64 - 1) | st.integers(0, 9), st.integers(1, 999)),
    ordered=st.booleans(),
)
def test_idf_is_found_for_known_hashes_and_unseen_for_others(known, ordered):
    """The hash of a word is put among arbitrary ones; a table out of order is survived."""
    mine = oracle.feature_hash(b"word", 0)
    for present in (True, False):
        table = {**known, mine: 77} if present else {h: s for h, s in known.items() if h != mine}
        rows = sorted(table.items(), reverse=not ordered)
        _, weights, _ = _native.simhash(
            *packed([b"word"]), 0, sizes_array(1), 2,
            np.array([h for h, _ in rows], dtype=np.uint64),
            np.array([s for _, s in rows], dtype=np.uint32), 5, 1, 0,
        )  # fmt: skip
        if ordered:
            assert np.abs(weights).tolist() == [[(77 if present else 5) / 4096] * 64]


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.empty(0, dtype=np.int64)},
        {"unit": 2},
        {"sizes": sizes_array()},
        {"sizes": sizes_array(0, 1)},
        {"weighting": 3},
        {"idf_hashes": np.zeros(1, dtype=np.uint64)},
        {"words": 0},
        {"words": 65},
    ],
)
def test_inconsistent_arguments_are_refused(change):
    data, offsets = packed([b"a"])
    arguments = {
        "data": data, "offsets": offsets, "unit": 0, "sizes": sizes_array(1), "weighting": 1,
        "idf_hashes": NO_HASHES, "idf_steps": NO_STEPS, "unseen_step": 1, "words": 1, "seed": 0,
    }  # fmt: skip
    with pytest.raises(ValueError):
        _native.simhash(**{**arguments, **change})
