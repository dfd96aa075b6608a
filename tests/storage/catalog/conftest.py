"""An index, and a test that must leave nothing open."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from descriptors import open_files

import simindex
from simindex.storage.catalog import leases

ROWS = np.arange(30, dtype=np.uint64)


@pytest.fixture
def filled(index_path: Path) -> Path:
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    return index_path


@pytest.fixture
def nothing_left_open() -> Iterator[None]:
    """Every test ends as it began: no environment, no descriptor more. Others may close theirs."""
    gc.collect()  # what other tests left goes now, and not meanwhile
    before, known = Counter(open_files()), dict(leases._registry)
    yield
    assert leases._registry == known
    assert Counter(open_files()) <= before
