"""One small cluster for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import chdir

import pytest

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")


STARTS = 3
"""How often a cluster may be started on a busy machine."""


@pytest.fixture(scope="session", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two processors; workers end with the tests.

    Workers look for modules first where the program was when it joined: not in the sources, which
    have no kernels.
    """
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'simindex[ray]'")
    given_up: list[BaseException] = []  # keeps what was started, until the tests end
    while not ray.is_initialized():
        try:
            with chdir(tmp_path_factory.mktemp("cluster")):
                ray.init(
                    address="local",  # also where the environment or this machine has another one
                    num_cpus=2, include_dashboard=False, object_store_memory=150 * 2**20,
                    log_to_driver=False, logging_level="ERROR",
                )
        except Exception as error:
            # The node aborts if a process of it takes more than 15 s to start (ray issue 65983).
            given_up.append(error)
            if len(given_up) == STARTS or "timed out during startup" not in str(error):
                raise
    yield
    ray.shutdown()
