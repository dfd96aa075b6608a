"""`blake2b` as `hashlib` gives it, without OpenSSL, which `hashlib` also loads, for 4 ms."""

from __future__ import annotations

try:  # as `random` does
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b
