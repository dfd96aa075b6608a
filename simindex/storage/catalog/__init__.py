"""The LMDB catalog: the head, the records of segments, header directories and pending rows."""
