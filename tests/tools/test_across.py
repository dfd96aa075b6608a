"""The tool that measures pairs of different pages: its pairs by comparing all, and its scores."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


@pytest.mark.parametrize("buckets", [8, 4096])
def test_pairs_of_different_pages_are_those_of_all_cosines(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, buckets: int
) -> None:
    """Also where nearly all words share their bucket, so that bounds are far too high."""
    from reproduce import across, truth

    monkeypatch.setattr(across, "BUCKETS", buckets)
    monkeypatch.setattr(across, "ROWS", 7)
    texts = []
    for _ in range(20):
        words = [f"w{number}" for number in rng.zipf(1.5, 60) % 900]
        texts.append(" ".join(words))
        words[: rng.integers(1, 20)] = ["new"]
        texts.append(" ".join(words))
    page = np.arange(len(texts)) // 4
    pairs, found = across.near([Counter(truth.words(text)) for text in texts], page, 0.6)
    cosines = truth.cosines(texts)
    wanted = np.argwhere(np.triu(cosines >= 0.6, 1) & (page[:, None] != page[None, :]))
    assert len(wanted) > 10
    assert pairs.tolist() == wanted.tolist()
    np.testing.assert_allclose(found, cosines[pairs[:, 0], pairs[:, 1]], atol=1e-6)


def test_a_sample_takes_the_fewest_revisions_with_enough_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two versions of each page, in three states that differ by a word: pairs of versions count,
    those of one path do not."""
    from reproduce import across, pages

    monkeypatch.setattr(across, "ENOUGH", 20)
    made = []
    for version in ("1.x", "2.x"):
        for page in range(6):
            words = [f"p{page}w{number}" for number in range(80)]
            made += [
                pages.Document(
                    "one", f"{version}/page{page}.md", seq, " ".join([*words, f"s{seq}"])
                )
                for seq in range(3)
            ]
    found = across.measured("one", "path", made, 1)
    assert (found.revisions, found.documents, found.pairs) == (2, 24, 24)
    assert all(score == (1.0, 1.0, 1.0) for score in found.found.values())
    assert all(score > 0.98 for score in found.expected.values())
    by_name = across.measured("one", "name", made, 1)
    assert (by_name.documents, by_name.pairs) == (36, 0)
    assert "one by name 0" in across.table([found, by_name])
