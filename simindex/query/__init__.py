"""Carries out the plan of a call on one snapshot, and measures its recall."""
