"""Sorted rows and structures made from them: segments, permuted tables, slice lists, tombstones."""
