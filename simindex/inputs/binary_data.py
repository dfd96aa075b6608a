"""Whether first bytes are those of a text, or of anything else."""

from __future__ import annotations

import codecs

HEAD_BYTES = 8192
"""What is looked at; a NUL byte among them makes a file a binary one, as in git."""

CONTROLS = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))
"""Bytes that texts hardly have, and one in ten of compressed ones is."""

MOST_CONTROLS = 0.02


def is_binary(data: bytes) -> bool:
    """Whether the first bytes have a NUL, or more control characters than any text has."""
    head = data[:HEAD_BYTES]
    controls = len(head) - len(head.translate(None, CONTROLS))
    return b"\0" in head or controls > MOST_CONTROLS * len(head)


def is_text(data: bytes) -> bool:
    """Whether the first bytes are UTF-8 and not binary; there must be some."""
    head = data[:HEAD_BYTES]
    if not head or is_binary(head):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # it may end within a character
    except UnicodeDecodeError:
        return False
    return True
