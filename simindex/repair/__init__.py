"""Says what is damaged in an index, and rebuilds it from what is left."""
