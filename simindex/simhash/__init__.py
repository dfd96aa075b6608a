"""Text becomes features, and features a fingerprint with its weights; no file is opened."""
