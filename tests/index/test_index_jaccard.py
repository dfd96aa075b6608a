"""Similarity as a Jaccard resemblance of sets of features, in every call that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe, find_all
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
        assert f"at similarity {cosine:g}, that of sets of equal size" in found.stats.guarantee
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


def test_sets_of_other_sizes_have_their_resemblance(
    index_path: Path, rng: np.random.Generator
) -> None:
    """Half of a set resembles it by 0.5; by the law for sets of equal size that would be 0.55."""
    made = []
    for pair in range(60):
        words = [f"w{pair}x{number}" for number in range(600)]
        rng.shuffle(words)
        made.append((" ".join(words), " ".join(words[:300])))
    filled(index_path, [one for one, _ in made])
    asked = {"similarity": 0.4, "measure": "jaccard", "recall": 0.9999}
    batch = RECIPE.batch([other for _, other in made])
    with simindex.open(index_path) as index:
        found = index.query(batch, **asked)
        assert (found.query == found.id).all()
        assert len(found) == 60
        assert found.similarity is not None
        assert abs(float(np.mean(found.similarity)) - 0.5) < 0.01
        bare = Batch(batch.rows, weights=batch.weights, sketch=batch.sketch)
        law = index.query(bare, **asked)
        assert law.similarity is not None
        assert abs(float(np.mean(law.similarity)) - np.sqrt(0.5) / (2 - np.sqrt(0.5))) < 0.01
        kept = index.query(batch, similarity=0.53, measure="jaccard", recall=0.9999)
        assert len(kept) < 15 < 45 < len(index.query(
            bare, similarity=0.53, measure="jaccard", recall=0.9999
        ))


def test_every_call_compares_by_sizes(index_path: Path, rng: np.random.Generator) -> None:
    """A part of a set, which only the sizes keep away."""
    words = [f"w{number}" for number in range(600)]
    rng.shuffle(words)
    both = [" ".join(words), " ".join(words[:300])]
    batch = RECIPE.batch(both, ids=[1, 2])
    bare = Batch(batch.rows, ids=[3, 4], sketch=batch.sketch)
    asked: dict[str, Any] = {"similarity": 0.53, "measure": "jaccard", "recall": 0.9999}
    with simindex.open(index_path, "n", options=IndexOptions(recipe=RECIPE)) as index:
        index.append(batch)
        index.commit()
        index.compact(full=True)
        assert [len(part) for part in index.pairs(**asked) if len(part)] == []
        assert index.clusters(**asked).clusters == 0
        assert len(find_all(batch, **asked)) == 0
        assert [match.id for match in index.query(both[1], **asked)] == [2]
        assert index.delete(ids=[1]) == 1
        assert index.seen_or_add(both[0], 5, commit_s=None, **asked) is None
        one = index.seen_or_add(" ".join(words[300:]), 6, commit_s=None, **asked)
        assert one is None
        inside = index.ingest(RECIPE.batch([" ".join(words), " ".join(words[100:400])],
                                           ids=[7, 8]), **asked)
        assert {(query, id_) for query, id_ in zip(inside.query.tolist(), inside.id.tolist(),
                                                   strict=True)} == {(0, 5)}
    with simindex.open(index_path, "n", options=IndexOptions(recipe=RECIPE),
                       overwrite=True) as index:
        index.append(bare)
        index.commit()
        assert sum(map(len, index.pairs(**asked))) == 1
        assert index.clusters(**asked).clusters == 1
        assert len(find_all(Batch(bare.rows, sketch=bare.sketch), **asked)) == 1
