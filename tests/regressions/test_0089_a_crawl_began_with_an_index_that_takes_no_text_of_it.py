"""A distance out of range, and an index that takes no texts with keys, were noticed by each item:
the crawl went on, lost all of them, and ended as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidOption

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicateMiddleware, NearDuplicatePipeline

COMPONENTS: list[Callable[[Any], Any]] = [
    lambda crawler: NearDuplicatePipeline.from_crawler(crawler).open_spider(),
    NearDuplicateMiddleware.from_crawler,
]
KINDS = pytest.mark.parametrize("begin", COMPONENTS, ids=["pipeline", "middleware"])


def tokenizer(text: str) -> list[str]:
    return text.split()


def words() -> simindex.Recipe:
    return simindex.Recipe(tokenizer=tokenizer)


def make(path: Path, *, rows: bool = False, **options: Any) -> None:
    with simindex.open(path, "n", options=simindex.IndexOptions(**options)) as index:
        if rows:
            named = {"str": ["a"], "bytes": [b"a"]}
            keys = {"keys": named[options["keys"]]} if options.get("keys") else {}
            index.append(np.array([7], np.uint64), **keys)


def refused(begin: Callable[[Any], Any], path: Path, said: str, **settings: Any) -> None:
    """The component is refused, and leaves the index as it was and free for others."""
    there = path.exists()
    with pytest.raises(InvalidOption, match=said) as caught:
        begin(get_crawler(None, {"SIMINDEX_PATH": str(path), "SIMINDEX_HTML": "raw", **settings}))
    assert str(caught.value.data["option"]).startswith("SIMINDEX_")
    assert caught.value.remedy
    assert path.exists() == there
    if there:
        simindex.open(path, "w").close()


@KINDS
@pytest.mark.parametrize("distance", [65, "65", -1, "-1", 999, 3.5, True, float("inf"), "1e1"])
def test_a_distance_that_cannot_be(tmp_path: Path, begin: Any, distance: Any) -> None:
    path = tmp_path / "pages.sim"
    said = f"SIMINDEX_DISTANCE is {str(distance)!r}|SIMINDEX_DISTANCE is {distance}"
    refused(begin, path, said, SIMINDEX_DISTANCE=distance)
    make(path, keys="str")
    refused(begin, path, said, SIMINDEX_DISTANCE=distance)


@KINDS
def test_a_distance_is_of_the_index(tmp_path: Path, begin: Any) -> None:
    make(tmp_path / "wide.sim", keys="str", recipe=simindex.Recipe(bits=128))
    refused(
        begin, tmp_path / "wide.sim", "is 129: give a number of bits from 0 to 128",
        SIMINDEX_DISTANCE=129,
    )
    refused(
        begin, tmp_path / "new.sim", "is 129: give a number of bits from 0 to 128",
        SIMINDEX_DISTANCE=129, SIMINDEX_RECIPE={"bits": 128},
    )


@KINDS
@pytest.mark.parametrize(
    ("options", "rows", "said"),
    [
        ({"keys": False}, False, "has ids in place of keys"),
        ({"keys": False, "recipe": simindex.Recipe()}, False, "has ids in place of keys"),
        ({"keys": "bytes"}, False, "has keys of bytes"),
        ({"keys": "bytes"}, True, "without a recipe"),
        ({"keys": "str"}, True, "without a recipe"),
        ({}, True, "without a recipe"),
        ({"keys": "str", "recipe": simindex.Recipe(weighting="given")}, False, "weights"),
    ],
)
def test_an_index_that_takes_no_texts_with_keys(
    tmp_path: Path, begin: Any, options: dict[str, Any], rows: bool, said: str
) -> None:
    path = tmp_path / "pages.sim"
    make(path, rows=rows, **options)
    refused(begin, path, f"{said}.*: give SIMINDEX_PATH another path")


@KINDS
def test_an_index_that_has_only_the_name_of_its_tokenizer(tmp_path: Path, begin: Any) -> None:
    make(tmp_path / "a.sim", keys="str", recipe=words())
    refused(begin, tmp_path / "a.sim", 'SIMINDEX_RECIPE .*: give "tokenizer" the function')


def test_the_setting_that_has_the_path_is_named(tmp_path: Path) -> None:
    make(tmp_path / "pages.sim", keys="bytes")
    with pytest.raises(InvalidOption, match="SIMINDEX_RESPONSE_PATH") as caught:
        NearDuplicateMiddleware.from_crawler(
            get_crawler(None, {"SIMINDEX_RESPONSE_PATH": tmp_path / "pages.sim"})
        )
    assert caught.value.data["option"] == "SIMINDEX_RESPONSE_PATH"


@KINDS
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    "recipe", [{"weighting": "given"}, {"weighting": "tfidf"}, {"tokenizer": "some:words"}]
)
def test_a_recipe_that_makes_no_fingerprints_of_texts(
    tmp_path: Path, begin: Any, there: bool, recipe: Any
) -> None:
    path = tmp_path / "pages.sim"
    if there:
        make(path)
    refused(begin, path, "SIMINDEX_RECIPE is not valid", SIMINDEX_RECIPE=recipe)


@KINDS
def test_an_empty_index_of_another_width(tmp_path: Path, begin: Any) -> None:
    make(tmp_path / "a.sim", bits=128)
    refused(
        begin, tmp_path / "a.sim", 'bits=64, and .* bits=128: give "bits": 128',
        SIMINDEX_RECIPE={"min_features": 2},
    )
    make(tmp_path / "b.sim", sketch_bits=64)
    refused(
        begin, tmp_path / "b.sim", "sketch_bits=0, and .* sketch_bits=64",
        SIMINDEX_RECIPE={"min_features": 2},
    )


def test_a_radius_that_the_stored_recipe_does_not_have(tmp_path: Path) -> None:
    make(tmp_path / "a.sim", keys="str", recipe=simindex.Recipe(h=4))
    refused(
        COMPONENTS[0], tmp_path / "a.sim", "has h=5, and .* h=4: .*SIMINDEX_DISTANCE=5",
        SIMINDEX_RECIPE={"h": 5},
    )


def test_a_refused_component_lets_no_text_expire(tmp_path: Path) -> None:
    path = tmp_path / "a.sim"
    with simindex.open(path, "n", options=simindex.IndexOptions(times=True)) as index:
        index.append(simindex.Recipe().batch(["some words"], keys=["a"]))
    refused(
        COMPONENTS[0], path, "SIMINDEX_DISTANCE", SIMINDEX_DISTANCE=65, SIMINDEX_EXPIRE_S=0
    )
    with simindex.open(path) as index:
        assert "a" in index


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"bits": 128}, {}),
        ({"bits": 128, "sketch_bits": 64}, {"SIMINDEX_DISTANCE": 128}),
        ({"recipe": simindex.Recipe()}, {"SIMINDEX_DISTANCE": "64"}),
        ({"recipe": words()}, {"SIMINDEX_RECIPE": {"tokenizer": tokenizer}}),
        ({"recipe": simindex.Recipe(h=4)}, {"SIMINDEX_RECIPE": {"bits": 64}}),
        ({}, {"SIMINDEX_RECIPE": {"sketch_bits": 64}}),
    ],
)
def test_an_index_that_takes_them(
    tmp_path: Path, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Texts get the recipe of the index, or one that it can take."""
    make(tmp_path / "a.sim", **options)
    crawler = get_crawler(None, {"SIMINDEX_PATH": str(tmp_path / "a.sim"), **settings})
    pipeline = NearDuplicatePipeline.from_crawler(crawler)
    pipeline.open_spider()
    pipeline.process_item({"url": "a", "text": "some words that are long enough"})
    pipeline.close_spider()
    assert crawler.stats.get_value("simindex/items/new") == 1
    with simindex.open(tmp_path / "a.sim") as index:
        assert "a" in index and index.check() == []
