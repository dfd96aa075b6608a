"""Builds and asks a collection of shards on machines that there are only as numbers."""
