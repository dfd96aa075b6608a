"""Files of an index as bytes: made durable, sealed by checksums, read ahead and verified."""
