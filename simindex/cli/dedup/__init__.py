"""Which near-duplicates `simindex dedup` and `clusters --keep` keep, and what is written then."""
