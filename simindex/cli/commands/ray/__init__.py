"""`simindex ray COMMAND`: shards on a cluster of Ray, with the options of the local commands."""

from __future__ import annotations

from simindex.cli.commands.ray import build, growth, near_duplicates, query
from simindex.cli.commands.ray.group import ray

__all__ = ["build", "growth", "near_duplicates", "query", "ray"]
