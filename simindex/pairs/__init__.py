"""All pairs of near-duplicates, in memory or of an index, and the clusters they form."""
