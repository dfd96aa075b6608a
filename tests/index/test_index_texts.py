"""`Index.clusters(texts=...)`: doubtful pairs decided by their texts."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from word_families import families

import simindex
from simindex import IndexOptions, Recipe
from simindex.errors import InvalidOption
from simindex.planning.doubt import doubt_of
from simindex.planning.similarity import similar
from simindex.records.verification import Verification
from simindex.simhash.vectors import vectors_of

RECIPE = Recipe(ngram=1, weighting="tf", sketch_bits=256)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {f"t{number}": text for number, text in enumerate(families(Random(5), 8))}


@pytest.fixture
def index(index_path: Path, texts: dict[str, str]) -> Any:
    options = IndexOptions(keys="str", recipe=RECIPE)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(RECIPE.batch([*texts.values()], keys=[*texts]))
        index.commit()
        yield index


def cosines(texts: dict[str, str], found: Any) -> Any:
    """The exact cosine of each document and its representative."""
    own = found.keys()
    vectors, place = vectors_of(RECIPE, [*texts.values()]), {key: n for n, key in enumerate(texts)}
    return vectors.cosines(
        *(np.array([place[key] for key in keys]) for keys in (own, found.representative_keys()))
    )


def test_every_doubtful_member_reaches_the_similarity_by_its_text(
    index: Any, texts: dict[str, str]
) -> None:
    asked: list[str] = []

    def read(documents: simindex.Clusters) -> dict[str, str]:
        asked.extend(documents.keys() or ())
        return texts

    estimated = index.clusters(similarity=0.85)
    found = index.clusters(similarity=0.85, texts=read)
    exact = cosines(texts, found)
    assert (cosines(texts, estimated) < 0.85).any()  # some were wrong
    certain = doubt_of(similar(0.85, h=None, recall=1.0, bits=64, sketch_bits=256)).certain
    doubtful = found.distance > certain
    assert doubtful.any() and (exact[doubtful] >= 0.85 - 1e-9).all()
    assert found.exact.tolist() == doubtful.tolist()
    assert found.similarity[doubtful] == pytest.approx(exact[doubtful], abs=1e-6)
    assert not found.similarity_error[doubtful].any()
    assert found.similarity_error[~doubtful].all()
    told = found.verification
    assert told.verified == told.kept + told.dropped and told.kept and told.dropped
    assert told.overruled and not told.unreadable
    assert 0 < len(set(asked)) == len(asked) <= len(texts)
    again = copy(found)  # as it is pickled
    assert again.verification == told and again.exact.tolist() == doubtful.tolist()
    some = found.take(np.flatnonzero(doubtful))
    assert some.exact.all() and some.verification == told


def test_without_a_text_pairs_remain_as_estimated(index: Any) -> None:
    usual, found = index.clusters(similarity=0.85), index.clusters(similarity=0.85, texts={})
    for name in ("id", "cluster", "representative", "distance", "size"):
        assert getattr(found, name).tolist() == getattr(usual, name).tolist()
    assert not found.exact.any()
    assert found.verification.unreadable and not found.verification.verified
    assert usual.exact is None and usual.verification is None


def test_a_preference_decides_who_represents(index: Any, texts: dict[str, str]) -> None:
    last = np.sort(index.clusters(similarity=0.85).id)[::-1]
    found = index.clusters(similarity=0.85, texts=texts, prefer=last)
    assert found.verification.verified
    place = {name: number for number, name in enumerate(last.tolist())}
    certain = doubt_of(similar(0.85, h=None, recall=1.0, bits=64, sketch_bits=256)).certain
    earlier = [
        place[representative] < place[name]
        for name, representative, bits in zip(
            found.id.tolist(), found.representative.tolist(), found.distance.tolist(), strict=True
        ) if bits > certain
    ]
    assert earlier and all(earlier)


def test_ids_name_texts_where_there_are_no_keys(index_path: Path, texts: dict[str, str]) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(recipe=RECIPE)) as index:
        index.append(RECIPE.batch([*texts.values()], ids=np.arange(len(texts))))
        index.commit()
        found = index.clusters(similarity=0.85, texts=dict(enumerate(texts.values())))
        assert found.verification.verified and not found.verification.unreadable


def test_jaccard_is_exact_too(index_path: Path, texts: dict[str, str]) -> None:
    recipe = Recipe(ngram=1, weighting="binary", sketch_bits=256)
    with simindex.open(index_path, "n", options=IndexOptions(keys="str", recipe=recipe)) as index:
        index.append(recipe.batch([*texts.values()], keys=[*texts]))
        index.commit()
        found = index.clusters(similarity=0.7, measure="jaccard", texts=texts)
    for row in np.flatnonzero(found.exact).tolist():
        one, other = (set(texts[keys[row]].split()) for keys in (
            found.keys(), found.representative_keys()
        ))
        resemblance = len(one & other) / len(one | other)
        assert found.similarity[row] == pytest.approx(resemblance)
        assert resemblance >= 0.7
    assert found.exact.any()
    assert found.take(np.arange(2)).measure == "jaccard"


def test_texts_without_a_similarity_are_refused(index: Any) -> None:
    with pytest.raises(InvalidOption, match=r"give similarity=0\.9"):
        index.clusters(texts={})
    with pytest.raises(InvalidOption, match="mode"):
        index.clusters(texts={}, similarity=0.9, mode="components")
    with pytest.raises(InvalidOption, match="mapping"):
        index.clusters(texts=["a"], similarity=0.9)
    assert Verification() == Verification(0, 0, 0, 0, 0)
