"""Indexes that tests of a repair copy."""

from __future__ import annotations

import pytest
from repairable import Held, write


@pytest.fixture(scope="module")
def unkeyed(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return write(tmp_path_factory.mktemp("unkeyed") / "index", keyed=False)


@pytest.fixture(scope="module", params=[False, True], ids=["ids", "keys"])
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    return write(tmp_path_factory.mktemp("held") / "index", keyed=request.param)
