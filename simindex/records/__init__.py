"""The values that calls take and return: batches in; matches, pairs, clusters and reports out."""
