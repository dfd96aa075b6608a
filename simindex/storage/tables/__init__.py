"""Sorted rows and what is built over them: segments, permuted tables, slice lists, tombstones."""
