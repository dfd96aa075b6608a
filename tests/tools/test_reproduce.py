"""The tool that measures recipes counts what it says, on made-up text counted by hand."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
NEEDS_SCIPY = pytest.mark.skipif(
    importlib.util.find_spec("scipy") is None, reason="exact cosines need scipy"
)


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def test_consecutive_revisions_are_of_one_path_without_a_gap() -> None:
    from reproduce.pages import Document, consecutive

    found = [
        Document("s", path, seq, "")
        for path, seq in [("a", 0), ("a", 1), ("a", 3), ("b", 0), ("b", 1), ("b", 2), ("c", 3)]
    ]
    assert consecutive(found).tolist() == [1, 4, 5]


@pytest.mark.parametrize(
    ("path", "page"),
    [("pep-0001.txt", "pep-0001"), ("peps/pep-0001.rst", "pep-0001"),
     ("10.x/routing.md", "routing"), ("b/bgb/index.md", "bgb")],
)
def test_a_page_keeps_its_name_when_it_moves(path: str, page: str) -> None:
    from reproduce.pages import Document

    assert Document("s", path, 0, "").page == page


def test_a_sample_takes_few_and_evenly_spaced_revisions_of_a_path() -> None:
    from reproduce.pages import Document, sampled

    found = [Document("s", f"p{path}", seq, "") for path in range(20) for seq in range(11)]
    chosen = sampled(found, 30, 3, seed=1)
    assert len(chosen) == 30
    assert {one.seq for one in chosen} == {0, 5, 10}
    assert chosen == sampled(found, 30, 3, seed=1)
    assert {one.path for one in chosen} != {one.path for one in sampled(found, 30, 3, seed=2)}


def test_pages_are_drawn_again_within_their_source() -> None:
    from reproduce.intervals import page_draws, pair_draws

    drawn = page_draws(np.array([0, 0, 0, 1, 1]), 200, seed=3)
    assert drawn[0].tolist() == [1, 1, 1, 1, 1]
    assert set(drawn[:, :3].sum(axis=1)) == {3}
    assert set(drawn[:, 3:].sum(axis=1)) == {2}
    pairs = pair_draws(drawn, np.array([0, 0]), np.array([0, 4]))
    assert np.array_equal(pairs[:, 0], drawn[:, 0])
    assert np.array_equal(pairs[:, 1], drawn[:, 0] * drawn[:, 4])
    assert drawn[:, 0].max() > 1


def test_curves_cross_between_two_h() -> None:
    from reproduce.intervals import crossing

    h, value = crossing(np.array([1.0, 0.9, 0.7]), np.array([0.5, 0.8, 0.8]))
    assert h == pytest.approx(1.5)
    assert value == pytest.approx(0.8)
    assert math.isnan(crossing(np.array([1.0, 1.0]), np.array([0.5, 0.6]))[0])
    assert crossing(np.array([0.2, 0.1]), np.array([0.5, 0.6])) == (0.0, 0.2)


def test_precision_and_recall_of_a_few_pairs() -> None:
    from reproduce.agreement import precision_recall

    # (class, distance): cosines below .8, from .8, from .9, from .95; distances 0, 1, 2.
    pairs = np.array([[[0, 1, 6], [0, 2, 0], [1, 1, 0], [3, 0, 1]]], dtype=float)
    precision, recall = precision_recall(pairs, 0.9)
    assert precision[0].tolist() == pytest.approx([1, 5 / 8, 6 / 15])
    assert recall[0].tolist() == pytest.approx([4 / 6, 5 / 6, 1])


@NEEDS_SCIPY
@pytest.mark.parametrize("weighting", ["binary", "tf", "sublinear", "idf", "tfidf",
                                       "sublinear-tfidf"])
@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 3)])
def test_cosines_are_those_of_counts_by_hand(weighting: str, sizes: tuple[int, ...]) -> None:
    from reproduce import vectors

    rng = np.random.default_rng(4)
    texts = [" ".join(f"W{word}" for word in rng.zipf(1.5, 60) % 40) for _ in range(30)]
    rows = vectors.weighted(vectors.counts(vectors.word_units(texts), sizes), weighting)
    got = np.full((30, 30), np.nan)
    for first, last, cosines in vectors.cosine_blocks(rows):
        got[first:last, first:] = cosines

    def weights(text: str) -> dict[tuple[str, ...], float]:
        words = text.lower().split()
        grams = [tuple(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1)]
        made = {}
        for gram in set(grams):
            tf = grams.count(gram)
            weight = {"binary": 1, "idf": 1, "tf": tf, "tfidf": tf}.get(weighting, 1 + math.log(tf))
            made[gram] = weight * (idf(gram) if "idf" in weighting else 1)
        return made

    @cache
    def idf(gram: tuple[str, ...]) -> float:
        n = len(gram)
        containing = sum(
            any(tuple(words[i : i + n]) == gram for i in range(len(words)))
            for words in (text.lower().split() for text in texts)
        )
        return math.log(31 / (1 + containing)) + 1

    by_hand = [weights(text) for text in texts]
    for a in range(0, 30, 7):
        for b in range(a + 1, 30, 5):
            dot = sum(by_hand[a][gram] * by_hand[b].get(gram, 0) for gram in by_hand[a])
            length = [math.sqrt(sum(w * w for w in by_hand[i].values())) for i in (a, b)]
            assert got[a, b] == pytest.approx(dot / length[0] / length[1], abs=1e-5)


def test_a_text_shorter_than_its_grams_is_one_feature() -> None:
    from reproduce.vectors import ngrams

    two = np.array([7, 8], dtype=np.uint64)
    assert len(ngrams(two, (3,))) == 1
    assert len(ngrams(two, (1, 3))) == 2
    assert len(ngrams(two[:0], (1,))) == 0


@NEEDS_SCIPY
def test_the_pairs_of_a_sample_are_all_counted() -> None:
    """Against a comparison of every pair, one by one."""
    from reproduce import agreement, candidates, kernel, pages, vectors

    rng = np.random.default_rng(5)
    found = []
    for page in range(12):
        words = rng.integers(0, 400, 120).astype(str)
        for seq in range(3):
            words[rng.integers(0, 120, 6)] = "new"
            found.append(pages.Document("ab"[page % 2], f"p{page}", seq, " ".join(words)))
    of = agreement.sample(found, ["a", "b"], seed=1)
    candidate = candidates.Candidate("word", 1, "tf")
    recipe = candidates.recipe(candidate, lambda: of.texts)
    assert recipe is not None
    prints = recipe.batch(of.texts).rows
    curves = agreement.measure(candidate, prints, of)

    rows = vectors.weighted(of.counts(candidate), "tf").toarray()
    cosines = rows @ rows.T
    for width in (64, 256):
        near, right, within = 0, 0, 0
        for a in range(36):
            for b in range(a + 1, 36):
                bits = prints[a, : width // 64] ^ prints[b, : width // 64]
                distance = int(np.bitwise_count(bits).sum())
                near += int(cosines[a, b] >= 0.9)
                within += int(distance <= width // 8)
                right += int(cosines[a, b] >= 0.9 and distance <= width // 8)
        assert right > 0
        assert curves.precision(width, 0.9)[0, width // 8] == pytest.approx(right / within)
        assert curves.recall(width, 0.9)[0, width // 8] == pytest.approx(right / near)
    assert curves.by_cosine.sum() == 36 * 35 / 2
    assert curves.columns.sum(axis=(1, 2)).tolist() == [36 * 35 / 2] * 4
    # Within source a: pairs of a path, of two paths; the same of b; of two sources.
    assert curves.angles.sum(axis=(1, 2)).tolist() == [18, 135, 18, 135, 324]
    upper = np.minimum(cosines[np.triu_indices(36, 1)], 1)
    middles = (np.arange(kernel.ANGLES) + 0.5) * np.pi / 2 / kernel.ANGLES
    assert curves.angles.sum(axis=(0, 1)) @ middles == pytest.approx(np.arccos(upper).sum(), 1e-3)
    assert curves.angles[:, 2:].sum() == near
    assert curves.strangers.sum() == 2 * (18 * 17 / 2 - 6 * 3)


@NEEDS_SCIPY
def test_a_cosine_leads_to_a_binomial_distance() -> None:
    """Mean 64 arccos(cosine) / pi, and the deviation of 64 bits that differ by that chance."""
    from reproduce import kernel

    for cosine in (0.0, 0.5, 0.9, 0.99):
        cells = kernel.cells(
            np.array([0]), np.array([0]), np.array([cosine], dtype=np.float32), (3, 1)
        )
        chances = kernel.predicted(cells, kernel.mix([1]))[0, 0]
        mean = chances @ np.arange(65)
        p = math.acos(cosine) / math.pi
        assert chances.sum() == pytest.approx(1)
        assert mean == pytest.approx(64 * p, abs=0.03)
        deviation = math.sqrt(chances @ (np.arange(65) - mean) ** 2)
        assert deviation == pytest.approx(math.sqrt(64 * p * (1 - p)), abs=0.05)


def test_a_mix_with_more_documents_has_more_pairs_of_each_kind() -> None:
    """Counted: two sources with paths of two revisions, one of them three times as large."""
    from reproduce import kernel

    def kinds(paths: list[int]) -> list[int]:
        source = np.repeat(np.arange(len(paths)), np.array(paths) * 2)
        path = np.repeat(np.arange(sum(paths)), 2)
        a, b = np.triu_indices(len(path), 1)
        found = kernel.kinds(source[a], source[b], path[a] == path[b], len(paths))
        return np.bincount(found, minlength=5).tolist()

    few, many = np.array(kinds([200, 200])), np.array(kinds([600, 200]))
    assert few[-1] == 400 * 400
    assert (kernel.mix([3, 1]) * few).tolist() == pytest.approx(many.tolist(), rel=0.005)
    assert kernel.mix([3, 1], 0)[[0, 2]].tolist() == [0, 0]


LIBRARY = (
    "图书馆每天早上八点开门,晚上九点关门。读者可以凭借书证借阅图书,每次最多借五本,期限为三十天。"
    "如果需要延长借阅时间,请在到期以前通过网站或者电话办理续借手续。逾期没有归还的图书,每本每天"
    "收取一角钱的费用。遗失或者损坏图书的读者,应当购买相同版本的新书赔偿,或者按照原价的两倍付款。"
)
FLOOD = (
    "今年夏天的雨水比往年多,山里的河流涨得很快。村民们在河边修了一道石墙,又把牲畜赶到高处。"
    "老人说,这样的大水四十年前也来过一次,那时候还没有公路,粮食要用船运进来。雨停以后,"
    "孩子们在田里捡到许多小鱼,晚饭的时候家家户户都飘出香味。"
)


@pytest.mark.parametrize("edit", [("五本", "六本"), ("三十天", "二十天"), ("九点", "十点")])
def test_an_edited_letter_changes_two_features_without_spaces(edit: tuple[str, str]) -> None:
    """Two made-up Chinese texts: pairs of letters hold an edit small, whole clauses do not."""
    from simindex import Recipe

    edited = LIBRARY.replace(*edit)

    def features(text: str, recipe: Recipe) -> set[str]:
        return {feature.feature for feature in recipe.features(text)}

    def distance(text: str) -> int:
        rows = recipe.batch([LIBRARY, text]).rows
        return int(np.bitwise_count(rows[0] ^ rows[1]).sum())

    recipe = Recipe(ngram=1, weighting="binary")
    before = features(LIBRARY, recipe)
    assert len(before) == 108
    assert len(before - features(edited, recipe)) == 2
    assert distance(edited) <= 4
    assert distance(FLOOD) == 29


def test_a_weighting_that_the_package_does_not_know_is_left_out() -> None:
    from reproduce import candidates

    assert candidates.recipe(candidates.Candidate("word", 1, "none such"), list) is None


@NEEDS_SCIPY
def test_one_command_writes_every_table_and_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    zstandard = pytest.importorskip("zstandard", reason="the tool reads .zst")
    rng = np.random.default_rng(6)
    (tmp_path / "data").mkdir()
    for source in ("one", "two"):
        lines = []
        for page in range(25):
            words = rng.integers(0, 900, 150).astype(str)
            for seq in range(4):
                words[rng.integers(0, 150, 3)] = f"new{seq}"
                lines.append(
                    json.dumps({"path": f"p{page}", "seq": seq, "text": " ".join(words)})
                )
        content = zstandard.ZstdCompressor().compress("\n".join(lines).encode())
        (tmp_path / "data" / f"{source}.jsonl.zst").write_bytes(content)
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"}
    finished = subprocess.run(
        [sys.executable, str(TOOLS / "reproduce" / "recipes.py"), "--data",
         str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--documents", "60"],
        capture_output=True, text=True, check=False, timeout=200, env=environment,
    )
    assert finished.returncode == 0, finished.stderr
    report = (tmp_path / "out" / "recipes.md").read_text()
    assert "| one: word 1, tfidf | 75 | 25 |" in report
    assert "| all: word 1, tfidf | 150 | 50 |" in report
    assert "120 documents of 30 pages, 7,140 pairs" in report
    assert sorted(file.name for file in (tmp_path / "out").glob("*.svg")) == [
        "expected.svg", "features.svg", "mixes.svg", "revisions.svg", "sources.svg",
        "thresholds.svg", "unrelated.svg", "weightings.svg", "widths.svg",
    ]


def test_dropped_documents_are_held_against_cosines() -> None:
    from reproduce.dedup import Score, against_cosines

    # 1 and 2 are duplicates of 0, 3 of 1, 5 of 4; places of (later, earlier).
    pairs = np.array([(1, 0), (2, 0), (3, 1), (5, 4)])
    every = {"1": "0", "2": "0", "5": "4"}
    # 3 has no kept duplicate once 1 is gone.
    assert against_cosines(every, pairs, 6) == Score(3, 3, 3, 3)
    # 3 is dropped for a document it is not a duplicate of, though it has a kept one; 5 is missed.
    assert against_cosines({"2": "0", "3": "0"}, pairs, 6) == Score(2, 1, 2, 4)
    assert against_cosines({}, pairs, 6) == Score(0, 0, 0, 4)


def test_dropped_documents_are_held_against_labels() -> None:
    from reproduce.dedup import Score, against_labels

    labelled = [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
    lost = {"b": "a", "c": "x", "d": "x", "e": "x", "f": "y", "z": "x"}
    assert against_labels(lost, labelled) == Score(6, 5, 2, 4)


@NEEDS_SCIPY
def test_duplicates_are_the_pairs_of_high_cosine() -> None:
    from reproduce.dedup import duplicates

    rng = np.random.default_rng(2)
    texts = []
    for _ in range(40):
        words = rng.integers(0, 400, 60).astype(str).tolist()
        texts += [" ".join(words), " ".join([*words[:-2], "other", "words"])]
    found = set(map(tuple, duplicates(texts).tolist()))
    assert found == {(place + 1, place) for place in range(0, 80, 2)}


@NEEDS_SCIPY
def test_dedup_of_a_collection_is_printed_for_every_h(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="collections are .zst")
    rng = np.random.default_rng(1)
    lines, articles = [], []
    for page in range(12):
        words = rng.integers(0, 3000, 200).astype(str).tolist()
        for seq in range(2):
            record = {"path": f"p{page}", "seq": seq, "text": " ".join(words)}
            lines.append(json.dumps(record))
            articles.append({"id": f"t{page}.{seq}", "text": record["text"]})
    (tmp_path / "peps.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor().compress("\n".join(lines).encode())
    )
    labelled = tmp_path / "labelled"
    labelled.mkdir()
    with gzip.open(labelled / "articles_24.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, articles)))
    (labelled / "articles_24.pairs.tsv").write_text("t0.0\tt0.1\nt1.1\tt1.0\nt2.0\tt3.0\n")
    finished = subprocess.run(
        [sys.executable, str(TOOLS / "reproduce" / "dedup.py"), "--data", str(tmp_path),
         "--h", "0", "2"],
        capture_output=True, text=True, check=False, timeout=100,
        env={name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"},
    )
    assert finished.returncode == 0, finished.stderr
    rows = [line for line in finished.stdout.splitlines() if line.startswith(("| 0", "| 2"))]
    assert rows == [
        "| 0 | 12 | 1.000 | 1.000 | 12 | 1.000 | 1.000 |",
        "| 2 | 12 | 1.000 | 1.000 | 12 | 1.000 | 1.000 |",
        "| 0 | 12 | 0.167 | 0.667 | 12 | 0.167 | 0.667 |",
        "| 2 | 12 | 0.167 | 0.667 | 12 | 0.167 | 0.667 |",
    ]
    assert "peps: 24 documents; 12 pairs" in finished.stdout


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("word 1, tfidf", "single words, tf-idf"),
        ("word 1, sublinear-tfidf", "single words, sublinear tf-idf"),
        ("word 1+2+3, tf", "1 to 3 words, tf"),
        ("char 5, binary", "5 characters, binary"),
        ("word 1, tf, ternary", "single words, tf, ternary vectors"),
    ],
)
def test_labels_of_plots_are_words(label: str, words: str) -> None:
    from reproduce.plots import in_words

    assert in_words(label) == words


def digits(signature: np.ndarray) -> str:
    return "".join(f"{word:064b}" for word in signature.tolist())


def test_slices_are_counted_from_the_top_of_the_first_word() -> None:
    from reproduce.slices import slices_of

    rows = np.random.default_rng(1).integers(0, 2**64, (3, 2), dtype=np.uint64)
    for row, found in zip(rows, slices_of(rows).tolist(), strict=True):
        assert found == [int(digits(row)[at : at + 16], 2) for at in range(0, 128, 16)]


def test_lists_checked_are_those_of_the_paper() -> None:
    from reproduce.slices import PAPER_COVERED, covered_if_even, lists_checked

    assert lists_checked() == [
        1, 17, 137, 697, 2517, 6885, 14893, 26333, 39203, 50643, 58651, 63019, 64839, 65399, 65519,
        65535, 65536,
    ]
    # 697 of 65,536 lists is 1.06 % of the work: [ISSL] section 2.
    assert covered_if_even(1)[3] == pytest.approx(0.0106, abs=5e-5)
    assert covered_if_even(64)[16] == PAPER_COVERED[16] == 1
    assert len(PAPER_COVERED) == 17


def test_what_slice_lists_find_is_as_defined() -> None:
    """Against strings of digits, row by row."""
    from reproduce.slices import AMONG, ERRORS, RERANKED, looked, slices_of

    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2**64, (300, 2), dtype=np.uint64)
    rows[50:200] = rows[7]
    for row in range(50, 200):
        for bit in rng.choice(128, rng.integers(0, 60), replace=False).tolist():
            rows[row, bit // 64] ^= np.uint64(1 << (bit % 64))
    query = digits(rows[7])
    texts = [digits(row) for row in rows]
    apart = [
        [sum(a != b for a, b in zip(text[at : at + 16], query[at : at + 16], strict=True))
         for at in range(0, 128, 16)]
        for text in texts
    ]
    true = sorted(sum(one) for one in apart)
    found = looked(slices_of(rows), slices_of(rows[7:8])[0])
    assert found.distances.tolist() == true[:100]
    assert found.mean_distance == pytest.approx(sum(true) / 300)
    for errors in ERRORS:
        scores = [sum(16 - bits for bits in one if bits <= errors) for one in apart]
        inside = [sum(bits <= errors for bits in one) for one in apart]
        assert found.covered[errors] == sum(map(bool, inside)) / 300
        assert found.read[errors] == pytest.approx(sum(inside) / 2400)
        for at, most in enumerate(RERANKED):
            listed = [row for row in range(300) if inside[row] or most >= 300]
            ranked = sorted((-scores[row], row) for row in listed)[:most]
            best = sorted((sum(apart[row]), row) for _, row in ranked)[:10]
            got = found.results[errors, at].tolist()
            assert got == [row for _, row in best] + [-1] * (10 - len(best))
            for among, counted in zip(AMONG, found.found[errors, at].tolist(), strict=True):
                assert counted == sum(distance <= true[among - 1] for distance, _ in best)
    assert found.found[16].tolist() == [[10, 10]] * 3
    assert found.found[0, 0, 0] < 10 < found.found[0].sum()


def test_one_command_writes_the_tables_of_slice_lists(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    zstandard = pytest.importorskip("zstandard", reason="the tool reads .zst")
    rng = np.random.default_rng(6)
    lines = []
    for page in range(60):
        words = rng.integers(0, 900, 150).astype(str)
        for seq in range(1 + page % 4):
            words[rng.integers(0, 150, 9)] = f"new{seq}"
            lines.append(json.dumps({"path": f"p{page}", "seq": seq, "text": " ".join(words)}))
    lines.append(json.dumps({"path": "none", "seq": 0, "text": "..."}))
    (tmp_path / "made.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor().compress("\n".join(lines).encode())
    )
    finished = subprocess.run(
        [sys.executable, str(TOOLS / "reproduce" / "issl.py"), "--data", str(tmp_path),
         "--out", str(tmp_path / "out"), "--queries", "12"],
        capture_output=True, text=True, check=False, timeout=100,
        env={name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"},
    )
    assert finished.returncode == 0, finished.stderr
    report = (tmp_path / "out" / "issl.md").read_text()
    assert "means over 12 queries, seed 2011" in report
    assert "| every revision | 151 | 0." in report
    assert "| one of a page | 61 | 0." in report
    assert "| 3 | 697 | 79.62% |" in report
    assert "| 16 | 65,536 | 100.00% | 100.00% | 100.00% | 100.00% | 100.00% | 100.00% |" in report
    assert report.count("| 16 | 10.00 | 10.00 | 10.00 | 10.00 | 10.00 | 10.00 |") == 2
    assert finished.stderr.count("the package finds the same") == 2
    assert "the paper, Table 1" in (tmp_path / "out" / "issl.svg").read_text()


def test_halves_of_a_collection_have_no_document_or_page_in_common() -> None:
    from reproduce.calibration import halves

    found = [(f"text {place}", f"page {place // 5}") for place in range(400)]
    for by, key in (("document", 0), ("page", 1)):
        parts = halves(found, by, 3)
        assert sum(map(len, parts)) == 400 and 100 < len(parts[0]) < 300
        page_of = dict(found)
        names = [{text if key == 0 else page_of[text] for text in part} for part in parts]
        assert not names[0] & names[1]


@pytest.mark.slow
def test_misses_are_those_of_an_index_that_is_asked() -> None:
    """A radius of 0 misses what is not equal; one of all bits misses nothing."""
    from dataclasses import replace

    from reproduce.calibration import measured

    import simindex

    texts = [f"{'a b c d e f g h i j k l m n ' * 3} {place % 7} and {place % 7}" for place in
             range(30)]
    recipe = simindex.Recipe(ngram=1, weighting="tf")
    own = simindex.calibrate(texts, recipe=recipe).own
    assert own is not None
    of_none, _, pairs = measured(texts, recipe, replace(own, h=0))
    of_all, strangers, _ = measured(texts, recipe, replace(own, h=64))
    assert pairs > 100 and of_none > 0 and (of_all, strangers) == (0, 0)


@NEEDS_SCIPY
def test_dropped_documents_are_held_against_cosines_of_kept_ones() -> None:
    """Four documents: the second is the first again, and the third between the others."""
    from reproduce.verified import judged, weighted

    from simindex import Recipe

    texts = ["a b c d e f g h i j", "a b c d e f g h i j", "a b c d e f g h i x", "q r s t u v"]
    rows = weighted(texts, Recipe(ngram=1, weighting="tf"))
    summary: dict[str, int] = {}
    assert judged({1: 0, 2: 0}, rows, summary).cells()[:3] == ["2", "1.000", "1.000"]
    assert judged({1: 0, 3: 0}, rows, summary).cells()[:3] == ["2", "0.500", "0.500"]
    assert judged({3: 2}, rows, {**summary, "verified": 7, "overruled": 2}).cells() == [
        "3", "0.000", "0.000", "7 (2)",
    ]


def test_short_texts_are_within_their_error_once_their_sums_are_counted(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With idf nothing is counted. One of ten words is exchanged, so that by equal weights the
    cosine is 0.9."""
    from reproduce import short_texts

    from simindex import Recipe

    monkeypatch.setattr(short_texts, "PAIRS", 200)
    texts = [" ".join(f"w{number}" for number in rng.zipf(1.3, 400) % 5000) for _ in range(20)]
    ones, others = short_texts.exchanged(texts, 10, rng)
    for one, other in zip(ones, others, strict=True):
        differ = [a != b for a, b in zip(one.split(), other.split(), strict=True)]
        assert len(set(one.split())) == len(set(other.split())) == 10
        assert len({word for word, off in zip(one.split(), differ, strict=True) if off}) == 1
    binary = Recipe(ngram=1, weighting="binary")
    assert short_texts.cosine(binary, ones[0], others[0]) == pytest.approx(0.9)
    before, after = short_texts.within(
        Recipe(ngram=1, weighting="sublinear", sketch_bits=512), ones, others
    )
    assert before < 0.85 and after > 0.88
    idf = Recipe(ngram=1, weighting="idf", sketch_bits=512).fit(texts)
    assert len(set(short_texts.within(idf, ones, others))) == 1


def test_few_features_bias_estimates_as_counted() -> None:
    """Of 10 equal weights, of which one is exchanged: 9 signs add up to -1 in 126 of 512 cases, and
    then half of the pairs of signs decide differently. Normal sums have no bias."""
    from reproduce.few_features import errors

    differ = 126 / 512 / 2
    bias = np.cos(np.pi * differ) - 0.9
    by_sign = errors(10, "no sizes", "sign", 512, 1000, 3)
    assert abs(by_sign.bias - bias) < 0.002 and 0.93 < by_sign.spread < 1.07
    assert by_sign.within < 0.7
    by_sizes = errors(10, "equal", "sign", 512, 1000, 3)
    assert abs(by_sizes.bias) < 0.007 and by_sizes.within > 0.95
    normal = errors(10, "by idf", "gaussian", 512, 1000, 3)
    assert abs(normal.bias) < 0.003 and normal.within > 0.92
