"""`simindex ray COMMAND`: shards on a cluster of Ray, with the options of the local commands."""

from __future__ import annotations

from simindex.cli.commands.ray import building, changing, looking_up, near_duplicates
from simindex.cli.commands.ray.group import ray

__all__ = ["building", "changing", "looking_up", "near_duplicates", "ray"]
