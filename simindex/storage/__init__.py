"""Bytes on disk: what an index keeps, and one commit of it as a reader sees it."""
