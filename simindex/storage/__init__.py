"""Bytes on disk: what an index stores, and one commit of it as a reader sees it."""
