"""Similarity as a Jaccard resemblance of sets of features, in every call that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import IndexOptions, Recipe
from simindex.errors import InvalidOption

RECIPE = Recipe(weighting="binary", ngram=1, sketch_bits=2048)


def texts(rng: np.random.Generator, resemblance: float, pairs: int, words: int = 300) -> Any:
    """Pairs of texts whose sets of words have equal sizes and this Jaccard resemblance."""
    made = []
    shared = round(2 * words * resemblance / (1 + resemblance))
    for pair in range(pairs):
        drawn = [f"w{pair}x{number}" for number in range(2 * words - shared)]
        rng.shuffle(drawn)
        made.append((" ".join(drawn[:words]), " ".join(drawn[words - shared :])))
    return made


def filled(path: Path, stored: list[str]) -> None:
    with simindex.open(path, "n", options=IndexOptions(recipe=RECIPE)) as index:
        index.append(RECIPE.batch(stored, ids=range(len(stored))))


@pytest.mark.parametrize("resemblance", [0.6, 0.8])
def test_estimates_are_the_resemblance_of_the_sets(
    index_path: Path, rng: np.random.Generator, resemblance: float
) -> None:
    made = texts(rng, resemblance, 60)
    filled(index_path, [one for one, _ in made])
    with simindex.open(index_path) as index:
        found = index.query(
            [other for _, other in made], similarity=resemblance - 0.15, measure="jaccard",
            recall=0.999,
        )
        assert (found.query == found.id).all()  # words of two pairs are different ones
        assert len(found) >= 55
        assert found.stats.measure == "jaccard"
        assert found.similarity is not None
        assert found.similarity_error is not None
        assert abs(float(np.mean(found.similarity)) - resemblance) < 0.02
        off = (found.similarity - resemblance) / found.similarity_error
        assert 0.6 < float(np.std(off)) < 1.5
        cosine = 2 * (resemblance - 0.15) / (0.85 + resemblance)
        assert f"at similarity {cosine:g}, which sets of equal size" in found.stats.guarantee
        assert (found.similarity >= resemblance - 0.15 - 1e-3).all()
        again = index.query([made[0][1]], similarity=cosine, recall=0.999)
        assert again.distance.tolist() == found.distance[found.query == 0].tolist()


def test_every_call_takes_it(index_path: Path, rng: np.random.Generator) -> None:
    made = texts(rng, 0.9, 20)
    filled(index_path, [text for both in made for text in both])
    wanted: dict[str, Any] = {"similarity": 0.7, "measure": "jaccard", "recall": 0.999}
    with simindex.open(index_path, "w") as index:
        parts = list(index.pairs(**wanted))
        assert sorted((int(a), int(b)) for part in parts for a, b, *_ in part) == [
            (2 * pair, 2 * pair + 1) for pair in range(20)
        ]
        assert all(part.measure == "jaccard" for part in parts)
        told = np.concatenate([part.similarity for part in parts])
        assert abs(float(np.mean(told)) - 0.9) < 0.02
        clusters = index.clusters(**wanted)
        assert clusters.measure == "jaccard"
        assert clusters.clusters == 20
        (matches,) = index.query_stream([made[0][0]], **wanted)
        assert sorted(matches.id.tolist()) == [0, 1]
        assert matches.stats.measure == "jaccard"
        assert "equal size" in index.explain([made[0][0]], **wanted).guarantee
        seen = index.seen_or_add(made[3][0], 100, **wanted)
        assert seen is not None
        assert seen.similarity == 1.0
        fresh, again = texts(rng, 0.9, 21)[20]
        assert index.seen_or_add(fresh, 101, commit_s=None, **wanted) is None
        seen = index.seen_or_add(again, 102, commit_s=None, **wanted)
        assert seen is not None
        assert seen.id == 101
        assert seen.similarity is not None
        assert abs(seen.similarity - 0.9) < 0.06
        found = index.ingest(RECIPE.batch([made[5][0]], ids=[200]), **wanted)
        assert sorted(found.id.tolist()) == [10, 11]
        assert found.stats.measure == "jaccard"


def test_what_is_no_resemblance_is_refused(index_path: Path) -> None:
    filled(index_path, ["one two three four five six seven"])
    with simindex.open(index_path) as index:
        for wrong in (0.3, 1.1, "0.8"):
            with pytest.raises(InvalidOption, match="give a resemblance from 1/3 to 1"):
                index.query("one two", similarity=wrong, measure="jaccard")
        with pytest.raises(InvalidOption, match="measure='dice' is unknown"):
            index.query("one two", similarity=0.8, measure="dice")
        with pytest.raises(InvalidOption, match="none is given"):
            index.query("one two", measure="jaccard")
        with pytest.raises(InvalidOption, match="contradict"):
            index.query("one two", similarity=0.8, h=3, measure="jaccard")
    with simindex.open(index_path, "n", options=IndexOptions(recipe=Recipe()),
                       overwrite=True) as index:
        index.append(Recipe().batch(["one two three four five six"], ids=[1]))
        index.commit()
        for call in (index.pairs, index.clusters):
            with pytest.raises(InvalidOption, match="weighting='sublinear'") as caught:
                call(similarity=0.8, measure="jaccard")
            assert "binary" in caught.value.remedy


def test_sets_of_other_sizes_are_kept_more_than_asked(
    index_path: Path, rng: np.random.Generator
) -> None:
    """The limit of the law: half of a set resembles it by 0.5, and is estimated at 0.55."""
    words = [f"w{number}" for number in range(600)]
    rng.shuffle(words)
    filled(index_path, [" ".join(words)])
    with simindex.open(index_path) as index:
        (match,) = index.query(
            [" ".join(words[:300])], similarity=0.4, measure="jaccard", recall=0.9999
        )
        assert match.similarity is not None
        assert match.similarity_error is not None
        cosine = np.sqrt(0.5)
        expected = cosine / (2 - cosine)
        assert abs(match.similarity - expected) < 3 * match.similarity_error
        assert expected > 0.54
