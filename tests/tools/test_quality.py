"""The tool that measures the defaults: its truth by hand, and the floors that they must keep."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
DATA = os.environ.get("SIMINDEX_DATA")
"""A directory of *.jsonl.zst with real pages and their revisions, and scripts/ with more."""

FLOORS = {
    "peps": 0.88, "rust-book": 0.82, "laravel-docs": 0.82, "gesetze": 0.88,
    "zh": 0.85, "ja": 0.88, "ko": 0.88, "ru": 0.88, "ar": 0.88,
}
"""F1 on a small sample: the floors of the defaults, less for zh, whose 200 documents are few."""
UNLEARNED_FLOOR = 0.72


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def test_words_are_those_of_the_tokenizer() -> None:
    from reproduce import truth

    from simindex import Recipe

    for text in (
        "One, two; THREE 3", "漢字の本 and 한국어 문장은", "Straße x漢字y", "ไทย a_b", "漢",
    ):  # fmt: skip
        found = Counter(truth.words(text))
        made = {one.feature: one.count for one in Recipe(ngram=1).features(text)}
        assert found == made


def test_cosines_are_those_of_tf_idf() -> None:
    from reproduce import truth

    texts = ["a a b", "a b b c", "d", "", "A, a: B!"]
    counted = [Counter(text.lower().replace(",", "").replace(":", "").replace("!", "").split())
               for text in texts]
    df = Counter(word for counts in counted for word in counts)
    weighed = [
        {w: n * (log((1 + len(texts)) / (1 + df[w])) + 1) for w, n in counts.items()}
        for counts in counted
    ]

    def cosine(one: dict[str, float], other: dict[str, float]) -> float:
        lengths = [sqrt(sum(x * x for x in side.values())) or 1 for side in (one, other)]
        return sum(x * other.get(w, 0) for w, x in one.items()) / (lengths[0] * lengths[1])

    expected = [[cosine(one, other) for other in weighed] for one in weighed]
    found = truth.cosines(texts)
    upper = np.triu_indices(len(texts), 1)  # a word of one document counts for its length alone
    np.testing.assert_allclose(found[upper], np.array(expected)[upper], rtol=1e-5)
    assert found[0, 4] == pytest.approx(1) and 0 < found[0, 1] < 1


def test_scores_count_pairs_and_dropped_documents(tmp_path: Path) -> None:
    from reproduce import quality

    cosines = np.eye(4, dtype=np.float32)
    cosines[0, 1] = cosines[1, 0] = 0.95
    cosines[2, 3] = cosines[3, 2] = 0.9
    cosines[0, 2] = cosines[2, 0] = 0.7
    of = quality.Sample("made up", ["a"] * 4, 4, cosines)
    score = of.score(np.array([[0, 1], [0, 2]]))
    assert (score.precision, score.recall, score.f1) == (0.5, 0.5, 0.5)
    assert of.strangers(np.array([[0, 2], [0, 3]])) == pytest.approx(1e6 / 3)


def collections() -> Iterator[tuple[str, Path]]:
    for directory in (Path(DATA or ""), Path(DATA or "") / "scripts"):
        for name in FLOORS:
            if (directory / f"{name}.jsonl.zst").exists():
                yield name, directory


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="SIMINDEX_DATA names no directory of real pages")
def test_the_defaults_keep_their_floors(tmp_path: Path) -> None:
    from reproduce import pages, quality

    from simindex import Recipe

    measured = dict(collections())
    assert measured, f"no known collection in {DATA}"
    for name, directory in measured.items():
        of = quality.sample(name, list(pages.documents(directory, name)), 200, 6, seed=1)
        found, _ = quality.built(of.texts, tmp_path)
        assert of.score(found).f1 >= FLOORS[name], name
        assert quality.deduplicated(of, tmp_path).f1 >= FLOORS[name], name
        unlearned = of.score(quality.made(of.texts, Recipe(), None))
        assert unlearned.f1 >= UNLEARNED_FLOOR, name


def test_pairs_by_similarity_are_those_of_the_sketches() -> None:
    """Equal and different pages, told apart at any width; each pair once, in order."""
    from reproduce import sketches

    pages = [" ".join(f"w{start + i}" for i in range(60)) for start in (0, 1000, 2000)]
    texts = [*pages, pages[0] + " more", pages[2]]
    for width, share, found in sketches.by_width(texts):
        assert found.tolist() == [[0, 3], [2, 4]], (width, share)


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="SIMINDEX_DATA names no directory of real pages")
def test_sketches_keep_their_floors() -> None:
    from reproduce import pages, quality, sketches

    for name, directory in collections():
        of = quality.sample(name, list(pages.documents(directory, name)), 400, 6, seed=1)
        scores = {
            (width, share): of.score(found).f1
            for width, share, found in sketches.by_width(of.texts)
        }
        assert scores[512, 0.85] >= 0.93, name
        assert scores[1024, 0.85] >= 0.95, name


def test_resemblances_and_scores_beside_minhash_are_counted_by_hand() -> None:
    """Texts of one page are no pair of different pages; few of these have no score."""
    from reproduce import minhash

    texts = ["a b c d e", "a b c d f", "x y z", "A, b: c d e!"]
    sets = [minhash._shingles(text) for text in texts]
    assert sets[0] == {"a b c", "b c d", "c d e"} == sets[3]
    found = minhash._resemblances(sets)
    wanted = [[len(one & other) / len(one | other) for other in sets] for one in sets]
    np.testing.assert_allclose(np.triu(found, 1), np.triu(wanted, 1))
    apart = np.triu(np.ones((4, 4), np.bool_), 1)
    apart[0, 3] = False
    right = np.asarray(found >= 0.5)
    one = minhash.Collection("one", apart, {"jaccard": right}, {}, {}, {})
    assert one.f1(np.asarray(found >= 0.8), "jaccard") == 2 * 1 / (1 + 3)
    assert np.isnan(one.f1(right, "jaccard", different=True))


def test_the_expected_score_is_that_of_drawn_bits(rng: np.random.Generator) -> None:
    """Bits that differ with the chance of each pair, drawn a hundred times."""
    from reproduce import minhash

    from simindex import Recipe
    from simindex.planning.similarity import similar

    resemblances = np.repeat([0.3, 0.7, 0.78, 0.8, 0.82, 0.95], [50, 20, 10, 5, 10, 20])
    share = np.arccos(2 * resemblances / (1 + resemblances)) / np.pi
    right = resemblances >= 0.8
    for width in minhash.WIDTHS:
        h = similar(
            0.8, h=None, recall=1.0, bits=64, sketch_bits=width, measure="jaccard",
            recipe=Recipe(weighting="binary"),
        ).h
        apart = rng.binomial(width, share, (100, len(share)))
        near = rng.binomial(64, share, apart.shape) <= h
        found = near & (apart <= width * np.arccos(1.6 / 1.8) / np.pi)
        scores = 2 * (found & right).sum(axis=1) / (found.sum(axis=1) + right.sum())
        expected = minhash.expected_f1(resemblances.astype(np.float32), width)
        assert abs(expected - scores.mean()) < 4 * scores.std() / 10


def test_the_expected_score_of_minhash_is_that_of_drawn_permutations(
    rng: np.random.Generator
) -> None:
    from reproduce import minhash

    resemblances = np.repeat([0.3, 0.7, 0.78, 0.8, 0.82, 0.95], [50, 20, 10, 5, 10, 20])
    right = resemblances >= 0.8
    for permutations in minhash.PERMUTATIONS:
        equal = rng.binomial(permutations, resemblances, (100, len(resemblances)))
        found = equal / permutations >= 0.8
        scores = 2 * (found & right).sum(axis=1) / (found.sum(axis=1) + right.sum())
        expected = minhash.expected_minhash_f1(resemblances.astype(np.float32), permutations)
        assert abs(expected - scores.mean()) < 4 * scores.std() / 10


def test_bits_of_the_fingerprint_are_added_to_those_of_the_sketch() -> None:
    """Copies are found either way, and pairs that share nothing by neither."""
    from reproduce import added

    texts = [" ".join(f"p{page}w{word}" for word in range(60)) for page in range(8)] * 2
    found = added.collection(texts, seeds=2)
    assert set(found) == {(of, width) for of in ("cosine", "jaccard") for width in (512, 1024)}
    assert all(one.alone.tolist() == one.both.tolist() == [1, 1] for one in found.values())
    assert added.table([("one", found)]).count("1.0000 | 1.0000 | 0 / 0 |") == 8
