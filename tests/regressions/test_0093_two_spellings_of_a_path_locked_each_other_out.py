"""Components of a process share an index. Where their settings spelled its path in two ways, one of
them waited in vain for the other to close it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex.errors import InvalidOption

pytest.importorskip("scrapy", reason="scrapy is not installed")

from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from simindex.integrations.scrapy import NearDuplicatePipeline

TEXT = "some words that are long enough to have a fingerprint of their own"


def opened(path: str, **settings: Any) -> NearDuplicatePipeline:
    pipeline = NearDuplicatePipeline.from_crawler(
        get_crawler(None, {"SIMINDEX_PATH": path, **settings})
    )
    pipeline.open_spider()
    return pipeline


def test_an_index_is_shared_by_any_of_its_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "other.sim").symlink_to("folder/a.sim")
    monkeypatch.chdir(tmp_path)
    paths = [
        "folder/a.sim", "./folder/../folder/a.sim", str(tmp_path / "folder" / "a.sim"),
        "link/a.sim", "other.sim",
    ]
    pipelines = [opened(path) for path in paths]
    pipelines[0].process_item({"url": "a", "text": TEXT})
    monkeypatch.chdir("folder")  # relative paths lead elsewhere now
    pipelines.append(opened("a.sim"))
    for pipeline in pipelines[1:]:
        with pytest.raises(DropItem):
            pipeline.process_item({"url": "b", "text": TEXT})
    for pipeline in pipelines:
        pipeline.close_spider()
    with simindex.open(tmp_path / "folder" / "a.sim", "w") as index:
        assert len(index) == 1


def test_all_that_share_an_index_have_one_recipe(tmp_path: Path) -> None:
    """Also before the first text says which recipe the index has."""
    path = str(tmp_path / "a.sim")
    one = opened(path)
    with pytest.raises(InvalidOption, match="SIMINDEX_RECIPE is not the recipe of"):
        opened(path, SIMINDEX_RECIPE={"weighting": "tf"})
    with pytest.raises(InvalidOption, match="SIMINDEX_DISTANCE"):
        opened(path, SIMINDEX_DISTANCE=65)
    other = opened(path, SIMINDEX_RECIPE={"bits": 64})
    one.process_item({"url": "a", "text": TEXT})
    with pytest.raises(DropItem):
        other.process_item({"url": "b", "text": TEXT})
    one.close_spider()
    other.close_spider()
    with simindex.open(path, "w") as index:
        assert len(index) == 1
