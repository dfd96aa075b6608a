"""simindex: an embedded, persistent, on-disk index engine for near-duplicate search."""
