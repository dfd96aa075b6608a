"""Finds the damage of an index, and rebuilds the index from its intact parts."""
