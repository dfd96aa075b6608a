"""Sorted rows and the structures built from them: segments, permuted tables, slice lists, tombstones."""
