"""Fingerprints and weights against the definition, bit for bit, for all combinations of options."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import InvalidOption
from simindex.simhash import features
from simindex.simhash.projection import normal_quantiles
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import WEIGHTINGS, sublinear_steps

TEXTS = [
    *oracle.SCRIPTS, *oracle.ODDITIES, "the fox and the dog and the fox", "the the the",
    " ".join(f"w{i * i % 37}" for i in range(40)),
]  # fmt: skip
LEARNED = TEXTS[::2] * 3 + TEXTS[:5]
"""What idf is learned from: half of the features of TEXTS, and how often differs."""

SIZES = [(1,), (2,), (3,), (4,), (5,), (1, 2, 3), (2, 5)]
WIDTHS = (64, 128, 1024, 4096)
PROJECTIONS = oracle.PROJECTIONS


@cache
def learned(unit: str, sizes: tuple[int, ...]) -> Counter[bytes]:
    return oracle.document_frequencies(LEARNED, unit, sizes)


@cache
def frequencies(unit: str, sizes: tuple[int, ...]):
    return Recipe(unit=unit, ngram=sizes).document_frequencies(LEARNED)


def recipe_of(unit="word", sizes=(1,), weighting="tf", projection="sign", bits=64) -> Recipe:
    recipe = Recipe(bits, unit, sizes, weighting, projection=projection)
    return recipe.fit(frequencies(unit, sizes)) if WEIGHTINGS[weighting].idf else recipe


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.slow
def test_every_combination_is_as_defined(unit, sizes, projection):
    """All weightings and widths at once: the definition's sums are made at 4,096 columns, of which
    narrower fingerprints have the first. Products and sums stay below 2^53, so doubles hold them.
    """
    counted = [oracle.features(text, unit, sizes) for text in TEXTS]
    names = list(dict.fromkeys(name for found in counted for name in found))
    place = {name: i for i, name in enumerate(names)}
    hashes = np.array([oracle.feature_hash(name, 0) for name in names], dtype=np.uint64)
    v = oracle.vectors(hashes, projection, max(WIDTHS)).astype(np.float64)
    df = learned(unit, sizes)
    kept = [position for position, found in enumerate(counted) if found]
    for weighting in oracle.WEIGHTINGS:
        matrix = np.zeros((len(TEXTS), len(names)))
        for row, found in enumerate(counted):
            steps = oracle.steps_of(found, len(LEARNED), df, weighting)
            for name, count in found.items():
                matrix[row, place[name]] = oracle.weight(count, steps[name], weighting)
        assert np.abs(matrix).sum(axis=1).max() * np.abs(v).max() < 2**53
        sums = (matrix @ v).astype(np.int64)[kept]
        shown = oracle.shown_weights(sums, projection, weighting)
        for bits in WIDTHS:
            batch = recipe_of(unit, sizes, weighting, projection, bits).batch(
                TEXTS, ids=range(len(TEXTS))
            )
            assert batch.ids.tolist() == kept
            assert np.array_equal(batch.rows, oracle.words_of(sums[:, :bits], projection)), bits
            assert np.array_equal(batch.weights, shown[:, :bits]), (weighting, bits)
            assert [s.position for s in batch.skipped] == sorted(set(range(len(TEXTS))) - set(kept))


@settings(max_examples=150)
@given(
    texts=st.lists(oracle.texts, max_size=3),
    unit=st.sampled_from(["word", "char"]),
    sizes=st.sampled_from(SIZES),
    weighting=st.sampled_from(oracle.WEIGHTINGS),
    projection=st.sampled_from(PROJECTIONS),
    bits=st.sampled_from([64, 192]),
    seed=st.sampled_from([0, 1, 7, 2**31, 2**32 - 1]),
)
@pytest.mark.slow
def test_fingerprints_of_any_text_are_as_defined(
    texts, unit, sizes, weighting, projection, bits, seed
):
    """Sums in Python's own whole numbers; half of what the texts say was learned."""
    corpus = [*texts[:1], "one two", "one", ""]
    recipe = Recipe(
        bits=bits, unit=unit, ngram=sizes, weighting=weighting, projection=projection, seed=seed
    )
    if WEIGHTINGS[weighting].idf:
        recipe = recipe.fit(corpus)
    df = oracle.document_frequencies(corpus, unit, sizes)
    batch = recipe.batch(texts, ids=range(len(texts)))
    rows = dict(zip(batch.ids.tolist(), range(len(batch)), strict=True))
    for position, text in enumerate(texts):
        fingerprint, weights, count = oracle.simhash(
            text, unit=unit, sizes=sizes, weighting=weighting, bits=bits, seed=seed,
            projection=projection, documents=len(corpus), df=df,
        )  # fmt: skip
        assert (position in rows) == (count > 0)
        if count:
            assert batch.rows[rows[position]].tolist() == fingerprint
            assert batch.weights[rows[position]].tolist() == weights.tolist()


def test_the_parts_of_the_definition_agree_with_its_sentences():
    """The oracle's draws side by side are those of the sentence; what is tabled is as stated."""
    hashes = np.array([0, 1, 2**64 - 1, 0x0123456789ABCDEF], dtype=np.uint64)
    for index in (0, 1, 2, 63, 191, 1023):
        assert oracle.draws(hashes, index).tolist() == [
            oracle.drawn(h, index) for h in hashes.tolist()
        ]
    h = 0x0123456789ABCDEF
    sign = oracle.vectors(hashes[3:], "sign", 128)[0]
    bits = f"{h:064b}{oracle.drawn(h, 1):064b}"
    assert sign.tolist() == [1 if bit == "1" else -1 for bit in bits]
    gaussian = oracle.vectors(hashes[3:], "gaussian", 64)[0]
    assert gaussian[:2].tolist() == oracle.quantiles()[[0xCDEF, 0x89AB]].tolist()
    assert gaussian[4] == oracle.quantiles()[oracle.drawn(h, 1) & 0xFFFF]
    ternary = oracle.vectors(hashes[3:], "ternary", 128)[0]
    for column in range(128):
        word, bit = divmod(column, 64)
        signs, one, other = ((oracle.drawn(h, 3 * word + i) >> (63 - bit)) & 1 for i in range(3))
        assert ternary[column] == (one & other) * (2 * signs - 1)


def test_the_tables_handed_to_the_kernels_are_those_of_the_definition():
    assert normal_quantiles().tolist() == oracle.quantiles().tolist()
    assert sublinear_steps()[1:].tolist() == [
        oracle.weight(tf, 4096, "sublinear") for tf in range(1, 1 << 16)
    ]


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("weighting", oracle.WEIGHTINGS)
@pytest.mark.slow
def test_long_texts_are_as_defined(weighting, projection):
    """Beyond all blocks and pieces: 60,000 words, one of them more than 65,535 times."""
    rng = np.random.default_rng(4)
    text = " ".join(f"w{i}" for i in rng.zipf(1.3, 60_000) % 5000) + " often" * 66_000
    df = oracle.document_frequencies(LEARNED, "word", (1,))
    recipe = recipe_of("word", (1,), weighting, projection, 128)
    batch = recipe.batch([text])
    fingerprint, weights, _ = oracle.simhash(
        text, unit="word", sizes=(1,), weighting=weighting, bits=128, projection=projection,
        documents=len(LEARNED), df=df,
    )  # fmt: skip
    assert batch.rows[0].tolist() == fingerprint
    assert batch.weights[0].tolist() == weights.tolist()


def test_a_sum_of_zero_is_a_bit_of_one_but_for_ternary():
    """Two features whose vectors cancel in a column."""
    recipe = {p: recipe_of(projection=p, bits=1024) for p in ("sign", "ternary")}
    for projection, bit in (("sign", 1), ("ternary", 0)):
        batch = recipe[projection].batch(["one two"])
        zero = np.flatnonzero(batch.weights[0] == 0)
        assert len(zero) > 100
        assert set(oracle.bits_of(batch.rows[0]).reshape(-1)[zero].tolist()) == {bit}


@pytest.mark.parametrize("weighting", ["tf", "given"])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_every_width_is_as_defined(projection, weighting):
    """All 64 of them, of texts and of given weights, which the kernels add up by themselves."""
    hashes = np.array([oracle.feature_hash(b"%d" % i, 0) for i in range(30)], dtype=np.uint64)
    weights = np.arange(0.5, 30.5)
    v = oracle.vectors(hashes, projection, 4096)
    text = " ".join(str(i) for i in range(30) for _ in range(i + 1))
    counts = np.arange(1, 31) if weighting == "tf" else weights
    sums = counts @ v.astype(np.float64)
    ones = oracle.shown_weights(sums, projection, weighting)
    for bits in range(64, 4097, 64):
        recipe = Recipe(bits, "word", 1, weighting, projection=projection)
        if weighting == "tf":
            batch = recipe.batch([text])
        else:
            batch = recipe.batch_features(hashes, np.array([0, 30]), weights)
        assert np.array_equal(batch.rows, oracle.words_of(sums[None, :bits], projection)), bits
        assert np.array_equal(batch.weights[0], ones[:bits]), bits


def test_ternary_signatures_of_few_features_have_more_zeros_than_ones():
    """TopSig's way with a sum of 0, [ISSL] section 2: three of four factors are 0."""
    hashes = np.random.default_rng(6).integers(0, 2**64, 4000, dtype=np.uint64)
    v = oracle.vectors(hashes, "ternary", 1024)
    for factor, share in ((-1, 1 / 8), (0, 3 / 4), (1, 1 / 8)):
        assert (v == factor).mean() == pytest.approx(share, abs=0.001)
    recipe = Recipe(1024, "word", 1, "given", projection="ternary")
    for features_, expected in ((1, 1 / 8), (2, 13 / 64), (1000, 0.487)):
        ends = np.arange(0, 4001, features_)
        batch = recipe.batch_features(hashes, ends, np.ones(4000))
        ones = oracle.bits_of(batch.rows.reshape(-1)).mean()
        assert ones == pytest.approx(expected, abs=0.02), features_


def test_narrow_fingerprints_begin_wide_ones():
    for projection in PROJECTIONS:
        wide = recipe_of(projection=projection, bits=4096).batch(oracle.SCRIPTS)
        narrow = recipe_of(projection=projection, bits=192).batch(oracle.SCRIPTS)
        assert np.array_equal(wide.weights[:, :192], narrow.weights)


# what must not show -------------------------------------------------------------------------------


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("weighting", [name for name in WEIGHTINGS if name != "given"])
def test_a_sketch_is_the_definition_s_further_bits(weighting, projection):
    """The fingerprint and its weights are those of the recipe without a sketch, bit for bit."""
    plain = recipe_of(weighting=weighting, projection=projection)
    batch = replace(plain, sketch_bits=192).batch(TEXTS)
    expected = plain.batch(TEXTS)
    assert batch.fingerprints.tolist() == expected.fingerprints.tolist()
    assert batch.weights.tobytes() == expected.weights.tobytes()
    assert [one.position for one in batch.skipped] == [one.position for one in expected.skipped]
    wide = replace(plain, bits=256).batch(TEXTS)
    assert batch.sketch.tolist() == wide.fingerprints[:, 1:].tolist()
    assert batch.sketch_bits == 192
    assert expected.sketch is None
    assert expected.sketch_bits == 0


def test_a_sketch_stays_with_its_text_through_portions_and_selections(monkeypatch):
    monkeypatch.setattr(features, "PORTION_TEXTS", 3)
    recipe, texts = Recipe(sketch_bits=64), ["", *TEXTS, "", "one more text"]
    batch = recipe.batch(iter(texts))
    kept = [text for text in texts if len(recipe.fingerprint(text))]
    each = [recipe.fingerprint(text).sketch.tolist()[0] for text in kept]
    assert batch.sketch.tolist() == each
    assert batch.take(np.array([2, 0])).sketch.tolist() == [each[2], each[0]]
    assert recipe.batch([]).sketch.shape == (0, 1)
    column = pa.table(batch)["sketch"].to_pylist()
    assert column == each


def many_texts() -> list[str]:
    rng = np.random.default_rng(8)
    return [
        " ".join(rng.choice(TEXTS, 2).tolist()) if i % 7 else "" for i in rng.integers(0, 99, 700)
    ]


MANY = many_texts()


def shown(batch) -> tuple:
    return batch.rows.tobytes(), batch.weights.tobytes(), batch.skipped


@pytest.mark.parametrize("stop_words", [(), ("the",)], ids=["kernels", "words"])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("weighting", ["tf", "sublinear-tfidf"])
@pytest.mark.slow
def test_neither_threads_nor_kind_nor_portions_show(
    monkeypatch, weighting, projection, stop_words
):
    recipe = recipe_of("word", (1, 3), weighting, projection, 128)
    if stop_words:
        recipe = Recipe(
            128, "word", (1, 3), weighting, projection=projection, stop_words=stop_words
        )
        recipe = recipe.fit(MANY) if weighting != "tf" else recipe
    expected = shown(recipe.batch(MANY, threads=1))
    encoded = [text.encode("utf-8", "surrogatepass") for text in MANY]
    fine = [i for i, text in enumerate(MANY) if text.encode("utf-8", "ignore") == encoded[i]]
    listed, strict = [MANY[i] for i in fine], [encoded[i] for i in fine]
    alike = shown(recipe.batch(listed, threads=1))
    for threads in (1, 2, 5):
        for shape in (MANY, tuple(MANY), iter(MANY)):
            assert shown(recipe.batch(shape, threads=threads)) == expected
        column = pa.array(listed)
        chunks = [column.slice(a, 100) for a in range(0, len(column), 100)]
        for shape in (strict, column, pa.chunked_array(chunks)):
            assert shown(recipe.batch(shape, threads=threads)) == alike
    for most_texts, most_characters in ((1, 99), (3, 1 << 25), (1 << 14, 50)):
        monkeypatch.setattr(features, "PORTION_TEXTS", most_texts)
        monkeypatch.setattr(features, "PORTION_CHARACTERS", most_characters)
        assert shown(recipe.batch(iter(MANY), threads=2)) == expected


@pytest.mark.parametrize("stop_words", [(), ("the",)], ids=["kernels", "words"])
@pytest.mark.slow
def test_document_frequencies_are_those_of_the_definition_however_they_are_counted(
    monkeypatch, stop_words
):
    recipe = Recipe(ngram=(1, 3), stop_words=stop_words)
    exact: Counter[bytes] = Counter()
    for text in MANY:
        found = [word for word in oracle.words(text) if word not in stop_words]
        exact.update(set(oracle.grams(found, "word", (1, 3))))
    expected = sorted((oracle.feature_hash(name, 0), n) for name, n in exact.items())
    column = pa.array([text.encode("utf-8", "replace").decode() for text in MANY])
    replaced = recipe.document_frequencies(column.to_pylist(), threads=1).to_bytes()
    for threads in (1, 2, 5):
        for shape in (MANY, iter(MANY)):
            counted = recipe.document_frequencies(shape, threads=threads)
            assert counted.documents == len(MANY)
            found = zip(counted.hashes.tolist(), counted.counts.tolist(), strict=True)
            assert list(found) == expected
        assert recipe.document_frequencies(column, threads=threads).to_bytes() == replaced
        monkeypatch.setattr(features, "PORTION_TEXTS", 7)


@pytest.mark.parametrize("weighting", [w for w in oracle.WEIGHTINGS if WEIGHTINGS[w].idf])
def test_the_order_of_features_and_documents_changes_nothing(weighting):
    recipe = Recipe(ngram=1, weighting=weighting)
    fitted = recipe.fit(["a b c", "b c d", "c"])
    assert fitted == recipe.fit(["c", "d c b", "c b a"])
    one, other = fitted.batch(["a a b c d e"]), fitted.batch(["e d c a b a"])
    assert one.weights.tolist() == other.weights.tolist()


# too few features ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_words", [(), ("zzz",)], ids=["kernels", "words"])
@pytest.mark.parametrize("weighting", oracle.WEIGHTINGS)
@pytest.mark.parametrize("min_features", [1, 2, 3, 9])
def test_texts_with_too_few_distinct_features_are_left_out(weighting, stop_words, min_features):
    texts = ["a b c", "", "a a b", "a a a a", "... !", "c d e f g h i j k", "a b"]
    recipe = Recipe(
        ngram=1, weighting=weighting, min_features=min_features, stop_words=stop_words
    )
    if WEIGHTINGS[weighting].idf:
        recipe = recipe.fit(texts)
    counts = [len(set(oracle.words(text))) for text in texts]
    batch = recipe.batch(texts, ids=range(len(texts)))
    assert batch.ids.tolist() == [i for i, n in enumerate(counts) if n >= min_features]
    assert [(s.position, s.key, s.reason) for s in batch.skipped] == [
        (i, i, f"too few features: {n} < {min_features}" if n else "empty")
        for i, n in enumerate(counts)
        if n < min_features
    ]
    few = Recipe(ngram=1, weighting=weighting, stop_words=stop_words, idf=recipe.idf)
    kept = few.batch([text for text, n in zip(texts, counts, strict=True) if n >= min_features])
    assert batch.weights.tolist() == kept.weights.tolist()


@pytest.mark.parametrize("stop_words", [(), ("zzz",)], ids=["kernels", "words"])
@pytest.mark.parametrize("weighting", oracle.WEIGHTINGS)
@given(
    texts=st.lists(st.text("ab c한漢-", max_size=30), max_size=8),
    asked=st.integers(0, 40), least=st.integers(1, 4),
)
@pytest.mark.slow
def test_features_are_counted_as_far_as_asked(weighting, stop_words, texts, asked, least):
    recipe = Recipe(
        ngram=(1, 2), weighting=weighting, min_features=least, stop_words=stop_words
    )
    if WEIGHTINGS[weighting].idf:
        recipe = recipe.fit([*texts, "a b"])
    batch = recipe.batch(texts, count_features=asked)
    counts = [len(oracle.features(text, "word", (1, 2))) for text in texts]
    if not asked:
        assert batch.features is None
    else:
        assert batch.features.tolist() == [min(n, asked) for n in counts if n >= least]
    plain = recipe.batch(texts)
    assert batch.weights.tolist() == plain.weights.tolist() and batch.skipped == plain.skipped


@pytest.mark.parametrize("wrong", [-1, 2**31, 1.5, None, True])
def test_features_cannot_be_counted_up_to_anything(wrong):
    with pytest.raises(InvalidOption, match="count_features"):
        Recipe().batch(["a"], count_features=wrong)


# for people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", oracle.WEIGHTINGS)
@pytest.mark.parametrize(("unit", "sizes"), [("word", (1, 2)), ("char", (3,)), ("word", (5,))])
def test_features_for_people_are_those_that_are_summed(unit, sizes, weighting):
    recipe = recipe_of(unit, sizes, weighting)
    df = learned(unit, sizes)
    for text in TEXTS:
        found = recipe.features(text)
        expected = oracle.features(text, unit, sizes)
        assert {f.feature.encode("utf-8", "surrogatepass"): f.count for f in found} == expected
        steps = oracle.steps_of(expected, len(LEARNED), df, weighting)
        for feature in found:
            name = feature.feature.encode("utf-8", "surrogatepass")
            made = oracle.weight(feature.count, steps[name], weighting)
            assert feature.weight == made / (4096 if oracle.stepped(weighting) else 1)
        assert found == sorted(found, key=lambda f: (-f.weight, f.feature))
