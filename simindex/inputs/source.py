"""What a reader is told of the file or stream whose documents it gives."""

from __future__ import annotations

from dataclasses import dataclass

from simindex.inputs.document import Intake


@dataclass(frozen=True, slots=True)
class Source:
    """Where bytes come from, and what to make of them."""

    path: str
    """The file as the caller named it, or `-`; for messages."""
    name: str
    """What documents without a key of their own are named after: relative to a folder, with `/`."""
    intake: Intake
    limit: int
    """Longest line, row or text file, in bytes."""
    named: bool = True
    """Whether the caller named the file; else it was found in a folder."""
    text_field: str = "text"
    key_field: str = "id"
