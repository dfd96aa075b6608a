"""Which threshold suits a collection: edits of its documents, the pairs that stand in it, rates."""
