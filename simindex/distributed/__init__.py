"""A collection over several indexes, its shards: pure functions that any engine can run.

    regions.py    shard_plan.py        which rows are in which shard
    digest.py     shard.py             what is known of a shard
    shard_contents.py                  whether it is so, by reading all of it
    publication.py    shardmap.py      published shards, and the map that names them
    growth.py                          a shard with more rows, or two with the rows of one
    shard_check.py                     shards compared with the map, and with each other
    nearness.py                        what near is: a radius, or a similarity
    question.py   merged_answers.py    one shard's answer, and the answer of all
    shard_pairs.py    forests.py       pairs, clusters
    labels.py                          which cluster each row is in
    deduplication.py                   which rows lose
    creation.py   additions.py         a new collection, and one with more rows
    calls.py                           the calls that only read, by tasks
    collection.py                      all of it together, on any executor
    ray/                               on a cluster of Ray
    spark.py                           on Spark
"""

from __future__ import annotations

from simindex.distributed.collection import Shards
from simindex.distributed.deduplication import Losers, losers
from simindex.distributed.forests import (
    Forest,
    forest,
    forest_of_shards,
    forest_of_stars,
    label_shard,
    merge_forests,
    merge_rows,
    rows_of,
)
from simindex.distributed.growth import extend_shard, split_shard
from simindex.distributed.labels import merge_labels
from simindex.distributed.merged_answers import merge_matches, merge_pairs, merge_top
from simindex.distributed.publication import build_shard
from simindex.distributed.question import query_shard, top_shard
from simindex.distributed.shard import OpenShard, Shard, open_shard
from simindex.distributed.shard_contents import verify_shard
from simindex.distributed.shard_pairs import pair_parts, pair_shards, pair_tasks
from simindex.distributed.shard_plan import ShardPlan, plan_shards
from simindex.distributed.shardmap import ShardMap, of_shards, read_map, sweep, write_map

__all__ = [
    "Forest",
    "Losers",
    "OpenShard",
    "Shard",
    "ShardMap",
    "ShardPlan",
    "Shards",
    "build_shard",
    "extend_shard",
    "forest",
    "forest_of_shards",
    "forest_of_stars",
    "label_shard",
    "losers",
    "merge_forests",
    "merge_labels",
    "merge_matches",
    "merge_pairs",
    "merge_rows",
    "merge_top",
    "of_shards",
    "open_shard",
    "pair_parts",
    "pair_shards",
    "pair_tasks",
    "plan_shards",
    "query_shard",
    "read_map",
    "rows_of",
    "split_shard",
    "sweep",
    "top_shard",
    "verify_shard",
    "write_map",
]
