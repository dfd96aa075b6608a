"""The indexes that the method contract is tried on, made once for all methods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contract import INDEXES, Case, opened_case


@pytest.fixture(scope="session", params=INDEXES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    """A filled index, open for reading."""
    yield from opened_case(tmp_path_factory.mktemp("contract") / "pages.sim", *request.param)
