"""What every test may ask for: a fixed generator, a place for an index, a look at a directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from simindex.index import settling

pytest.register_assert_rewrite("contract", "index_machine", "disk_steps")

# Processes that tests start must find the installed package, not the sources in the directory they
# start in, which hold no built kernels.
os.environ["PYTHONSAFEPATH"] = "1"

# Indexes of tests are made in memory where there is room: commits mostly wait for the flushes of a
# disk. Trials bring disks that fail. PYTEST_DEBUG_TEMPROOT or --basetemp name another folder.
MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 << 30  # noqa: S108 - pytest makes a folder of its own in it
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# A shell that runs the tests in the background has them ignore Ctrl-C, and what they start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No writer of a test is idle, however slow the machine is, unless the test says when it is.
settling.IDLE_S = inf

# No deadline: the machine is shared, and a slow example is not a wrong one. Derandomized, so that
# a run is repeatable; HYPOTHESIS_PROFILE=search draws new examples, and more of them.
settings.register_profile(
    "repeatable",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "search", parent=settings.get_profile("repeatable"), derandomize=False, max_examples=100
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

Tree = dict[str, tuple[int, str]]


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(20_110)


@pytest.fixture
def index_path(tmp_path: Path) -> Path:
    """A path where no index is yet."""
    return tmp_path / "pages.sim"


def tree_of(directory: Path) -> Tree:
    """Names, sizes and digests of everything below a directory; of `lock.mdb` the name only.

    LMDB's reader table changes with every reader, and opening it by hand would drop LMDB's locks.
    """
    tree: Tree = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_dir():
            tree[name + "/"] = (0, "")
        elif path.name == "lock.mdb":
            tree[name] = (0, "not opened")
        else:
            content = path.read_bytes()
            tree[name] = (len(content), hashlib.sha256(content).hexdigest())
    return tree


@pytest.fixture
def tree() -> Callable[[Path], Tree]:
    """The function `tree_of`, for tests that compare a directory before and after."""
    return tree_of
