"""The folder of an index's segment files, and what every file in it must agree with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simindex.storage.files.verification import Verify


@dataclass(frozen=True, slots=True)
class SegmentFolder:
    """Where segments and their structures are, and how they are opened."""

    directory: Path
    index: bytes
    """The index's uuid."""
    bits: int
    """Of a fingerprint."""
    keyed: bool
    """Whether rows have keys."""
    verify: Verify = "lazy"
    missing_ok: bool = False
    """Whether a structure without its file is opened as a damaged one."""
