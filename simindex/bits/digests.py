"""Digests as `hashlib` gives them, without OpenSSL, which `hashlib` also loads, for 4 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:  # as `random` does
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b

if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    try:
        from _sha2 import sha256 as sha256  # from Python 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256 as sha256
        except ImportError:
            from hashlib import sha256 as sha256
