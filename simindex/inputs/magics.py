"""First bytes by which files are recognised, whatever their names."""

from __future__ import annotations

ARC_MAGIC = b"filedesc://"
WARC_MAGIC = b"WARC/"
PARQUET_MAGIC, ARROW_MAGIC, STREAM_MAGIC = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
"""STREAM_MAGIC is that of Arrow's streams."""
NPY_MAGIC = b"\x93NUMPY"
