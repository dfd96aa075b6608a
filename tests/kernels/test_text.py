"""The text kernels alone: every level, arrays out of the ordinary, what is refused."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from functools import partial

import numpy as np
import pytest
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native

LEVEL_NUMBERS = range(len(LEVELS))
COUNTINGS = (0, 1, 2, 3)
NO_BUCKETS = np.empty((0, 8), dtype=np.uint64)
SUBLINEAR = np.array(
    [0, *(oracle.weight(tf, 4096, "sublinear") for tf in range(1, 1 << 16))], dtype=np.uint32
)
QUANTILES = oracle.quantiles().astype(np.int16)
UNSEEN = oracle.idf_steps(9, 0)


def sizes_array(*sizes: int) -> np.ndarray:
    return np.array(sizes, dtype=np.uint8)


def buckets_of(table: dict[int, int]) -> np.ndarray:
    rows = sorted(table.items())
    return _native.idf_buckets(
        np.array([h for h, _ in rows], dtype=np.uint64),
        np.array([s for _, s in rows], dtype=np.uint32),
    )


def kernel(**changes):
    arguments = {
        "unit": 0, "pairs": True, "sizes": sizes_array(1), "seed": 0, "counting": 1,
        "with_idf": False, "idf": NO_BUCKETS, "unseen": 4096, "sublinear": SUBLINEAR,
        "projection": 0, "quantiles": QUANTILES, "words": 1, "min_features": 1, **changes,
    }  # fmt: skip
    return _native.TextRecipe(**arguments)


def shown(made) -> tuple:
    return made[0].tobytes(), made[1].tobytes(), made[2].tolist(), made[3]


TEXTS = [
    *oracle.SCRIPTS, *oracle.ODDITIES, "",
    " ".join(f"w{i * i % 371}" for i in range(700)),
    " ".join(f"w{i}" for i in range(5000)), "w1 " * 2500, "x" * 3000,
    *["".join(random.Random(i).choices("aBc é漢- \u0301", k=i)) for i in range(60, 70)],
]  # fmt: skip


@pytest.mark.parametrize("projection", [0, 1, 2], ids=oracle.PROJECTIONS)
@pytest.mark.parametrize("with_idf", [False, True])
@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize(("unit", "sizes"), [(0, (1, 3)), (1, (3,)), (1, (1, 16))])
def test_every_level_gives_what_the_plain_code_gives(unit, sizes, counting, with_idf, projection):
    """Counts to the block sizes of all sums and around them; what is counted stays the same too."""
    known = {oracle.drawn(3, i): 4096 + i for i in range(1, 300)}
    for i in range(1, 371, 2):
        known[oracle.feature_hash(b"w%d" % i, 0)] = 5000 + i
    for words in (1, 3):
        made = [
            kernel(
                unit=unit, sizes=sizes_array(*sizes), counting=counting, with_idf=with_idf,
                idf=buckets_of(known), unseen=UNSEEN, projection=projection, words=words,
                min_features=7, level=level,
            )
            for level in LEVEL_NUMBERS
        ]  # fmt: skip
        plain = shown(made[0].texts(TEXTS))
        for other in made[1:]:
            assert shown(other.texts(TEXTS)) == plain
            assert shown(other.texts(TEXTS, 3)) == plain


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 15, 16, 63, 64, 65, 127, 128, 129, 255, 256, 257, 2048,
                               2049, 5000])  # fmt: skip
@pytest.mark.slow
def test_sums_of_any_number_of_features_are_those_of_the_definition(level, n):
    rng = np.random.default_rng(n)
    hashes = rng.integers(0, 2**64, n, dtype=np.uint64)
    offsets = np.array([0, n], dtype=np.int64)
    weights = rng.integers(1, 1 << 18, n)
    for projection, name in enumerate(oracle.PROJECTIONS):
        # To whole vectors of words, and a few words more and fewer.
        for words in (2, 4, 5, 12) if name == "sign" else (2,):
            v = oracle.vectors(hashes, name, 64 * words).astype(np.int64)
            plain = kernel(projection=projection, words=words, level=level)
            made, expected = plain.hashes(hashes, offsets), v.sum(axis=0)
            assert made[1].tolist() == [oracle.shown_weights(expected, name, "tf").tolist()]
            assert made[0].tolist() == oracle.words_of(expected[None], name).tolist()
            # Of one byte, two and three.
            for some in (weights % 256, weights % 65536, weights):
                table = dict(zip(hashes.tolist(), np.maximum(some, 1).tolist(), strict=True))
                made = kernel(
                    projection=projection, words=words, level=level, with_idf=True,
                    idf=buckets_of(table),
                ).hashes(hashes, offsets)
                expected = np.maximum(some, 1) @ v
                assert made[1].tolist() == [oracle.shown_weights(expected, name, "tfidf").tolist()]
                assert made[0].tolist() == oracle.words_of(expected[None], name).tolist()
        given_ = kernel(projection=projection, words=2, level=level).given(
            hashes, weights / 7, offsets
        )
        fingerprint, expected = oracle.given(hashes, weights / 7, name, 128)
        assert given_[0].tolist() == [fingerprint]
        assert given_[1].tolist() == [expected.tolist()]


@pytest.mark.parametrize("projection", [0, 1, 2], ids=oracle.PROJECTIONS)
@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("with_idf", [False, True])
@pytest.mark.parametrize("level", LEVEL_NUMBERS)
def test_a_sketch_is_further_bits_of_a_wider_fingerprint(level, with_idf, counting, projection):
    """And neither the fingerprint nor its weights change by it, however features are counted."""
    known = {oracle.feature_hash(b"w%d" % i, 0): 5000 + 97 * i for i in range(1, 371, 2)}
    options = {
        "counting": counting, "projection": projection, "level": level, "with_idf": with_idf,
        "idf": buckets_of(known), "unseen": UNSEEN,
    }
    plain = kernel(words=2, **options).texts(TEXTS)
    wide = kernel(words=11, **options).texts(TEXTS)
    made = kernel(words=2, sketch_words=9, **options).texts(TEXTS)
    assert made[0].tolist() == wide[0].tolist()
    assert made[0][:, :2].tolist() == plain[0].tolist()
    assert made[1].tobytes() == plain[1].tobytes()
    distinct = [len(kernel().features([text])[0]) for text in TEXTS]
    assert made[2].tolist() == distinct


@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 500, 4095, 4097, 20_000])
def test_a_sketch_has_the_number_of_distinct_features(counting, n):
    """Of hashes that repeat, that meet in one slot, and of the hash 0."""
    rng = np.random.default_rng(n)
    drawn = rng.integers(0, 2**64, n, dtype=np.uint64)
    near = np.arange(n, dtype=np.uint64)
    documents = [
        drawn, near, near[:0], np.concatenate([drawn, drawn[::-1], near, near]),
        np.zeros(n, np.uint64), drawn[:7], rng.integers(0, 1 + n // 3, n, dtype=np.uint64),
    ]  # fmt: skip
    offsets = np.cumsum([0, *map(len, documents)])
    made = kernel(sketch_words=1, counting=counting).hashes(np.concatenate(documents), offsets)
    assert made[2].tolist() == [len(np.unique(one)) for one in documents]


def test_a_sketch_has_a_width_within_bounds():
    for wrong in (-1, 65):
        with pytest.raises(ValueError, match="sketch_words"):
            kernel(sketch_words=wrong)
    assert kernel(words=64, sketch_words=64).texts(["a b"])[0].shape == (1, 128)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("step", [1, 1 << 22, (1 << 23) - 1, 1 << 23, 1 << 24, (1 << 32) - 1])
def test_sums_are_exact_for_light_and_heavy_features(level, step):
    """A weight from 2^23 leaves the 32-bit lanes; 300 just below it fill them."""
    words = [f"w{i}" for i in range(300)]
    text = " ".join([*words, *words[:7]])
    hashes = np.array([oracle.feature_hash(w.encode(), 0) for w in words], dtype=np.uint64)
    counts = np.array([2 if i < 7 else 1 for i in range(300)], dtype=object)
    for projection, name in enumerate(oracle.PROJECTIONS):
        made = kernel(
            with_idf=True, idf=buckets_of({}), unseen=step, projection=projection, level=level
        ).texts([text])
        sums = (counts * step) @ oracle.vectors(hashes, name, 64).astype(object)
        assert made[1].tolist() == [oracle.shown_weights(sums, name, "tfidf").tolist()]
        assert made[0].tolist() == oracle.words_of(sums[None], name).tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_features_of_many_documents_are_counted_once_a_document(threads):
    """More features than any table begins with; words that repeat, near each other and far."""
    rng = random.Random(5)
    texts = [
        " ".join(f"w{min(rng.randrange(1, 60_000), rng.randrange(1, 60_000))}" for _ in range(400))
        for _ in range(60)
    ]
    texts += [texts[0], "", "w1 " * 3000, f"{texts[1]} {texts[1]} w1"]
    made = kernel()
    per_text = [made.features([text]) for text in texts]
    truth = Counter(hash_ for found in per_text for hash_ in set(found[0].tolist()))
    assert len(truth) > 10_000
    tables = _native.DocumentTables()
    for some in (texts[:7], texts[7:40], [], texts[40:]):
        assert made.count_in_texts(tables, some, threads) == ((-1, -1),)
    assert len(truth) <= tables.features <= threads * len(truth)
    hashes, counts = tables.take()
    assert list(zip(hashes.tolist(), counts.tolist(), strict=True)) == sorted(truth.items())
    assert tables.features == len(tables.take()[0]) == 0
    times = Counter(texts[-1].split())
    assert sorted(per_text[-1][1].tolist()) == sorted(times.values())


# any arrays ---------------------------------------------------------------------------------------

any_offset = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 40)


def ranges_of(offsets: list[int], n: int) -> list[tuple[int, int]]:
    begins = [min(max(begin, 0), n) for begin in offsets[:-1]]
    return [(b, min(max(end, b), n)) for b, end in zip(begins, offsets[1:], strict=True)]


@given(
    offsets=st.lists(any_offset, min_size=1, max_size=6),
    data=st.binary(max_size=32) | st.text(max_size=20).map(str.encode),
    unit=st.sampled_from([0, 1]),
)
@pytest.mark.slow
def test_any_offsets_of_a_column_are_clamped(offsets, data, unit):
    arrays = np.frombuffer(data, dtype=np.uint8), np.array(offsets, dtype=np.int64)
    texts = [data[a:b] for a, b in ranges_of(offsets, len(data))]
    made = kernel(unit=unit, sizes=sizes_array(1, 3), words=2)
    expected = made.texts(texts)
    found = made.column(*arrays)
    assert found[3] == expected[3]
    if found[3] == (-1, -1):
        assert shown(found) == shown(expected)
        of_column, of_texts = _native.DocumentTables(), _native.DocumentTables()
        made.count_in_column(of_column, *arrays)
        made.count_in_texts(of_texts, texts)
        assert [a.tolist() for a in of_column.take()] == [a.tolist() for a in of_texts.take()]
    assert found[0].shape == (len(offsets) - 1, 2) and found[1].shape == (len(offsets) - 1, 128)


@given(
    offsets=st.lists(any_offset, min_size=1, max_size=6),
    hashes=st.lists(st.integers(0, 2**64 - 1), max_size=8),
    projection=st.sampled_from([0, 1, 2]),
)
def test_any_offsets_of_hashes_are_clamped(offsets, hashes, projection):
    array, ends = np.array(hashes, dtype=np.uint64), np.array(offsets, dtype=np.int64)
    ranges = ranges_of(offsets, len(hashes))
    for made in (
        kernel(projection=projection).hashes(array, ends),
        kernel(projection=projection).given(array, np.ones(len(hashes)), ends),
    ):
        v = oracle.vectors(array, oracle.PROJECTIONS[projection], 64).astype(np.int64)
        sums = np.array([v[a:b].sum(axis=0) for a, b in ranges]).reshape(-1, 64)
        name = oracle.PROJECTIONS[projection]
        assert made[1].tolist() == oracle.shown_weights(sums, name, "tf").tolist()


number = st.integers(0, 90) | st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64 - 64])


@settings(max_examples=200)
@given(
    size=st.integers(0, 80),
    spans=st.lists(st.tuples(number, number), max_size=4),
    offsets=st.lists(any_offset, min_size=1, max_size=4),
)
@pytest.mark.slow
def test_any_units_are_read_or_refused(size, spans, offsets):
    data = np.frombuffer(os.urandom(size), dtype=np.uint8)
    starts = np.array([a for a, _ in spans], dtype=np.uint64)
    ends = np.array([b for _, b in spans], dtype=np.uint64)
    flat = [place for span in spans for place in span]
    fine = size >= 64 and flat == sorted(flat) and (not flat or flat[-1] <= size - 64)
    made = kernel(sizes=sizes_array(1, 2))
    for call in (made.units, partial(made.count_in_units, _native.DocumentTables())):
        arguments = data, starts, ends, np.array(offsets, dtype=np.int64)
        if fine:
            call(*arguments)
        else:
            with pytest.raises(ValueError):
                call(*arguments)


@settings(max_examples=60)
@given(
    values=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), min_size=32, max_size=32),
    asked=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), max_size=9),
)
@pytest.mark.slow
def test_any_buckets_are_survived(values, asked):
    """Full ones, too, in which a look-up finds no free place."""
    buckets = np.array(values, dtype=np.uint64).reshape(4, 8)
    hashes = np.array(asked, dtype=np.uint64)
    for level in LEVEL_NUMBERS:
        for counting in COUNTINGS:
            made = kernel(with_idf=True, idf=buckets, counting=counting, level=level)
            made.hashes(hashes, np.array([0, len(asked)], dtype=np.int64))
    full = np.ones((4, 8), dtype=np.uint64)
    made = kernel(with_idf=True, idf=full, unseen=4096).hashes(
        np.array([5], dtype=np.uint64), np.array([0, 1], dtype=np.int64)
    )
    assert np.abs(made[1]).tolist() == [[1.0] * 64]


def test_hashes_out_of_order_and_steps_of_zero_are_survived():
    hashes = np.array([9, 5, 5, 2**64 - 1, 0], dtype=np.uint64)
    steps = np.array([1, 0, 3, 4, 5], dtype=np.uint32)
    assert np.count_nonzero(_native.idf_buckets(hashes, steps)[:, 4:]) == 4
    with pytest.raises(ValueError):
        _native.idf_buckets(hashes, steps[:4])


@pytest.mark.parametrize(
    "change",
    [
        {"unit": 2}, {"unit": -1}, {"sizes": sizes_array()}, {"sizes": sizes_array(0, 1)},
        {"counting": 4}, {"counting": -1}, {"words": 0}, {"words": 65}, {"words": -1},
        {"projection": 3}, {"projection": -1}, {"min_features": 0},
        {"counting": 2, "sublinear": SUBLINEAR[:0]},
        {"projection": 1, "quantiles": QUANTILES[:-1]},
        {"projection": 1, "quantiles": QUANTILES[:0]},
        {"with_idf": True}, {"with_idf": True, "idf": np.zeros((1, 8), dtype=np.uint64)},
        {"with_idf": True, "idf": np.zeros((3, 8), dtype=np.uint64)},
        {"with_idf": True, "idf": np.zeros((2, 7), dtype=np.uint64)},
        {"with_idf": True, "idf": np.zeros((2, 0), dtype=np.uint64)},
    ],
    ids=lambda change: " ".join(change),
)  # fmt: skip
def test_inconsistent_recipes_are_refused(change):
    with pytest.raises(ValueError):
        kernel(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": np.array([1])}, {"seed": -1}, {"seed": 2**32}, {"unseen": -1},
        {"idf": np.zeros(8, dtype=np.uint64)}, {"idf": np.zeros((2, 8))}, {"min_features": -1},
        {"quantiles": QUANTILES.astype(np.int32)}, {"sublinear": SUBLINEAR.astype(np.int64)},
    ],
    ids=lambda change: " ".join(change),
)  # fmt: skip
def test_arguments_of_another_type_are_refused(change):
    with pytest.raises(TypeError):
        kernel(**change)


def test_arrays_that_do_not_go_together_are_refused():
    one, none = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
    hashes, data = np.zeros(2, dtype=np.uint64), np.zeros(64, dtype=np.uint8)
    made, tables = kernel(), _native.DocumentTables()
    for call, arguments in (
        (made.column, (data, none)), (made.count_in_column, (tables, data, none)),
        (made.hashes, (hashes, none)), (made.given, (hashes, np.ones(1), one)),
        (made.given, (hashes, np.ones(2), none)), (made.units, (data, hashes, hashes[:1], one)),
        (made.units, (data[:63], hashes[:0], hashes[:0], one)),
        (made.units, (data, hashes, hashes, none)),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call(*arguments)
    for call, arguments in (
        (made.texts, ("text",)), (made.texts, (["a", 1],)), (made.texts, (None,)),
        (made.features, ([bytearray(b"a")],)), (made.split, ([None],)),
        (made.given, (hashes, np.ones(2, dtype=np.float32), one)),
        (made.hashes, (hashes.astype(np.int64), one)),
        (made.count_in_texts, (tables, [1])), (made.hashes, (hashes[::2], one.astype(np.int32))),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call(*arguments)
    assert shown(made.column(b"aba", np.array([0, 3]))) == shown(made.texts([b"aba"]))


def test_kept_entries_that_no_table_has_are_refused():
    """They index arrays of the kernel."""
    made, tables = kernel(counting=3), _native.DocumentTables()
    data, ends = np.frombuffer(b"a b a", np.uint8), np.array([0, 5], np.int64)
    entries, offsets, of, characters, hashed, whole, invalid = made.keep_of_column(
        tables, data, ends
    )
    assert [offsets.tolist(), of.tolist(), characters.tolist()] == [[0, 2], [0], [5]]
    assert sorted(entries.tolist()) == [2, 257] and whole and invalid == (-1, -1)
    assert hashed.tolist() == _native.text_ends(data, ends).tolist()
    hashes, starts = tables.listed()
    steps = made.steps(hashes)
    given = hashes, steps, starts, entries, offsets, of
    assert shown(made.kept(*given)) == shown(made.texts(["a b a"]))
    beyond, none = entries + np.uint32(512), np.empty(0, np.int64)
    for place, other in (
        (0, hashes[:1]), (1, steps[:1]), (2, starts[:1]), (2, none), (3, beyond), (4, none),
        (4, np.array([0, 1, 2], np.int64)), (5, of + np.uint32(1)), (5, of[:0]),
    ):
        with pytest.raises(ValueError):
            made.kept(*given[:place], other, *given[place + 1 :])
    for place, wild in ((2, [-9, 2**62]), (4, [-5, 2**62]), (4, [2, 0])):
        made.kept(*given[:place], np.array(wild, np.int64), *given[place + 1 :])  # clamped


def test_the_smallest_recipes_and_the_largest_sizes_are_fine():
    assert kernel(sizes=sizes_array(255)).texts(["a b"])[2].tolist() == [1]
    repeated = kernel(sizes=sizes_array(3, 1, 3, 1)).texts(TEXTS)
    assert shown(repeated) == shown(kernel(sizes=sizes_array(1, 3)).texts(TEXTS))
    assert kernel(min_features=2**40).texts(["a b a"])[2].tolist() == [2]
    short = kernel(counting=2, sublinear=np.array([0, 4096, 8192], dtype=np.uint32))
    assert np.abs(short.texts(["a a a a a"])[1]).tolist() == [[2.0] * 64]
    assert shown(kernel(level=99).texts(TEXTS)) == shown(kernel(level=-2).texts(TEXTS))
    for n in (0, 1, 7):
        assert kernel().texts(["a"] * n, 100)[0].shape == (n, 1)
    assert len(kernel().texts([], 0)[0]) == 0


def test_a_list_that_changes_meanwhile_is_read_as_it_was():
    """The texts are held; the list may be emptied by another thread."""
    texts = [f"text {i} " * 50 for i in range(20_000)]
    expected = shown(kernel().texts(list(texts)))
    found = []
    thread = threading.Thread(target=lambda: found.append(shown(kernel().texts(texts, 2))))
    held = list(texts)
    thread.start()
    thread.join(0.005)
    texts[:] = ["other"] * len(texts)
    del held
    thread.join()
    assert found[0] == expected or found[0] == shown(kernel().texts(texts))
