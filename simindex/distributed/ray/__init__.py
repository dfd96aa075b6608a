"""Shards on a cluster of Ray: an actor keeps each shard open, and all are asked as one index.

    cluster.py      the door to Ray: joining a cluster, tasks in bounded numbers, errors
    holders.py      the actors that hold shards
    connection.py   `Shards` with these actors
    build_tasks.py  tasks that build shards
    blocks.py       Datasets of Ray in and out
    calls.py        each call of a connection, of a folder
"""

from __future__ import annotations

from simindex.errors import MissingExtra

try:
    import ray as _ray  # noqa: F401
except ImportError as _error:
    raise MissingExtra(
        f"shards on a cluster need Ray ({_error})", remedy="pip install 'simindex[ray]'",
        extra="ray",
    ) from _error

from simindex.distributed.ray.blocks import dataset
from simindex.distributed.ray.build_tasks import build
from simindex.distributed.ray.calls import (
    clusters,
    connect,
    dedup,
    ingest,
    pairs,
    query,
    query_stream,
    top,
)
from simindex.distributed.ray.connection import Connection

__all__ = [
    "Connection",
    "build",
    "clusters",
    "connect",
    "dataset",
    "dedup",
    "ingest",
    "pairs",
    "query",
    "query_stream",
    "top",
]
