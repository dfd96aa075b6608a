"""With a sketch, a recommended radius of 0 or 1 became a recall of 0, which every call refuses; and
that of a wide fingerprint a recall that stands for another radius. Since 0084 no such radius is
recommended."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import simindex
from simindex.advising.recommendation import share_for
from simindex.bits.cosine import candidate_radius, share_within


def nearly_equal_pages() -> list[str]:
    """Thirty texts of few, frequent words, each with another one in which one word differs."""
    random = Random(1)
    texts = []
    for page in range(30):
        known = [f"w{random.randrange(9000)}" for _ in range(60)]
        words = random.choices(known, k=2000)
        texts.append(" ".join(words))
        words[7] = f"x{page}"
        texts.append(" ".join(words))
    return texts


def test_a_recommendation_for_pages_that_hardly_differ_can_be_asked_for(tmp_path: Path) -> None:
    """Their pairs are found within 1 bit, where hardly a pair at 0.9 is."""
    texts = nearly_equal_pages()
    recipe = simindex.Recipe(sketch_bits=512, ngram=1, weighting="tf")
    with simindex.open(
        tmp_path / "i.sim", "n", options=simindex.IndexOptions(recipe=recipe)
    ) as index:
        index.append(recipe.batch(texts))
        index.commit()
        index.calibrate(texts)
        index.commit()
        advice = index.advice
        assert advice is not None and advice.reached
        pairs = list(index.pairs(**advice.arguments))
        assert f"candidates within {advice.h} of 64 bits" in pairs[0].guarantee
        assert sum(map(len, pairs)) >= 28


@pytest.mark.parametrize("bits", [64, 256, 1024])
@pytest.mark.parametrize("similarity", [0.86, 0.9, 0.94])
def test_the_share_of_a_radius_stands_for_it(bits: int, similarity: float) -> None:
    """As long as it is told from the share of the next smaller one, and is not 1."""
    for h in range(bits // 3):
        share = share_for(similarity, h, bits)
        assert 0 < share < 1
        if share_within(h, similarity, bits) < 1 - 1e-12:
            assert candidate_radius(similarity, share, bits) == h
