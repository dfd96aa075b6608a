"""Digests as `hashlib` gives them, without OpenSSL, which `hashlib` also loads, for 4 ms."""

from __future__ import annotations

try:  # as `random` does
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b

try:
    from _sha2 import sha256 as sha256  # type: ignore[import-not-found]  # from Python 3.12 on
except ImportError:
    try:
        from _sha256 import sha256 as sha256
    except ImportError:
        from hashlib import sha256 as sha256
