"""The one writer: admits batches, commits them, merges segments."""
