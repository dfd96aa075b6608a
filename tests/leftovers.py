"""What an index keeps that no commit names: files, and pages of header directories."""

from __future__ import annotations

from pathlib import Path

import simindex
from simindex.storage.catalog.records import page_count


def left_over(path: Path) -> list[str]:
    """Files that no catalog names, by a reader's look; there must be none once a writer is gone."""
    with simindex.open(path) as reader:
        return [finding.path for finding in reader.check()]


def pages_stored(index: simindex.Index) -> int:
    """Pages of header directories in the catalog, named by a record or not."""
    environment = index._handle.catalog.environment
    with environment._env.begin() as txn:
        entries: int = txn.stat(environment._databases["headers"])["entries"]
    return entries


def pages_named(index: simindex.Index) -> int:
    return sum(
        page_count(width) for segment in index._current().segments
        for _, width in segment.record.directories
    )
