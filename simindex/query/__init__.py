"""Carries out the plan of one call on one snapshot, and says how well it did."""
